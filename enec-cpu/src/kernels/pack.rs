//! Bit packing of 16 lanes at a time (docs/format.md, "Bit packing").
//!
//! A vector holds bytes of rows `t` and `t + 8` as a pair, row `t` in the *high* byte: the order in which
//! [`split`](super::float::split) yields them. The 8 values of a half take `width` whole bytes, so both halves are packed by the
//! same shifts, and only at the end are bytes put together to words.

use super::isa::Isa;

/// Bits `from..to` of both halves of a word.
const fn bits(from: usize, to: usize) -> u16 {
    ((1 << to) - (1 << from)) * 0x0101
}

/// Packs values of `W` bits.
#[inline(always)]
pub(super) fn pack<I: Isa, const W: usize>(isa: I, pairs: &[I::Vector; 8]) -> [I::Vector; W] {
    let mut bytes = [isa.splat(0); W];
    for (k, byte) in bytes.iter_mut().enumerate() {
        for (t, &pair) in pairs.iter().enumerate() {
            // The value lies at bits t W.. of its half, byte k at bits 8 k...
            let (value, start) = (t * W, 8 * k);
            if value + W <= start || value >= start + 8 {
                continue;
            }
            let part = if value < start {
                let cut = start - value;
                isa.and(isa.shift_down(pair, cut), isa.splat(bits(0, W - cut)))
            } else {
                let shift = value - start;
                let shifted = isa.shift_up(pair, shift);
                if shift + W > 8 { isa.and(shifted, isa.splat(bits(shift, 8))) } else { shifted }
            };
            *byte = isa.or(*byte, part);
        }
    }
    let mut words = [isa.splat(0); W];
    for (i, word) in words.iter_mut().enumerate() {
        let (low, high) = (2 * i, 2 * i + 1);
        let low = if low < W { isa.shift_down(bytes[low], 8) } else { isa.and(bytes[low - W], isa.splat(0x00FF)) };
        let high = if high < W { isa.and(bytes[high], isa.splat(0xFF00)) } else { isa.shift_up(bytes[high - W], 8) };
        *word = isa.or(low, high);
    }
    words
}

/// Undoes [`pack`].
#[inline(always)]
pub(super) fn unpack<I: Isa, const W: usize>(isa: I, words: &[I::Vector; W]) -> [I::Vector; 8] {
    let mut bytes = [isa.splat(0); W];
    for (k, byte) in bytes.iter_mut().enumerate() {
        let first = words[k / 2];
        let high = if k.is_multiple_of(2) { isa.shift_up(first, 8) } else { isa.and(first, isa.splat(0xFF00)) };
        let second = words[(k + W) / 2];
        let low =
            if (k + W).is_multiple_of(2) { isa.and(second, isa.splat(0x00FF)) } else { isa.shift_down(second, 8) };
        *byte = isa.or(high, low);
    }
    let mut pairs = [isa.splat(0); 8];
    if W == 0 {
        return pairs;
    }
    for (t, pair) in pairs.iter_mut().enumerate() {
        let (k, shift) = (t * W / 8, t * W % 8);
        let here = W.min(8 - shift);
        let low = isa.and(isa.shift_down(bytes[k], shift), isa.splat(bits(0, here)));
        *pair = if here == W {
            low
        } else {
            isa.or(low, isa.and(isa.shift_up(bytes[k + 1], here), isa.splat(bits(here, W))))
        };
    }
    pairs
}
