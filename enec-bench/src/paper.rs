//! The paper's own parameter rule (arXiv 2604.03298, section V-B), for comparison: one base, one width and one wide width per tensor.
//!
//! Exponents are mapped to `q = b - e` in two's complement of `n` bits; lanes whose 16 values of `q` all lie below `2^m` take `m` bits
//! each, all others `n`. The rule takes the `b` with the smallest mean of `q`, the `n` that covers both sides of it with a sign, and the `m`
//! with the smallest expected size if the elements of a lane were independent. What that costs is counted on the real lanes. The
//! paper's artefact stores no header, so none is counted.

use crate::exponents::Exponents;

/// The size in bits of a tensor under the rule, `None` where it has no parameters. Elements after the last whole tile are verbatim.
pub(crate) fn bits(exponents: &Exponents) -> Option<u64> {
    let (base, wide_width) = base_and_wide_width(&exponents.histogram)?;
    let width = common_width(&exponents.histogram, base, wide_width);
    let lanes: u64 = exponents.lanes.iter().sum();
    let occurring = exponents.lanes.iter().enumerate().filter(|&(_, &lanes)| lanes > 0);
    let wide = occurring.filter(|&(bounds, _)| {
        let (smallest, largest) = (bounds >> 8, bounds & 0xFF);
        largest > base || (base - smallest) >> width != 0
    });
    let wide: u64 = wide.map(|(_, &lanes)| lanes).sum();
    let tail_bits = exponents.tail * u64::from(exponents.dtype.exponent_bits());
    let code_bits = 16 * ((lanes - wide) * u64::from(width) + wide * u64::from(wide_width));
    // One mask bit per lane.
    Some(exponents.elements() * exponents.other_bits() + tail_bits + code_bits + lanes)
}

/// The base with the smallest mean of `q`, and the width that it takes.
fn base_and_wide_width(histogram: &[u64]) -> Option<(usize, u32)> {
    let smallest = histogram.iter().position(|&count| count > 0)?;
    let largest = histogram.iter().rposition(|&count| count > 0)?;
    if smallest == largest {
        return Some((smallest, 1));
    }
    let candidates = (smallest + 1..largest).filter_map(|base| {
        // Bits of the positive values, and of the negative ones down to -(largest - base).
        let positive = (base - smallest).ilog2() + 1;
        let negative = (largest - base).next_power_of_two().ilog2();
        let width = positive.max(negative) + 1;
        let sum: u64 = histogram.iter().enumerate().map(|(e, &count)| count * q(base, e, width)).sum();
        (width <= 8).then_some((sum, base, width))
    });
    candidates.min_by_key(|&(sum, ..)| sum).map(|(_, base, width)| (base, width))
}

/// The width with the smallest expected bits per element, `n + (m - n) P(q < 2^m)^16`.
fn common_width(histogram: &[u64], base: usize, wide_width: u32) -> u32 {
    let total: u64 = histogram.iter().sum();
    let expected = |width: u32| {
        let fits = histogram.iter().enumerate().filter(|&(e, _)| q(base, e, wide_width) < 1 << width);
        let share = fits.map(|(_, &count)| count).sum::<u64>() as f64 / total as f64;
        f64::from(wide_width) - f64::from(wide_width - width) * share.powi(16)
    };
    (0..=wide_width).min_by(|&a, &b| expected(a).total_cmp(&expected(b))).unwrap_or(wide_width)
}

fn q(base: usize, exponent: usize, width: u32) -> u64 {
    (256 + base - exponent) as u64 & ((1 << width) - 1)
}
