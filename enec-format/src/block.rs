//! One block: its table entry and its parts (docs/format.md, "Stream").

use crate::geometry::{SEGMENT_ROW_LANES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};

/// An entry of the block table.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockEntry {
    /// Codec 1: largest exponent among the block's wide lanes (the paper's B); 0 without any, and in codec 2.
    pub wide_base: u8,
    /// Codec 1: bits per exponent in a wide lane (the paper's n), the common width without any. Codec 2: 0.
    pub wide_width: u8,
    /// End of the block's segment from the start of the variable section, in units of 32 bytes; below 2^48.
    pub end: u64,
}

impl BlockEntry {
    /// Reads an entry: base, width, bits 32 to 47 of the end, bits 0 to 31 of the end.
    #[must_use]
    pub const fn from_bytes(bytes: [u8; TABLE_ENTRY_BYTES]) -> Self {
        let [wide_base, wide_width, h0, h1, l0, l1, l2, l3] = bytes;
        Self { wide_base, wide_width, end: u64::from_le_bytes([l0, l1, l2, l3, h0, h1, 0, 0]) }
    }

    /// Entry `index` of a block table.
    ///
    /// # Panics
    ///
    /// If the table has no such entry.
    #[must_use]
    pub fn read(table: &[u8], index: usize) -> Self {
        let mut bytes = [0; TABLE_ENTRY_BYTES];
        bytes.copy_from_slice(&table[index * TABLE_ENTRY_BYTES..][..TABLE_ENTRY_BYTES]);
        Self::from_bytes(bytes)
    }

    /// Start of the segment of block `index`, in units of 32 bytes: the end of the one before.
    ///
    /// # Panics
    ///
    /// If the table has no such entry.
    #[must_use]
    pub fn start(table: &[u8], index: usize) -> u64 {
        if index == 0 { 0 } else { Self::read(table, index - 1).end }
    }

    /// The entry's bytes.
    #[must_use]
    pub const fn to_bytes(self) -> [u8; TABLE_ENTRY_BYTES] {
        let [l0, l1, l2, l3, h0, h1, ..] = self.end.to_le_bytes();
        [self.wide_base, self.wide_width, h0, h1, l0, l1, l2, l3]
    }
}

/// The parts of one block of a validated stream.
#[derive(Debug, Clone, Copy)]
pub struct Block<'a> {
    /// Its entry's bytes.
    pub entry_bytes: &'a [u8],
    /// Its entry.
    pub entry: BlockEntry,
    /// Codec 1: masks, 16 bytes per tile.
    pub mask: &'a [u8],
    /// Byte plane, 2,048 bytes per tile.
    pub byte_plane: &'a [u8],
    /// Extra plane.
    pub extra_plane: &'a [u8],
    /// Low plane, 256 bytes per tile and bit: of the common width in codec 1, the 2 bits of the first level's codes in codec 2.
    pub low_plane: &'a [u8],
    /// The block's segment with its padding: codec 1's high segment, codec 2's further levels and raw exponents.
    pub segment: &'a [u8],
}

impl<'a> Block<'a> {
    /// The parts in the order in which the payload hash takes them.
    #[must_use]
    pub fn parts(&self) -> [&'a [u8]; 6] {
        [self.entry_bytes, self.mask, self.byte_plane, self.extra_plane, self.low_plane, self.segment]
    }
}

/// Number of wide lanes in a mask.
#[must_use]
#[inline]
pub fn wide_lanes(mask: &[u8]) -> usize {
    // A word at a time: the baseline of x86-64 has no instruction for it.
    let (words, rest) = mask.as_chunks();
    let words = words.iter().map(|&word| u64::from_le_bytes(word).count_ones() as usize);
    words.sum::<usize>() + rest.iter().map(|byte| byte.count_ones() as usize).sum::<usize>()
}

/// Words of one row of a high segment: `lanes` rounded up to a multiple of 16.
#[must_use]
pub const fn padded_lanes(lanes: usize) -> usize {
    lanes.next_multiple_of(SEGMENT_ROW_LANES)
}

/// Bytes of a high segment of `lanes` wide lanes with `high_width` = wide width - common width bits per exponent.
#[must_use]
pub const fn segment_len(lanes: usize, high_width: u8) -> usize {
    high_width as usize * SEGMENT_UNIT * lanes.div_ceil(SEGMENT_ROW_LANES)
}

/// The bytes of a segment that goes from `start` to `end`, in units of 32 bytes, of a variable section.
///
/// The table of a [`Stream`](crate::Stream) is validated, but a file under a memory map can be rewritten: whatever the two say now, the result
/// lies within the section; it is empty if they do not.
#[must_use]
pub fn segment(variable: &[u8], start: u64, end: u64) -> &[u8] {
    let byte = |units: u64| {
        usize::try_from(units).ok().and_then(|units| units.checked_mul(SEGMENT_UNIT)).unwrap_or(usize::MAX)
    };
    variable.get(byte(start)..byte(end)).unwrap_or(&[])
}
