//! Bit packing of 16 lanes at a time (docs/format.md, "Bit packing").
//!
//! A vector holds bytes of rows `t` and `t + 8` as a pair, row `t` in the *high* byte: the order in which
//! [`split`](super::float::split) yields them. The 8 values of a half take `width` whole bytes, so both halves are packed by the
//! same shifts, and only at the end are bytes put together to words.

use super::float::pair;
use super::isa::Isa;

/// A width of packed values, 0 to 8 bits.
pub(super) trait Width: Copy {
    /// The bits.
    fn bits(self) -> usize;
}

/// A width that is known when the kernel is compiled: its loops become straight code.
#[derive(Debug, Clone, Copy)]
pub(super) struct Fixed<const BITS: usize>;

/// A width that is known when the kernel runs.
#[derive(Debug, Clone, Copy)]
pub(super) struct Any(pub(super) usize);

impl<const BITS: usize> Width for Fixed<BITS> {
    #[inline(always)]
    fn bits(self) -> usize {
        BITS
    }
}

impl Width for Any {
    #[inline(always)]
    fn bits(self) -> usize {
        self.0
    }
}

/// Evaluates an expression with `$width` as a [`Width`]: known to the compiler if the instruction set wants it.
macro_rules! with_width {
    ($isa:ty, $bits:expr, $width:ident => $run:expr) => {
        match (<$isa>::FIXED_WIDTHS, $bits) {
            (false, bits) => with_width!(@ $width = $crate::kernels::pack::Any(usize::from(bits)), $run),
            (true, 0) => with_width!(@ $width = $crate::kernels::pack::Fixed::<0>, $run),
            (true, 1) => with_width!(@ $width = $crate::kernels::pack::Fixed::<1>, $run),
            (true, 2) => with_width!(@ $width = $crate::kernels::pack::Fixed::<2>, $run),
            (true, 3) => with_width!(@ $width = $crate::kernels::pack::Fixed::<3>, $run),
            (true, 4) => with_width!(@ $width = $crate::kernels::pack::Fixed::<4>, $run),
            (true, 5) => with_width!(@ $width = $crate::kernels::pack::Fixed::<5>, $run),
            (true, 6) => with_width!(@ $width = $crate::kernels::pack::Fixed::<6>, $run),
            (true, 7) => with_width!(@ $width = $crate::kernels::pack::Fixed::<7>, $run),
            (true, _) => with_width!(@ $width = $crate::kernels::pack::Fixed::<8>, $run),
        }
    };
    (@ $width:ident = $value:expr, $run:expr) => {{
        let $width = $value;
        $run
    }};
}
pub(super) use with_width;

/// The lowest `width` bits of a byte.
pub(super) const fn low_bits(width: usize) -> u8 {
    if width == 0 { 0 } else { 0xFF >> (8 - width) }
}

/// Bits `from..to` of both bytes of a pair.
#[inline(always)]
pub(super) fn bits(from: usize, to: usize) -> u16 {
    pair(low_bits(to) - low_bits(from))
}

/// Packs values of `width` bits into as many words; the words behind them are zero.
#[inline(always)]
pub(super) fn pack<I: Isa, W: Width>(isa: I, width: W, pairs: &[I::Vector; 8]) -> [I::Vector; 8] {
    let width = width.bits();
    let (mut bytes, mut words) = ([isa.splat(0); 8], [isa.splat(0); 8]);
    if width == 0 {
        return words;
    }
    for (t, &pair) in pairs.iter().enumerate() {
        let (k, shift) = (t * width / 8, t * width % 8);
        if shift + width <= 8 {
            bytes[k] = isa.or(bytes[k], isa.shift_up(pair, shift));
        } else {
            // The masks also stop what a shift of words moves from one byte of the pair into the other.
            let here = 8 - shift;
            bytes[k] = isa.or(bytes[k], isa.and(isa.shift_up(pair, shift), isa.splat(bits(shift, 8))));
            bytes[k + 1] = isa.and(isa.shift_down(pair, here), isa.splat(bits(0, width - here)));
        }
    }
    // String byte k is the high byte of pair k, string byte k + width its low byte.
    for (i, word) in words.iter_mut().enumerate().take(width) {
        let (low, high) = (2 * i, 2 * i + 1);
        let low =
            if low < width { isa.shift_down(bytes[low], 8) } else { isa.and(bytes[low - width], isa.splat(0x00FF)) };
        let high =
            if high < width { isa.and(bytes[high], isa.splat(0xFF00)) } else { isa.shift_up(bytes[high - width], 8) };
        *word = isa.or(low, high);
    }
    words
}

/// Undoes [`pack`].
#[inline(always)]
pub(super) fn unpack<I: Isa, W: Width>(isa: I, width: W, words: &[I::Vector; 8]) -> [I::Vector; 8] {
    let width = width.bits();
    let (mut bytes, mut pairs) = ([isa.splat(0); 8], [isa.splat(0); 8]);
    if width == 0 {
        return pairs;
    }
    for k in 0..width {
        let (high, low) = (words[k / 2], words[(k + width) / 2]);
        let high = if k.is_multiple_of(2) { isa.shift_up(high, 8) } else { isa.and(high, isa.splat(0xFF00)) };
        let low = if (k + width).is_multiple_of(2) { isa.and(low, isa.splat(0x00FF)) } else { isa.shift_down(low, 8) };
        bytes[k] = isa.or(high, low);
    }
    for (t, pair) in pairs.iter_mut().enumerate() {
        let (k, shift) = (t * width / 8, t * width % 8);
        let here = width.min(8 - shift);
        *pair = isa.and(isa.shift_down(bytes[k], shift), isa.splat(bits(0, here)));
        if here < width {
            let rest = isa.and(isa.shift_up(bytes[k + 1], here), isa.splat(bits(here, width)));
            *pair = isa.or(*pair, rest);
        }
    }
    pairs
}
