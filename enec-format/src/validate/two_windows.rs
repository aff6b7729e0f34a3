//! Validation of codec 1's blocks.

use super::{Place, check_last_end, places};
use crate::geometry::{SEGMENT_UNIT, TILE_MASK_BYTES};
use crate::{FormatError, FormatErrorKind as Kind, Layout, Result, TwoWindows, padded_lanes, segment_len, wide_lanes};

/// What is looked at.
pub(crate) struct TwoWindowsBlocks<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) windows: TwoWindows,
    pub(crate) table: &'a [u8],
    pub(crate) mask: &'a [u8],
    /// Absent when the stream lies in device memory.
    pub(crate) variable: Option<&'a [u8]>,
}

/// Blocks whose segments are looked at one after the other. Each look waits for memory, and a short loop waits for many of them at once.
const SEGMENTS_AT_ONCE: usize = 32;

/// Rows of a high segment.
#[derive(Clone, Copy, Default)]
struct Rows {
    /// Where they start in the variable section.
    start: usize,
    count: usize,
    /// Bytes of one.
    len: usize,
    /// Bytes of one that are not padding.
    used: usize,
}

impl TwoWindowsBlocks<'_> {
    pub(crate) fn validate(&self) -> Result<()> {
        let mut places = places(self.layout, self.table);
        let mut segments = [Rows::default(); SEGMENTS_AT_ONCE];
        loop {
            let (mut count, mut fault) = (0, None);
            for (segment, place) in segments.iter_mut().zip(&mut places) {
                match self.validate_block(&place) {
                    Ok(rows) => (*segment, count) = (rows, count + 1),
                    Err(error) => {
                        fault = Some(error);
                        break;
                    }
                }
            }
            // A fault in the segment of a block comes before those of later blocks.
            segments[..count].iter().try_for_each(|rows| self.check_padding(rows))?;
            match fault {
                Some(fault) => return Err(fault),
                None if count < SEGMENTS_AT_ONCE => break,
                None => {}
            }
        }
        check_last_end(self.layout, self.table)
    }

    /// Checks everything of a block but its segment.
    fn validate_block(&self, place: &Place) -> Result<Rows> {
        let &Place { at, entry, .. } = place;
        let block = place.block();
        let (common_width, exponent_bits) = (self.windows.common_width(), self.layout.dtype.exponent_bits());
        let largest = self.layout.dtype.exponent_mask();
        if entry.wide_base > largest {
            return Err(FormatError::at(Kind::WideBase { block, found: entry.wide_base, largest }, at));
        }
        if entry.wide_width < common_width || entry.wide_width > exponent_bits {
            let (found, smallest, largest) = (entry.wide_width, common_width, exponent_bits);
            return Err(FormatError::at(Kind::WideWidth { block, found, smallest, largest }, at + 1));
        }
        let found = place.check_end()?;
        let tiles = self.layout.block(place.index).tiles;
        let lanes = wide_lanes(&self.mask[tiles.start * TILE_MASK_BYTES..tiles.end * TILE_MASK_BYTES]);
        if lanes == 0 && entry.wide_base != 0 {
            return Err(FormatError::at(Kind::WideBaseUnused { block, found: entry.wide_base }, at));
        }
        if lanes == 0 && entry.wide_width != common_width {
            let kind = Kind::WideWidthUnused { block, found: entry.wide_width, expected: common_width };
            return Err(FormatError::at(kind, at + 1));
        }
        let high_width = entry.wide_width - common_width;
        let expected = segment_len(lanes, high_width) as u64;
        if found != expected {
            return Err(FormatError::at(Kind::SegmentLength { block, found, expected }, at + 2));
        }
        let start = usize::try_from(place.start).unwrap_or(usize::MAX).saturating_mul(SEGMENT_UNIT);
        Ok(Rows { start, count: high_width.into(), len: 2 * padded_lanes(lanes), used: 2 * lanes })
    }

    /// Checks that what is behind the lanes in each row of a segment is zero.
    fn check_padding(&self, rows: &Rows) -> Result<()> {
        let Some(variable) = self.variable.filter(|_| rows.used < rows.len) else { return Ok(()) };
        // A row ends with a whole unit, in which all of the padding lies.
        let used = rows.used % SEGMENT_UNIT;
        let mut mask = [u8::MAX; SEGMENT_UNIT];
        mask[..used].fill(0);
        for row in 1..=rows.count {
            let end = rows.start + row * rows.len;
            let Some(unit) = variable[..end].last_chunk::<SEGMENT_UNIT>() else { unreachable!("rows are not empty") };
            if unit.iter().zip(&mask).fold(0, |all, (byte, mask)| all | byte & mask) != 0 {
                let at = unit.iter().skip(used).take_while(|&&byte| byte == 0).count();
                let offset = self.layout.variable.offset + end - SEGMENT_UNIT + used + at;
                return Err(FormatError::at(Kind::Padding { section: "row of a high segment" }, offset));
            }
        }
        Ok(())
    }
}
