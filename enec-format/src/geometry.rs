//! The fixed geometry of the stream: tiles, rows, lanes, blocks and alignment (docs/format.md, "Geometry").

/// Rows of a tile; also the number of elements in a lane, which is the paper's group of L = 16.
pub const ROWS: usize = 16;
/// Lanes of a tile. One row of 16-bit words is 256 bytes.
pub const LANES: usize = 128;
/// Elements of a tile; element `i` is row `i / LANES`, lane `i % LANES`.
pub const TILE_ELEMENTS: usize = ROWS * LANES;
/// Tiles of a whole block. The last block of a tensor has 1 to 8.
pub const BLOCK_TILES: usize = 8;
/// Elements of a whole block, as in the paper.
pub const BLOCK_ELEMENTS: usize = BLOCK_TILES * TILE_ELEMENTS;
/// Bytes of one row of 16-bit words.
pub const ROW_BYTES: usize = 2 * LANES;
/// Bytes of the mask of one tile, one bit per lane.
pub const TILE_MASK_BYTES: usize = LANES / 8;
/// Bytes of the byte plane of one tile, one byte per element.
pub const TILE_BYTE_PLANE_BYTES: usize = TILE_ELEMENTS;
/// Bytes of one entry of the block table.
pub const TABLE_ENTRY_BYTES: usize = 8;
/// Bytes of the header.
pub const HEADER_BYTES: usize = 64;
/// Every section starts at a multiple of this from the start of the stream, and the stream's length is one.
pub const ALIGNMENT: usize = 64;
/// Lanes that a row of a high segment is padded to, which makes every row a multiple of 32 bytes.
pub const SEGMENT_ROW_LANES: usize = 16;
/// Unit of the block table's ends and of the variable section's length, in bytes.
pub const SEGMENT_UNIT: usize = 32;
/// Symbols of one level of codec 2: what the codes 0, 1 and 2 stand for; 3 is the escape to the next level.
pub const LEVEL_SYMBOLS: usize = 3;
/// Most levels of codec 2.
pub const MAX_LEVELS: usize = 5;
/// Most symbols of codec 2.
pub const MAX_SYMBOLS: usize = LEVEL_SYMBOLS * MAX_LEVELS;
/// Bits of one code of codec 2.
pub const CODE_BITS: usize = 2;
/// Bytes that a level of codec 2's segment is a multiple of.
pub const LEVEL_ALIGNMENT: usize = 4;
/// Bytes of codec 2's own section: its symbols, then zeros.
pub const SYMBOL_SECTION_BYTES: usize = 64;
/// Decoded bytes under one content hash piece.
pub const CONTENT_PIECE_BYTES: usize = 32_768;

/// `len` rounded up to a multiple of [`ALIGNMENT`], or `None` if that overflows.
#[must_use]
pub const fn align_up(len: usize) -> Option<usize> {
    len.checked_next_multiple_of(ALIGNMENT)
}

const _: () = assert!(SEGMENT_ROW_LANES * 2 == SEGMENT_UNIT && ALIGNMENT.is_multiple_of(SEGMENT_UNIT));
