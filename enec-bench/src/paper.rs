//! The paper's parameter rule (arXiv 2604.03298, section V-B), for comparison: one base, one common width and one wide width per tensor.
//!
//! Exponents are mapped to `q = base - e` in two's complement of `n` bits, where `n` is just wide enough for the tensor's range; lanes
//! whose 16 values all fit `m` bits take `m` bits each, all others `n`. The best base and `m` are found exhaustively, and the paper's
//! artefact stores no header: this is the most favourable reading.

use crate::exponents::Exponents;

/// The smallest size in bits of a tensor under the rule. Elements after the last whole tile are verbatim.
pub(crate) fn best_bits(exponents: &Exponents) -> u64 {
    let lanes: Vec<(usize, usize, u64)> = exponents
        .lanes
        .iter()
        .enumerate()
        .filter(|&(_, &lanes)| lanes > 0)
        .map(|(bounds, &lanes)| (bounds >> 8, bounds & 0xFF, lanes))
        .collect();
    let count: u64 = lanes.iter().map(|lane| lane.2).sum();
    let smallest = lanes.iter().map(|lane| lane.0).min().unwrap_or(0);
    let largest = lanes.iter().map(|lane| lane.1).max().unwrap_or(0);
    let wide_width = u64::from(usize::BITS - (largest - smallest).leading_zeros());
    let code_bits = (0..=wide_width)
        .flat_map(|width| (smallest..=largest).map(move |base| (width, base)))
        .map(|(width, base)| {
            let is_wide = |&&(low, high, _): &&(usize, usize, u64)| high > base || (base - low) >> width != 0;
            let wide: u64 = lanes.iter().filter(is_wide).map(|lane| lane.2).sum();
            16 * (count * width + wide * (wide_width - width))
        })
        .min()
        .unwrap_or(0);
    let tail_bits = exponents.tail * u64::from(exponents.dtype.exponent_bits());
    // One mask bit per lane.
    exponents.elements() * exponents.other_bits() + tail_bits + code_bits + count
}
