//! How the lanes of each element type are read, split, joined and written (docs/format.md, "Splitting a value").

use enec_format::Dtype;

use super::isa::Isa;

/// An element type, known when the kernel is compiled.
pub(super) trait Float {
    const DTYPE: Dtype;

    /// The lowest bit of the exponent in its word; the highest is that before the sign.
    const EXPONENT_BIT: usize = 15 - Self::DTYPE.exponent_bits() as usize;

    /// Rotation to the left that puts the byte with the exponent into the high byte.
    const ROTATION: usize;

    /// Reads the words with the exponents of the lanes of a vector: vector `index` of `row`. What F32 has below them goes to the extra plane.
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
        (isa.load(tile, at::<I>(row, index)), isa.splat(0))
    }

    #[inline(always)]
    fn store<I: Isa>(isa: I, word: I::Vector, _: I::Vector, tile: &mut [u8], row: usize, index: usize) {
        isa.store(word, tile, at::<I>(row, index));
    }
}

impl Float for F16 {
    const DTYPE: Dtype = Dtype::F16;
    const ROTATION: usize = 14;

    #[inline(always)]
    fn load<I: Isa>(isa: I, tile: &[u8], row: usize, index: usize) -> (I::Vector, I::Vector) {
        (isa.load(tile, at::<I>(row, index)), isa.splat(0))
    }

    #[inline(always)]
    fn store<I: Isa>(isa: I, word: I::Vector, _: I::Vector, tile: &mut [u8], row: usize, index: usize) {
        isa.store(word, tile, at::<I>(row, index));
    }
}

impl Float for F32 {
    const DTYPE: Dtype = Dtype::F32;
    const ROTATION: usize = 1;

    #[inline(always)]
    fn load<I: Isa>(isa: I, tile: &[u8], row: usize, index: usize) -> (I::Vector, I::Vector) {
        let (lower, upper) = isa.load_double(tile, at::<I>(row, index));
        (upper, lower)
    }

    #[inline(always)]
    fn store<I: Isa>(isa: I, word: I::Vector, lower: I::Vector, tile: &mut [u8], row: usize, index: usize) {
        isa.store_double(lower, word, tile, at::<I>(row, index));
    }
}

/// The index of a vector of a row, in rows of words that follow each other.
#[inline(always)]
pub(super) const fn at<I: Isa>(row: usize, index: usize) -> usize {
    row * I::VECTORS + index
}

/// Splits words of rows `t` and `t + 8`. Returns the byte plane's words, and the bytes with the exponents as pairs, those of row
/// `t` in the high bytes.
///
/// One row is rotated so that its plane byte is low, the other so that it is high: then exchanging the high bytes is all.
#[inline(always)]
pub(super) fn split<I: Isa, F: Float>(isa: I, first: I::Vector, second: I::Vector) -> (I::Vector, I::Vector) {
    let first = isa.rotate_up(first, F::ROTATION);
    let second = isa.rotate_up(second, (F::ROTATION + 8) % 16);
    isa.exchange_high_bytes(first, second)
}

/// Undoes [`split`].
#[inline(always)]
pub(super) fn join<I: Isa, F: Float>(isa: I, bytes: I::Vector, exponents: I::Vector) -> (I::Vector, I::Vector) {
    let (first, second) = isa.exchange_high_bytes(bytes, exponents);
    (isa.rotate_up(first, 16 - F::ROTATION), isa.rotate_up(second, (24 - F::ROTATION) % 16))
}

/// The same byte in both halves of a word.
#[inline(always)]
pub(super) const fn pair(byte: u8) -> u16 {
    u16::from_le_bytes([byte, byte])
}
