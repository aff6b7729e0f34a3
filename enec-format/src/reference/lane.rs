//! One lane: 16 values packed at a width, as a little-endian string of bits (docs/format.md, "Bit packing").

use crate::geometry::{LANES, ROWS};

/// Packs 16 values of `width` bits into a string of `16 * width` bits, row `r` at bits `r * width` and up.
pub(super) fn pack(values: [u8; ROWS], width: u8) -> u128 {
    values.iter().enumerate().fold(0, |bits, (row, &value)| bits | (u128::from(value) << (row * usize::from(width))))
}

/// Takes the 16 values out of such a string.
pub(super) fn unpack(bits: u128, width: u8) -> [u8; ROWS] {
    core::array::from_fn(|row| {
        let [value, ..] = (bits >> (row * usize::from(width))).to_le_bytes();
        value & low_bits(width)
    })
}

/// The lowest `width` bits set; `width` is at most 8.
pub(super) fn low_bits(width: u8) -> u8 {
    0xFF_u8.checked_shr(u32::from(8 - width)).unwrap_or(0)
}

/// Word `index` of a string of bits.
fn word(bits: u128, index: usize) -> [u8; 2] {
    let bytes = bits.to_le_bytes();
    [bytes[2 * index], bytes[2 * index + 1]]
}

/// Writes the `width` words of a lane into rows of `stride` words: word `i` at index `i * stride + lane`.
pub(super) fn write_words(rows: &mut [u8], stride: usize, lane: usize, width: u8, bits: u128) {
    for index in 0..usize::from(width) {
        let at = 2 * (index * stride + lane);
        rows[at..at + 2].copy_from_slice(&word(bits, index));
    }
}

/// Reads the `width` words of a lane from rows of `stride` words. Words beyond the end of `rows` count as zero: a table
/// that was rewritten after validation must not lead to a stray read.
pub(super) fn read_words(rows: &[u8], stride: usize, lane: usize, width: u8) -> u128 {
    (0..usize::from(width)).fold(0, |bits, index| {
        let at = 2 * (index * stride + lane);
        let word = rows.get(at..at + 2).map_or(0, |bytes| u16::from_le_bytes([bytes[0], bytes[1]]));
        bits | (u128::from(word) << (16 * index))
    })
}

/// Index of element (`row`, `lane`) in its tile.
pub(super) fn element(row: usize, lane: usize) -> usize {
    row * LANES + lane
}
