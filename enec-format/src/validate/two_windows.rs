//! Validation of codec 1's blocks.

use super::{Place, check_blocks};
use crate::geometry::TILE_MASK_BYTES;
use crate::{
    FormatError, FormatErrorKind as Kind, Layout, Result, TwoWindows, padded_lanes, segment, segment_len, wide_lanes,
};

/// What is looked at.
pub(crate) struct TwoWindowsBlocks<'a> {
    pub(crate) layout: &'a Layout,
    pub(crate) windows: TwoWindows,
    pub(crate) table: &'a [u8],
    pub(crate) mask: &'a [u8],
    /// Absent when the stream lies in device memory.
    pub(crate) variable: Option<&'a [u8]>,
}

impl TwoWindowsBlocks<'_> {
    pub(crate) fn validate(&self) -> Result<()> {
        check_blocks(self.layout, self.table, |place| self.validate_block(place))
    }

    fn validate_block(&self, place: &Place) -> Result<()> {
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
        if let Some(variable) = self.variable {
            let (row_len, used) = (2 * padded_lanes(lanes), 2 * lanes);
            let first = variable.len() - segment(variable, place.start, place.section).len();
            for row in 0..usize::from(high_width) {
                let padding = first + row * row_len + used..first + (row + 1) * row_len;
                if let Some(at) = variable[padding.clone()].iter().position(|&byte| byte != 0) {
                    let offset = self.layout.variable.offset + padding.start + at;
                    return Err(FormatError::at(Kind::Padding { section: "row of a high segment" }, offset));
                }
            }
        }
        Ok(())
    }
}
