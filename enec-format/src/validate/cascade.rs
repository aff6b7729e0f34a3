//! Validation of codec 2's blocks.

use super::{Place, check_last_end, places};
use crate::geometry::{CODE_BITS, ROW_BYTES};
use crate::{Cascade, FormatError, FormatErrorKind as Kind, Layout, Levels, Result, segment};

/// What is looked at.
pub(crate) struct CascadeBlocks<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) cascade: Cascade,
    pub(crate) table: &'a [u8],
    pub(crate) low_plane: &'a [u8],
    pub(crate) variable: &'a [u8],
}

impl CascadeBlocks<'_> {
    pub(crate) fn validate(&self) -> Result<()> {
        places(self.layout, self.table).try_for_each(|place| self.validate_block(&place))?;
        check_last_end(self.layout, self.table)
    }

    fn validate_block(&self, place: &Place) -> Result<()> {
        let &Place { at, entry, .. } = place;
        let (block, codec) = (place.block(), 2);
        for (found, at) in [(entry.wide_base, at), (entry.wide_width, at + 1)] {
            if found != 0 {
                return Err(FormatError::at(Kind::TableUnused { block, codec, found }, at));
            }
        }
        let found = place.check_end()?;
        let tiles = self.layout.block(place.index).tiles;
        let codes = &self.low_plane[tiles.start * CODE_BITS * ROW_BYTES..tiles.end * CODE_BITS * ROW_BYTES];
        let bytes = segment(self.variable, place.start, entry.end);
        let levels = Levels::count(self.cascade.levels(), codes, bytes);
        let expected = levels.segment_len() as u64;
        if found != expected {
            return Err(FormatError::at(Kind::LevelsLength { block, found, expected }, at + 2));
        }
        let before = self.variable.len() - segment(self.variable, place.start, place.section).len();
        self.validate_segment(&levels, block, bytes, self.layout.variable.offset + before)
    }

    /// Checks a segment of the right length that starts at `offset` of the stream.
    fn validate_segment(&self, levels: &Levels, block: u64, segment: &[u8], offset: usize) -> Result<()> {
        let padding = |section, at| Err(FormatError::at(Kind::Padding { section }, offset + at));
        for level in 2..=self.cascade.levels() {
            // The last byte with a code may hold fewer than four.
            let (range, codes) = (levels.level(level), levels.codes(level));
            let (used, first) = (CODE_BITS * (codes % 4), range.start + codes / 4);
            let mut unused = segment[first..range.end].iter().zip(core::iter::once(used).chain(core::iter::repeat(0)));
            if let Some(at) = unused.position(|(byte, used)| byte >> used != 0) {
                return padding("codes of a level", first + at);
            }
        }
        let largest = self.layout.dtype.exponent_mask();
        let raw = &segment[levels.raw()];
        if let Some(at) = raw.iter().position(|&exponent| exponent > largest) {
            let kind = Kind::RawExponent { block, found: raw[at], largest };
            return Err(FormatError::at(kind, offset + levels.raw().start + at));
        }
        match segment[levels.raw().end..].iter().position(|&byte| byte != 0) {
            None => Ok(()),
            Some(at) => padding("raw exponents of a segment", levels.raw().end + at),
        }
    }
}
