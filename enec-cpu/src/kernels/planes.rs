//! The planes that all codecs have: what is left of the elements without their exponents.

use enec_format::Dtype;
use enec_format::geometry::ROWS;

use super::float::{Float, at, join, split};
use super::isa::Isa;
use super::pack::{Fixed, pack, unpack};

/// Writes the lanes of a vector to a tile's byte and extra plane and returns their exponents, as pairs.
#[inline(always)]
pub(super) fn split_lanes<I: Isa, F: Float>(
    isa: I,
    tile: &[u8],
    index: usize,
    byte_plane: &mut [u8],
    extra_plane: &mut [u8],
) -> [I::Vector; 8] {
    let (mut pairs, mut extra) = ([isa.splat(0); 8], [isa.splat(0); 8]);
    for row in 0..ROWS / 2 {
        let (first, first_lower) = F::load(isa, tile, row, index);
        let (second, second_lower) = F::load(isa, tile, row + ROWS / 2, index);
        if F::DTYPE == Dtype::F32 {
            isa.store(first_lower, extra_plane, at::<I>(row, index));
            isa.store(second_lower, extra_plane, at::<I>(row + ROWS / 2, index));
        }
        let (bytes, mut exponents) = split::<I, F>(isa, first, second);
        isa.store(bytes, byte_plane, at::<I>(row, index));
        if F::DTYPE == Dtype::F16 {
            extra[row] = isa.and(isa.shift_down(exponents, 5), isa.splat(0x0707));
            exponents = isa.and(exponents, isa.splat(0x1F1F));
        }
        pairs[row] = exponents;
    }
    if F::DTYPE == Dtype::F16 {
        for (row, words) in pack(isa, Fixed::<3>, &extra).into_iter().enumerate().take(3) {
            isa.store(words, extra_plane, at::<I>(row, index));
        }
    }
    pairs
}

/// Writes the lanes of a vector to a tile, given their exponents, as pairs, each below `2^E`. Calls `between` after each of 8 pairs of rows.
#[inline(always)]
pub(super) fn join_lanes<I: Isa, F: Float>(
    isa: I,
    byte_plane: &[u8],
    extra_plane: &[u8],
    index: usize,
    pairs: &[I::Vector; 8],
    tile: &mut [u8],
    between: impl Fn(usize),
) {
    let mut extra = [isa.splat(0); 8];
    if F::DTYPE == Dtype::F16 {
        let mut words = [isa.splat(0); 8];
        for (row, words) in words.iter_mut().enumerate().take(3) {
            *words = isa.load(extra_plane, at::<I>(row, index));
        }
        extra = unpack(isa, Fixed::<3>, &words);
    }
    for row in 0..ROWS / 2 {
        let mut exponents = pairs[row];
        if F::DTYPE == Dtype::F16 {
            exponents = isa.or(exponents, isa.shift_up(extra[row], 5));
        }
        let bytes = isa.load(byte_plane, at::<I>(row, index));
        let (first, second) = join::<I, F>(isa, bytes, exponents);
        let (mut first_lower, mut second_lower) = (isa.splat(0), isa.splat(0));
        if F::DTYPE == Dtype::F32 {
            first_lower = isa.load(extra_plane, at::<I>(row, index));
            second_lower = isa.load(extra_plane, at::<I>(row + ROWS / 2, index));
        }
        F::store(isa, first, first_lower, tile, row, index);
        F::store(isa, second, second_lower, tile, row + ROWS / 2, index);
        between(row);
    }
}
