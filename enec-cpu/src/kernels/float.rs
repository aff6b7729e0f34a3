//! How 16 lanes of each element type are read, split, joined and written (docs/format.md, "Splitting a value").

use enec_format::Dtype;
use enec_format::geometry::LANES;

use super::isa::Isa;

/// Vectors in a row of 16-bit words.
pub(super) const VECTORS: usize = LANES / 16;

/// An element type, known when the kernel is compiled.
pub(super) trait Float {
    const DTYPE: Dtype;

    /// Rotation to the left that puts the byte with the exponent into the high byte.
    const ROTATION: usize;

    /// Reads the words with the exponents of 16 lanes: vector `index` of `row`. What F32 has below them goes to the extra plane.
    fn load<I: Isa>(isa: I, tile: &[u8], row: usize, index: usize) -> (I::Vector, I::Vector);

    /// Undoes [`load`](Self::load).
    fn store<I: Isa>(isa: I, word: I::Vector, lower: I::Vector, tile: &mut [u8], row: usize, index: usize);
}

/// bfloat16.
pub(super) struct Bf16;
/// IEEE 754 binary16.
pub(super) struct F16;
/// IEEE 754 binary32.
pub(super) struct F32;

impl Float for Bf16 {
    const DTYPE: Dtype = Dtype::Bf16;
    const ROTATION: usize = 1;

    #[inline(always)]
    fn load<I: Isa>(isa: I, tile: &[u8], row: usize, index: usize) -> (I::Vector, I::Vector) {
        (isa.load(vector(tile, row, index)), isa.splat(0))
    }

    #[inline(always)]
    fn store<I: Isa>(isa: I, word: I::Vector, _: I::Vector, tile: &mut [u8], row: usize, index: usize) {
        isa.store(word, vector_mut(tile, row, index));
    }
}

impl Float for F16 {
    const DTYPE: Dtype = Dtype::F16;
    const ROTATION: usize = 14;

    #[inline(always)]
    fn load<I: Isa>(isa: I, tile: &[u8], row: usize, index: usize) -> (I::Vector, I::Vector) {
        (isa.load(vector(tile, row, index)), isa.splat(0))
    }

    #[inline(always)]
    fn store<I: Isa>(isa: I, word: I::Vector, _: I::Vector, tile: &mut [u8], row: usize, index: usize) {
        isa.store(word, vector_mut(tile, row, index));
    }
}

impl Float for F32 {
    const DTYPE: Dtype = Dtype::F32;
    const ROTATION: usize = 1;

    #[inline(always)]
    fn load<I: Isa>(isa: I, tile: &[u8], row: usize, index: usize) -> (I::Vector, I::Vector) {
        let (lower, upper) = isa.load_double(vector(tile, row, index));
        (upper, lower)
    }

    #[inline(always)]
    fn store<I: Isa>(isa: I, word: I::Vector, lower: I::Vector, tile: &mut [u8], row: usize, index: usize) {
        isa.store_double(lower, word, vector_mut(tile, row, index));
    }
}

/// The bytes of 16 lanes in rows of 128.
///
/// # Panics
///
/// If there are not that many rows.
#[inline(always)]
pub(super) fn vector<const N: usize>(rows: &[u8], row: usize, index: usize) -> &[u8; N] {
    &rows.as_chunks().0[row * VECTORS + index]
}

/// As [`vector`].
///
/// # Panics
///
/// As [`vector`].
#[inline(always)]
pub(super) fn vector_mut<const N: usize>(rows: &mut [u8], row: usize, index: usize) -> &mut [u8; N] {
    &mut rows.as_chunks_mut().0[row * VECTORS + index]
}

#[inline(always)]
fn rotate_up<I: Isa>(isa: I, words: I::Vector, count: usize) -> I::Vector {
    isa.or(isa.shift_up(words, count), isa.shift_down(words, 16 - count))
}

/// Splits words of rows `t` and `t + 8`. Returns the byte plane's words, and the bytes with the exponents as pairs, those of row
/// `t` in the high bytes.
///
/// One row is rotated so that its plane byte is low, the other so that it is high: then exchanging the high bytes is all.
#[inline(always)]
pub(super) fn split<I: Isa, F: Float>(isa: I, first: I::Vector, second: I::Vector) -> (I::Vector, I::Vector) {
    let first = rotate_up(isa, first, F::ROTATION);
    let second = rotate_up(isa, second, (F::ROTATION + 8) % 16);
    exchange_high_bytes(isa, first, second)
}

/// Undoes [`split`].
#[inline(always)]
pub(super) fn join<I: Isa, F: Float>(isa: I, bytes: I::Vector, exponents: I::Vector) -> (I::Vector, I::Vector) {
    let (first, second) = exchange_high_bytes(isa, bytes, exponents);
    (rotate_up(isa, first, 16 - F::ROTATION), rotate_up(isa, second, (24 - F::ROTATION) % 16))
}

#[inline(always)]
fn exchange_high_bytes<I: Isa>(isa: I, a: I::Vector, b: I::Vector) -> (I::Vector, I::Vector) {
    let difference = isa.and(isa.xor(a, b), isa.splat(0xFF00));
    (isa.xor(a, difference), isa.xor(b, difference))
}

/// The same byte in both halves of a word.
#[inline(always)]
pub(super) const fn pair(byte: u8) -> u16 {
    u16::from_le_bytes([byte, byte])
}
