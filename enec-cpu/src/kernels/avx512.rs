//! The AVX-512 kernels: 32 lanes at a time, and masks that move words.

use std::arch::x86_64::*;

use enec_format::geometry::ROWS;

use super::Avx2;
use super::float::{Float, pair};
use super::isa::{AT_ONCE, Isa, Kernel};
use super::scratch::WideRows;

/// Proof that the processor has AVX-512 with VBMI2, as Intel's have had since Ice Lake and AMD's since Zen 4.
///
/// Processors with less of AVX-512 slow down when they use it, and gain little.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx512 {
    narrow: Avx2,
}

impl Avx512 {
    /// The proof, if the processor has it.
    pub(crate) fn new() -> Option<Self> {
        let has_vectors = is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512bw");
        let moves_words = is_x86_feature_detected!("avx512vbmi") && is_x86_feature_detected!("avx512vbmi2");
        // What the compiler takes AVX-512 to come with.
        let has_rest = is_x86_feature_detected!("fma") && is_x86_feature_detected!("f16c");
        let narrow = Avx2::new()?;
        (has_vectors && moves_words && is_x86_feature_detected!("avx512vl") && has_rest).then_some(Self { narrow })
    }
}

/// One call of an intrinsic that touches no memory.
macro_rules! intrinsic {
    ($call:expr) => {
        // SAFETY: an `Avx512` exists only if the processor has these features, and the intrinsic has no other precondition.
        unsafe { $call }
    };
}

/// Bits of a ternary logic operation, by what it makes of these.
mod ternary {
    pub(super) const A: i32 = 0b1111_0000;
    pub(super) const B: i32 = 0b1100_1100;
    pub(super) const C: i32 = 0b1010_1010;
}

impl Isa for Avx512 {
    type Vector = __m512i;
    type Mask = __mmask32;
    type Narrow = Avx2;
    const LANES: usize = 32;
    const FIXED_WIDTHS: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    fn vectorise<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx512f,avx512bw,avx512vl,avx512vbmi,avx512vbmi2,bmi1,popcnt")]
        fn compiled<K: Kernel>(isa: Avx512, kernel: K) -> K::Output {
            kernel.run(isa)
        }
        // SAFETY: an `Avx512` exists only if the processor has these features.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn narrow(self) -> Avx2 {
        self.narrow
    }

    #[inline(always)]
    fn load(self, words: &[u8], index: usize) -> __m512i {
        load(self, &words.as_chunks().0[index])
    }

    #[inline(always)]
    fn store(self, vector: __m512i, words: &mut [u8], index: usize) {
        store(self, vector, &mut words.as_chunks_mut().0[index]);
    }

    #[inline(always)]
    fn load_double(self, words: &[u8], index: usize) -> (__m512i, __m512i) {
        let (first, second) = (self.load(words, 2 * index), self.load(words, 2 * index + 1));
        let lower = load(self, &LOWER_HALVES);
        let upper = intrinsic!(_mm512_or_si512(lower, _mm512_set1_epi16(1)));
        intrinsic!((_mm512_permutex2var_epi16(first, lower, second), _mm512_permutex2var_epi16(first, upper, second),))
    }

    #[inline(always)]
    fn store_double(self, lower: __m512i, upper: __m512i, words: &mut [u8], index: usize) {
        // Unpacking works within 128 bits: its results are quarters of the vectors wanted, in turns.
        let even = intrinsic!(_mm512_unpacklo_epi16(lower, upper));
        let odd = intrinsic!(_mm512_unpackhi_epi16(lower, upper));
        let front = intrinsic!(_mm512_setr_epi64(0, 1, 8, 9, 2, 3, 10, 11));
        let back = intrinsic!(_mm512_setr_epi64(4, 5, 12, 13, 6, 7, 14, 15));
        self.store(intrinsic!(_mm512_permutex2var_epi64(even, front, odd)), words, 2 * index);
        self.store(intrinsic!(_mm512_permutex2var_epi64(even, back, odd)), words, 2 * index + 1);
    }

    #[inline(always)]
    fn splat(self, word: u16) -> __m512i {
        intrinsic!(_mm512_set1_epi16(word.cast_signed()))
    }

    #[inline(always)]
    fn and(self, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_and_si512(a, b))
    }

    #[inline(always)]
    fn or(self, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_or_si512(a, b))
    }

    #[inline(always)]
    fn xor(self, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_xor_si512(a, b))
    }

    #[inline(always)]
    fn select(self, mask: __mmask32, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_mask_blend_epi16(mask, b, a))
    }

    #[inline(always)]
    fn subtract_bytes(self, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_sub_epi8(a, b))
    }

    #[inline(always)]
    fn shift_up(self, vector: __m512i, count: usize) -> __m512i {
        intrinsic!(_mm512_sll_epi16(vector, _mm_cvtsi64_si128(count.cast_signed() as i64)))
    }

    #[inline(always)]
    fn shift_down(self, vector: __m512i, count: usize) -> __m512i {
        intrinsic!(_mm512_srl_epi16(vector, _mm_cvtsi64_si128(count.cast_signed() as i64)))
    }

    #[inline(always)]
    fn rotate_up(self, vector: __m512i, count: usize) -> __m512i {
        let [low, high, ..] = count.to_le_bytes();
        let count = self.splat(u16::from_le_bytes([low, high]));
        intrinsic!(_mm512_shldv_epi16(vector, vector, count))
    }

    #[inline(always)]
    fn exchange_high_bytes(self, a: __m512i, b: __m512i) -> (__m512i, __m512i) {
        use ternary::{A, B, C};
        const FIRST: i32 = A & C | B & !C & 0xFF;
        const SECOND: i32 = B & C | A & !C & 0xFF;
        let low = self.splat(0x00FF);
        intrinsic!((_mm512_ternarylogic_epi32::<FIRST>(a, b, low), _mm512_ternarylogic_epi32::<SECOND>(a, b, low)))
    }

    #[inline(always)]
    fn smaller(self, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_min_epu16(a, b))
    }

    #[inline(always)]
    fn larger(self, a: __m512i, b: __m512i) -> __m512i {
        intrinsic!(_mm512_max_epu16(a, b))
    }

    #[inline(always)]
    fn greater(self, a: __m512i, b: __m512i) -> __mmask32 {
        intrinsic!(_mm512_cmpgt_epu16_mask(a, b))
    }

    #[inline(always)]
    fn either(self, a: __mmask32, b: __mmask32) -> __mmask32 {
        a | b
    }

    #[inline(always)]
    fn mask(self, lanes: u32) -> __mmask32 {
        lanes
    }

    #[inline(always)]
    fn store_masks(self, masks: [__mmask32; AT_ONCE], bits: &mut [u8]) {
        for (bits, mask) in bits.as_chunks_mut::<4>().0[..AT_ONCE].iter_mut().zip(masks) {
            *bits = mask.to_le_bytes();
        }
    }

    #[inline(always)]
    fn lane_ranges<F: Float>(self, tile: &[u8], first: usize) -> [(__m512i, __m512i); AT_ONCE] {
        // The exponents of two rows at a time, in the bytes of a word, which compare as they are.
        let (mut bounds, exponent_mask) = ([(self.splat(0xFFFF), self.splat(0)); AT_ONCE], F::DTYPE.exponent_mask());
        for row in (0..ROWS).step_by(2) {
            self.prefetch(tile, -1, (first / AT_ONCE * ROWS + row) / 2, Self::VECTORS / AT_ONCE * ROWS / 2);
            for (index, (smallest, largest)) in bounds.iter_mut().enumerate() {
                let (even, _) = F::load(self, tile, row, first + index);
                let (odd, _) = F::load(self, tile, row + 1, first + index);
                let mut exponents = bytes_of_words(self, even, odd, F::EXPONENT_BIT);
                if exponent_mask != u8::MAX {
                    exponents = self.and(exponents, self.splat(pair(exponent_mask)));
                }
                *smallest = intrinsic!(_mm512_min_epu8(*smallest, exponents));
                *largest = intrinsic!(_mm512_max_epu8(*largest, exponents));
            }
        }
        for (smallest, largest) in &mut bounds {
            let low = self.splat(0x00FF);
            *smallest = self.smaller(self.and(*smallest, low), self.shift_down(*smallest, 8));
            *largest = self.larger(self.and(*largest, low), self.shift_down(*largest, 8));
        }
        bounds
    }

    #[inline(always)]
    fn expand(self, rows: &mut [__m512i], lanes: u32, wide: &WideRows, rank: usize) {
        for (words, row) in rows.iter_mut().zip(&wide.0) {
            let Some(side_by_side) = row[2 * rank..].first_chunk() else {
                unreachable!("no more than a block's lanes")
            };
            *words = intrinsic!(_mm512_maskz_expand_epi16(lanes, load(self, side_by_side)));
        }
    }

    #[inline(always)]
    fn compact(self, rows: &[__m512i], lanes: u32, wide: &mut WideRows, rank: usize) {
        for (&words, row) in rows.iter().zip(&mut wide.0) {
            let Some(target) = row[2 * rank..].first_chunk_mut() else { unreachable!("no more than a block's lanes") };
            // To a register: compressing to memory is slow on AMD's.
            store(self, intrinsic!(_mm512_maskz_compress_epi16(lanes, words)), target);
        }
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8], steps: isize, index: usize, count: usize) {
        self.narrow.prefetch(bytes, steps, index, count);
    }

    #[inline(always)]
    fn prefetch_to_second_level(self, bytes: &[u8], steps: isize, index: usize, count: usize) {
        self.narrow.prefetch_to_second_level(bytes, steps, index, count);
    }

    #[inline(always)]
    fn stream_line(self, source: &[u8; 64], target: &mut [u8; 64]) {
        let target = target.as_mut_ptr();
        assert!(target.addr().is_multiple_of(64));
        // SAFETY: the processor has AVX-512; the target has 64 bytes on a 64-byte boundary.
        unsafe { _mm512_stream_si512(target.cast(), load(self, source)) }
    }

    fn fence(self) {
        self.narrow.fence();
    }
}

#[inline(always)]
fn load(_: Avx512, bytes: &[u8; 64]) -> __m512i {
    // SAFETY: the processor has AVX-512; reads the 64 bytes of the array, which need no alignment.
    unsafe { _mm512_loadu_si512(bytes.as_ptr().cast()) }
}

#[inline(always)]
fn store(_: Avx512, vector: __m512i, bytes: &mut [u8; 64]) {
    // SAFETY: the processor has AVX-512; writes the 64 bytes of the array, which need no alignment.
    unsafe { _mm512_storeu_si512(bytes.as_mut_ptr().cast(), vector) }
}

/// Of each word of two vectors the 8 bits from bit `first` on, with what comes in from the next word or none: those of `b` as the high byte.
#[inline(always)]
fn bytes_of_words(_: Avx512, a: __m512i, b: __m512i, first: usize) -> __m512i {
    const HIGH_BYTES: u64 = 0xAAAA_AAAA_AAAA_AAAA;
    let [first, ..] = first.to_le_bytes();
    let control = u64::from_le_bytes([0, 0, 16, 16, 32, 32, 48, 48].map(|word| word + first)).cast_signed();
    intrinsic!({
        let control = _mm512_set1_epi64(control);
        let low = _mm512_multishift_epi64_epi8(control, a);
        _mm512_mask_multishift_epi64_epi8(low, HIGH_BYTES, control, b)
    })
}

/// Of two vectors one after the other, every other word, as 16-bit indices.
static LOWER_HALVES: [u8; 64] = {
    let mut indices = [0; 64];
    let mut lane = 0_u8;
    while lane < 32 {
        indices[2 * lane as usize] = 2 * lane;
        lane += 1;
    }
    indices
};
