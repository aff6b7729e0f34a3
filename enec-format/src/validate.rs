//! Validation of the block table and of what it says about the variable section (docs/format.md, "Reading").

mod cascade;
mod two_windows;

pub(crate) use cascade::CascadeBlocks;
pub(crate) use two_windows::TwoWindowsBlocks;

use crate::geometry::{SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use crate::{BlockEntry, FormatError, FormatErrorKind as Kind, Layout, Result};

/// One block and where its segment starts.
struct Place {
    /// The block.
    index: usize,
    /// Its table entry's offset from the start of the stream.
    at: usize,
    /// Its table entry.
    entry: BlockEntry,
    /// Start of its segment, in units of 32 bytes.
    start: u64,
    /// Length of the variable section, in units of 32 bytes.
    section: u64,
}

impl Place {
    fn block(&self) -> u64 {
        self.index as u64
    }

    /// That the segment ends where it may; gives its bytes.
    fn check_end(&self) -> Result<u64> {
        let &Self { start, section, entry: BlockEntry { end, .. }, .. } = self;
        if end < start {
            return Err(FormatError::at(Kind::TableOrder { block: self.block(), start, end }, self.at + 2));
        }
        if end > section {
            return Err(FormatError::at(Kind::TableBeyond { block: self.block(), end, section }, self.at + 2));
        }
        Ok((end - start) * SEGMENT_UNIT as u64)
    }
}

/// The blocks and where their segments start.
fn places(layout: &Layout, table: &[u8]) -> impl Iterator<Item = Place> {
    let section = (layout.variable.len / SEGMENT_UNIT) as u64;
    (0..layout.blocks()).scan(0, move |next, index| {
        let entry = BlockEntry::read(table, index);
        let start = core::mem::replace(next, entry.end);
        Some(Place { index, at: layout.table.offset + index * TABLE_ENTRY_BYTES, entry, start, section })
    })
}

/// Checks, after the blocks, that the last segment ends where the variable section does.
fn check_last_end(layout: &Layout, table: &[u8]) -> Result<()> {
    let section = (layout.variable.len / SEGMENT_UNIT) as u64;
    let end = BlockEntry::start(table, layout.blocks());
    if end != section {
        let at = layout.table.range().end - TABLE_ENTRY_BYTES + 2;
        return Err(FormatError::at(Kind::TableEnd { end, section }, at));
    }
    Ok(())
}
