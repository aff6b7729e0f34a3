//! The kernels: what is done to one block, in several variants that write the same bytes.

mod analyse;
#[cfg(target_arch = "x86_64")]
mod avx2;
#[cfg(target_arch = "x86_64")]
mod avx512;
mod behind;
mod cascade;
mod decode;
mod encode;
mod float;
mod isa;
mod pack;
mod planes;
mod portable;
mod scalar;
mod scratch;
mod target;
mod vectorised;

use std::ops::Range;

use enec_format::geometry::{BLOCK_TILES, TILE_MASK_BYTES};
use enec_format::{Dtype, TwoWindows, segment_len};

#[cfg(target_arch = "x86_64")]
pub(crate) use avx2::Avx2;
#[cfg(target_arch = "x86_64")]
pub(crate) use avx512::Avx512;
pub(crate) use behind::{Behind, TileBytes};
pub(crate) use cascade::{CascadeBlock, CascadeScratch, CascadeSource};
pub(crate) use portable::Portable;
pub(crate) use scalar::Scalar;
pub(crate) use scratch::{KeptPlanes, Scratch, WideRows};
pub(crate) use target::TileTarget;

/// One variant of the kernels. The value proves that the processor can run it.
pub(crate) trait Kernels: Copy + Send + Sync {
    /// Whether targets can be streamed past the caches. Without, `Streamed` targets are not given.
    const STREAMS: bool;

    /// Finds the wide lanes of the whole tiles in `elements` and writes their mask, 16 bytes per tile.
    fn analyse(self, dtype: Dtype, windows: TwoWindows, elements: &[u8], mask: &mut [u8]) -> WideLanes;

    /// Writes the planes and the segment of an analysed block, every byte of them.
    fn encode(self, block: &EncodeBlock<'_>, planes: [TileTarget<'_, '_>; 3], segment: &mut [u8], wide: &mut WideRows);

    /// Decodes tiles of a block.
    fn decode(self, block: &DecodeBlock<'_>, target: TileTarget<'_, '_>, wide: &mut WideRows);

    /// Decodes tiles of a block of the cascade.
    fn decode_cascade(self, block: &CascadeBlock<'_>, target: TileTarget<'_, '_>, scratch: &mut CascadeScratch);

    /// Writes the planes of a block of the cascade, every byte of them, and to the scratch memory its segment, whose length it returns.
    /// Shows each tile first: whoever reads it from its start to its end brings it into the cache in the order that is fastest.
    fn encode_cascade(
        self,
        block: &CascadeSource<'_>,
        planes: [TileTarget<'_, '_>; 3],
        show: &mut dyn FnMut(&[u8]),
        scratch: &mut CascadeScratch,
    ) -> usize;

    /// Asks for bytes that will be read some microseconds later.
    fn prefetch(self, bytes: &[u8]);

    /// Copies bytes, past the caches if the processor can; [`fence`](Self::fence) completes it.
    fn stream(self, source: &[u8], target: &mut [u8]);

    /// Makes what this thread streamed visible to whoever learns that the thread is done.
    fn fence(self);
}

/// The wide lanes of a block and the window that covers them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct WideLanes {
    /// How many there are.
    pub(crate) lanes: usize,
    /// The largest exponent among them; 0 without any.
    pub(crate) base: u8,
    /// Bits per exponent in a wide lane; the common width without any.
    pub(crate) width: u8,
}

impl WideLanes {
    /// Of a block of the cascade, which has none.
    pub(crate) const NONE: Self = Self { lanes: 0, base: 0, width: 0 };

    /// The window of `lanes` wide lanes whose exponents span `smallest..=largest`.
    pub(crate) fn new(windows: TwoWindows, lanes: usize, smallest: u8, largest: u8) -> Self {
        let common_width = windows.common_width();
        if lanes == 0 {
            return Self { lanes, base: 0, width: common_width };
        }
        Self { lanes, base: largest, width: common_width.max(bit_length(largest - smallest)) }
    }

    /// Bits per exponent in the high segment.
    pub(crate) fn high_width(&self, windows: TwoWindows) -> u8 {
        self.width - windows.common_width()
    }

    /// Bytes of the high segment.
    pub(crate) fn segment_len(&self, windows: TwoWindows) -> usize {
        segment_len(self.lanes, self.high_width(windows))
    }
}

/// Bits needed for a value; 0 for 0.
fn bit_length(value: u8) -> u8 {
    value.checked_ilog2().map_or(0, |log| log.to_le_bytes()[0] + 1)
}

/// A block to encode, after its analysis.
#[derive(Debug)]
pub(crate) struct EncodeBlock<'a> {
    /// Element type.
    pub(crate) dtype: Dtype,
    /// Common window.
    pub(crate) windows: TwoWindows,
    /// Wide window.
    pub(crate) wide: WideLanes,
    /// Its elements: 1 to 8 whole tiles.
    pub(crate) elements: &'a [u8],
    /// Its mask, 16 bytes per tile.
    pub(crate) mask: &'a [u8],
    /// Elements that the thread encodes next, to be asked for.
    pub(crate) ahead: &'a [u8],
}

/// Tiles of one block to decode. All slices have exactly the length that the other fields imply, whatever the stream says.
#[derive(Debug)]
pub(crate) struct DecodeBlock<'a> {
    /// Element type.
    pub(crate) dtype: Dtype,
    /// Base of the common lanes.
    pub(crate) common_base: u8,
    /// Width of the low plane.
    pub(crate) common_width: u8,
    /// Base of the wide lanes.
    pub(crate) wide_base: u8,
    /// Width of the high segment; with the common width at most the bits of an exponent.
    pub(crate) high_width: u8,
    /// Masks of the whole block, copied: zero for tiles that the block does not have.
    pub(crate) mask: [u8; BLOCK_TILES * TILE_MASK_BYTES],
    /// Wide lanes of the whole block.
    pub(crate) lanes: usize,
    /// Whether all this is likely to be in the thread's own cache.
    pub(crate) is_near: bool,
    /// The tiles to decode, as indices into the block.
    pub(crate) tiles: Range<usize>,
    /// Byte plane of these tiles.
    pub(crate) byte_plane: &'a [u8],
    /// Extra plane of these tiles.
    pub(crate) extra_plane: &'a [u8],
    /// Low plane of these tiles.
    pub(crate) low_plane: &'a [u8],
    /// High segment of the whole block.
    pub(crate) segment: &'a [u8],
}

impl DecodeBlock<'_> {
    /// Mask of one tile of the block.
    fn tile_mask(&self, tile: usize) -> &[u8; TILE_MASK_BYTES] {
        &self.mask.as_chunks().0[tile]
    }

    /// Rank, in the block, of the first wide lane of the first tile to decode.
    fn first_rank(&self) -> usize {
        enec_format::wide_lanes(&self.mask[..self.tiles.start * TILE_MASK_BYTES])
    }
}
