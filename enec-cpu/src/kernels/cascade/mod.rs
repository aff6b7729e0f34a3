//! The kernels of codec 2, the two-bit cascade (docs/format.md).
//!
//! Two lanes of a tile are one 64-bit word of codes. What reached a level is a dense string; its codes come back to the elements of the level before by
//! [moving pairs of bits](bits) to where that has escapes, 32 elements at a time. The levels below the first, which few elements reach, are
//! put together [first](levels), into four bits per element, its [place](places); then the first level is done in vectors.

mod bits;
mod codes;
mod decode;
mod encode;
mod levels;
mod places;
#[cfg(test)]
mod tests;

use std::ops::Range;

use enec_format::Dtype;

pub(super) use bits::{Bits, Tables};
use codes::{Codes, Places};
pub(super) use decode::{DecodeCascade, TILE_LOW_BYTES};
pub(super) use encode::EncodeCascade;
use encode::Raw;
use levels::{LevelPlaces, Segment};
pub(super) use places::PlaceTable;

/// Tiles of one block to decode. All planes have exactly the length that the other fields imply, whatever the stream says.
#[derive(Debug)]
pub(crate) struct CascadeBlock<'a> {
    /// Element type.
    pub(crate) dtype: Dtype,
    /// LevelPlaces of codes, 1 to 5.
    pub(crate) levels: usize,
    /// Symbols in the order of their ranks, three per level.
    pub(crate) symbols: &'a [u8],
    /// The tiles to decode, as indices into the block.
    pub(crate) tiles: Range<usize>,
    /// Byte plane of these tiles.
    pub(crate) byte_plane: &'a [u8],
    /// Extra plane of these tiles.
    pub(crate) extra_plane: &'a [u8],
    /// Low plane of the whole block.
    pub(crate) low_plane: &'a [u8],
    /// Variable segment of the whole block, of any length.
    pub(crate) segment: &'a [u8],
}

/// A block to encode.
#[derive(Debug)]
pub(crate) struct CascadeSource<'a> {
    /// Element type.
    pub(crate) dtype: Dtype,
    /// LevelPlaces of codes, 1 to 5.
    pub(crate) levels: usize,
    /// Symbols in the order of their ranks, three per level.
    pub(crate) symbols: &'a [u8],
    /// Its elements: 1 to 8 whole tiles.
    pub(crate) elements: &'a [u8],
}

/// Memory for the codes of one block.
#[derive(Debug, Clone)]
pub(crate) struct CascadeScratch {
    /// Where level 1 has escapes.
    escapes: Codes,
    /// Places at level 1: of the elements that escape from it while decoding, of all while encoding.
    places: Places,
    levels: LevelPlaces,
    /// Raw exponents, while encoding.
    raw: Raw,
    segment: Segment,
}

impl CascadeScratch {
    /// All zero.
    pub(crate) const ZERO: Self = Self {
        escapes: Codes::ZERO,
        places: Places { low: Codes::ZERO, high: Codes::ZERO },
        levels: LevelPlaces::ZERO,
        raw: Raw::ZERO,
        segment: Segment::ZERO,
    };

    /// Takes a segment whose levels are padded already and pads its end. Returns the length.
    pub(super) fn set_segment(&mut self, levels_and_raw: &[u8]) -> usize {
        self.segment.finish(0, levels_and_raw)
    }

    /// The segment that has been encoded, given its length.
    pub(crate) fn segment(&self, len: usize) -> &[u8] {
        self.segment.bytes(len)
    }
}
