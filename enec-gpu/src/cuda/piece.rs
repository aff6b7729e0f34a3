//! Sizes of the pieces that tensors are cut into.

use enec_format::geometry::{
    ALIGNMENT, BLOCK_TILES, LANES, ROW_BYTES, TABLE_ENTRY_BYTES, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES,
};
use enec_format::{Dtype, TwoWindows, segment_len};

/// What staging may lose at most for each block of a piece: six sections that start on boundaries of 256 bytes.
const PADDING: usize = 6 * 256;

/// Bytes of a tile in the low plane.
pub(super) fn tile_low_bytes(windows: TwoWindows) -> usize {
    usize::from(windows.common_width()) * ROW_BYTES
}

/// Most bits of an exponent that go to the high segment.
pub(super) fn high_width(dtype: Dtype, windows: TwoWindows) -> u8 {
    dtype.exponent_bits() - windows.common_width()
}

/// Most bytes that one block of a stream takes, in a piece of any number of blocks.
pub(super) fn longest_block(dtype: Dtype, windows: TwoWindows) -> usize {
    let tile = TILE_MASK_BYTES + TILE_BYTE_PLANE_BYTES + dtype.tile_extra_bytes() + tile_low_bytes(windows);
    let segment = segment_len(BLOCK_TILES * LANES, high_width(dtype, windows));
    TABLE_ENTRY_BYTES + BLOCK_TILES * tile + segment + PADDING + ALIGNMENT
}

/// A size that came from a `usize`.
pub(super) fn size(len: u64) -> usize {
    usize::try_from(len).unwrap_or_else(|_| unreachable!("{len} bytes are beyond this host's memory"))
}
