//! The symbols and levels of codec 2, by counts of exponents.

use std::cmp::Reverse;

use enec_format::geometry::{LEVEL_SYMBOLS, MAX_LEVELS};
use enec_format::{Cascade, Dtype, Levels};

use super::{SAMPLE_BLOCKS, sampled_blocks};
use crate::histogram::Histogram;

/// The best cascade for a tensor, by the same sample as [`search`](super::search).
///
/// Exponents rank by how often they occur, ties by the smaller exponent. The number of levels is the one with the smallest segments; ties go
/// to the smaller number.
///
/// # Panics
///
/// If `dtype` is opaque.
#[must_use]
pub fn search_cascade(dtype: Dtype, elements: &[u8]) -> Cascade {
    search_cascade_sampled(dtype, &[elements], SAMPLE_BLOCKS)
}

/// The best cascade for several tensors of one dtype, as [`search_sampled`](super::search_sampled) has it for the two windows.
///
/// # Panics
///
/// If `dtype` is opaque.
#[must_use]
pub fn search_cascade_sampled(dtype: Dtype, tensors: &[&[u8]], blocks: usize) -> Cascade {
    let blocks = sampled_blocks(dtype, tensors, blocks).map(|block| Histogram::of(dtype, block));
    best(dtype, &Vec::from_iter(blocks))
}

pub(super) fn best(dtype: Dtype, blocks: &[Histogram]) -> Cascade {
    assert!(dtype != Dtype::Opaque, "opaque bytes have no exponents");
    let total = |exponent: u8| blocks.iter().map(|block| block.of_exponent(exponent)).sum::<u64>();
    let mut ranked: Vec<u8> = (0..=dtype.exponent_mask()).collect();
    ranked.sort_by_cached_key(|&exponent| (Reverse(total(exponent)), exponent));
    let cascades = (1..=MAX_LEVELS).map(|levels| {
        Cascade::new(dtype, &ranked[..LEVEL_SYMBOLS * levels]).unwrap_or_else(|_| unreachable!("distinct exponents"))
    });
    let cost = |cascade: &Cascade| blocks.iter().map(|block| segment_len(block, *cascade)).sum::<u64>();
    cascades.min_by_key(cost).unwrap_or_else(|| unreachable!("five to choose from"))
}

/// Bytes of the segment of a block with these counts.
pub(super) fn segment_len(block: &Histogram, cascade: Cascade) -> u64 {
    let mut reached = [0; MAX_LEVELS + 1];
    let mut rest: u64 = block.counts().iter().sum();
    let mut symbols = cascade.symbols().chunks(LEVEL_SYMBOLS);
    let reached = &mut reached[..=usize::from(cascade.levels())];
    for reached in &mut *reached {
        *reached = usize::try_from(rest).unwrap_or(usize::MAX);
        rest -= symbols.next().unwrap_or(&[]).iter().map(|&symbol| block.of_exponent(symbol)).sum::<u64>();
    }
    Levels::new(reached).segment_len() as u64
}
