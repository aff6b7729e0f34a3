//! The AVX2 kernels.

mod bmi2;

use std::arch::x86_64::*;

use self::bmi2::Bmi2;
use super::cascade::{PlaceTable, Tables};
use super::isa::{AT_ONCE, BitKernel, Isa, Kernel, NarrowIsa};
use super::scratch::WideRows;

/// Proof that the processor has AVX2.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Avx2 {
    bmi2: Option<Bmi2>,
}

impl Avx2 {
    /// The proof, if the processor has it.
    pub(crate) fn new() -> Option<Self> {
        (is_x86_feature_detected!("avx2") && is_x86_feature_detected!("bmi1") && is_x86_feature_detected!("popcnt"))
            .then(|| Self { bmi2: Bmi2::new() })
    }

    /// The same processor without BMI2.
    #[cfg(test)]
    pub(super) fn without_bmi2(self) -> Self {
        Self { bmi2: None }
    }
}

/// One call of an intrinsic that touches no memory.
macro_rules! intrinsic {
    ($call:expr) => {
        // SAFETY: an `Avx2` exists only if the processor has AVX2, and the intrinsic has no other precondition.
        unsafe { $call }
    };
}

impl Isa for Avx2 {
    type Vector = __m256i;
    type Mask = __m256i;
    type Narrow = Self;
    const LANES: usize = 16;
    const FIXED_WIDTHS: bool = true;
    const STREAMS: bool = true;

    #[inline(always)]
    fn vectorise<K: Kernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,bmi1,popcnt")]
        fn compiled<K: Kernel>(isa: Avx2, kernel: K) -> K::Output {
            kernel.run(isa)
        }
        // SAFETY: an `Avx2` exists only if the processor has these features.
        unsafe { compiled(self, kernel) }
    }

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    #[inline(always)]
    fn load(self, words: &[u8], index: usize) -> __m256i {
        let bytes: &[u8; 32] = &words.as_chunks().0[index];
        // SAFETY: the processor has AVX2; reads the 32 bytes of the array, which need no alignment.
        unsafe { _mm256_loadu_si256(bytes.as_ptr().cast()) }
    }

    #[inline(always)]
    fn store(self, vector: __m256i, words: &mut [u8], index: usize) {
        let bytes: &mut [u8; 32] = &mut words.as_chunks_mut().0[index];
        // SAFETY: the processor has AVX2; writes the 32 bytes of the array, which need no alignment.
        unsafe { _mm256_storeu_si256(bytes.as_mut_ptr().cast(), vector) }
    }

    #[inline(always)]
    fn load_double(self, words: &[u8], index: usize) -> (__m256i, __m256i) {
        let [first, second, third, fourth] = &words.as_chunks().0.as_chunks().0[index];
        // Packing works within 128 bits: with the second and third quarter exchanged its result is in order.
        let (even, odd) = (load_halves(self, first, third), load_halves(self, second, fourth));
        let zero = self.splat(0);
        intrinsic!((
            _mm256_packus_epi32(
                _mm256_blend_epi16::<0b1010_1010>(even, zero),
                _mm256_blend_epi16::<0b1010_1010>(odd, zero),
            ),
            _mm256_packus_epi32(_mm256_srli_epi32::<16>(even), _mm256_srli_epi32::<16>(odd)),
        ))
    }

    #[inline(always)]
    fn store_double(self, lower: __m256i, upper: __m256i, words: &mut [u8], index: usize) {
        let even = intrinsic!(_mm256_unpacklo_epi16(lower, upper));
        let odd = intrinsic!(_mm256_unpackhi_epi16(lower, upper));
        self.store(intrinsic!(_mm256_permute2x128_si256::<0x20>(even, odd)), words, 2 * index);
        self.store(intrinsic!(_mm256_permute2x128_si256::<0x31>(even, odd)), words, 2 * index + 1);
    }

    #[inline(always)]
    fn splat(self, word: u16) -> __m256i {
        intrinsic!(_mm256_set1_epi16(word.cast_signed()))
    }

    #[inline(always)]
    fn and(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_and_si256(a, b))
    }

    #[inline(always)]
    fn or(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_or_si256(a, b))
    }

    #[inline(always)]
    fn xor(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_xor_si256(a, b))
    }

    #[inline(always)]
    fn select(self, mask: __m256i, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_blendv_epi8(b, a, mask))
    }

    #[inline(always)]
    fn subtract_bytes(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_sub_epi8(a, b))
    }

    #[inline(always)]
    fn shift_up(self, vector: __m256i, count: usize) -> __m256i {
        intrinsic!(_mm256_sll_epi16(vector, _mm_cvtsi64_si128(count.cast_signed() as i64)))
    }

    #[inline(always)]
    fn shift_down(self, vector: __m256i, count: usize) -> __m256i {
        intrinsic!(_mm256_srl_epi16(vector, _mm_cvtsi64_si128(count.cast_signed() as i64)))
    }

    #[inline(always)]
    fn exchange_high_bytes(self, a: __m256i, b: __m256i) -> (__m256i, __m256i) {
        // Two blends: no more than the four operations without them, and half of them on AMD's.
        let high = self.splat(0xFF00);
        (self.select(high, b, a), self.select(high, a, b))
    }

    #[inline(always)]
    fn smaller(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_min_epu16(a, b))
    }

    #[inline(always)]
    fn larger(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_max_epu16(a, b))
    }

    #[inline(always)]
    fn greater(self, a: __m256i, b: __m256i) -> __m256i {
        intrinsic!(_mm256_cmpgt_epi16(a, b))
    }

    #[inline(always)]
    fn either(self, a: __m256i, b: __m256i) -> __m256i {
        self.or(a, b)
    }

    #[inline(always)]
    fn mask(self, lanes: u32) -> __m256i {
        let lane = intrinsic!(_mm256_setr_epi16(
            1,
            2,
            4,
            8,
            16,
            32,
            64,
            128,
            256,
            512,
            1024,
            2048,
            4096,
            8192,
            16384,
            i16::MIN
        ));
        let [low, high, ..] = lanes.to_le_bytes();
        let lanes = self.splat(u16::from_le_bytes([low, high]));
        intrinsic!(_mm256_cmpeq_epi16(_mm256_and_si256(lanes, lane), lane))
    }

    #[inline(always)]
    fn store_masks(self, masks: [__m256i; AT_ONCE], bits: &mut [u8]) {
        for (bits, masks) in bits.as_chunks_mut::<4>().0[..AT_ONCE / 2].iter_mut().zip(masks.as_chunks::<2>().0) {
            // Packing works within 128 bits: put its four results in order.
            let bytes = intrinsic!(_mm256_permute4x64_epi64::<0b11_01_10_00>(_mm256_packs_epi16(masks[0], masks[1])));
            *bits = intrinsic!(_mm256_movemask_epi8(bytes)).to_le_bytes();
        }
    }

    #[inline(always)]
    fn expand(self, rows: &mut [__m256i], lanes: u32, wide: &WideRows, rank: usize) {
        let (controls, ranks) = shuffle(self, &EXPAND, lanes, rank);
        for (words, row) in rows.iter_mut().zip(&wide.0) {
            let side_by_side = load_halves(self, window(row, ranks[0]), window(row, ranks[1]));
            *words = intrinsic!(_mm256_shuffle_epi8(side_by_side, controls));
        }
    }

    #[inline(always)]
    fn compact(self, rows: &[__m256i], lanes: u32, wide: &mut WideRows, rank: usize) {
        let (controls, ranks) = shuffle(self, &COMPACT, lanes, rank);
        for (&words, row) in rows.iter().zip(&mut wide.0) {
            let words = intrinsic!(_mm256_shuffle_epi8(words, controls));
            let halves = intrinsic!([_mm256_castsi256_si128(words), _mm256_extracti128_si256::<1>(words)]);
            // In this order: what the first half writes behind its lanes is overwritten by the second.
            store_half(self, halves[0], window_mut(row, ranks[0]));
            store_half(self, halves[1], window_mut(row, ranks[1]));
        }
    }

    #[inline(always)]
    fn prefetch(self, bytes: &[u8], steps: isize, index: usize, count: usize) {
        prefetch::<_MM_HINT_T0>(bytes, steps, index, count);
    }

    #[inline(always)]
    fn prefetch_to_second_level(self, bytes: &[u8], steps: isize, index: usize, count: usize) {
        prefetch::<_MM_HINT_T1>(bytes, steps, index, count);
    }

    #[inline(always)]
    fn stream_line(self, source: &[u8; 64], target: &mut [u8; 64]) {
        let (source, target) = (source.as_ptr().cast::<__m256i>(), target.as_mut_ptr().cast::<__m256i>());
        assert!(target.addr().is_multiple_of(32));
        // SAFETY: the processor has AVX2; both point to 64 bytes, and the target's lie on a 32-byte boundary.
        unsafe {
            let (first, second) = (_mm256_loadu_si256(source), _mm256_loadu_si256(source.add(1)));
            _mm256_stream_si256(target, first);
            _mm256_stream_si256(target.add(1), second);
        }
    }

    fn fence(self) {
        // SAFETY: every x86-64 processor has the instruction.
        unsafe { _mm_sfence() }
    }
}

impl NarrowIsa for Avx2 {
    type Table = __m256i;
    // Unpacking works within 128 bits.
    const LANE_PAIRS: [usize; 8] = [0, 1, 4, 5, 2, 3, 6, 7];

    #[inline(always)]
    fn vectorise_with_bits<K: BitKernel>(self, kernel: K) -> K::Output {
        #[target_feature(enable = "avx2,bmi1,bmi2,popcnt")]
        fn compiled<K: BitKernel>(isa: Avx2, bits: Bmi2, kernel: K) -> K::Output {
            kernel.run(isa, bits)
        }
        #[target_feature(enable = "avx2,bmi1,popcnt")]
        fn compiled_without_bmi2<K: BitKernel>(isa: Avx2, kernel: K) -> K::Output {
            kernel.run(isa, Tables)
        }
        match self.bmi2 {
            // SAFETY: an `Avx2` and a `Bmi2` exist only if the processor has these features.
            Some(bits) => unsafe { compiled(self, bits, kernel) },
            // SAFETY: an `Avx2` exists only if the processor has these features.
            None => unsafe { compiled_without_bmi2(self, kernel) },
        }
    }

    #[inline(always)]
    fn interleave(self, first: __m256i, second: __m256i) -> [__m256i; 2] {
        intrinsic!([_mm256_unpacklo_epi16(first, second), _mm256_unpackhi_epi16(first, second)])
    }

    #[inline(always)]
    fn separate(self, lanes: [__m256i; 2]) -> [__m256i; 2] {
        let [first, second] = shuffle_each(self, lanes, &[0, 1, 4, 5, 8, 9, 12, 13, 2, 3, 6, 7, 10, 11, 14, 15]);
        intrinsic!([_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second)])
    }

    #[inline(always)]
    fn lane_bytes(self, lanes: [__m256i; 2]) -> [__m256i; 2] {
        let [first, second] = shuffle_each(self, lanes, &[2, 0, 6, 4, 10, 8, 14, 12, 3, 1, 7, 5, 11, 9, 15, 13]);
        intrinsic!([_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second)])
    }

    #[inline(always)]
    fn lane_strings(self, bytes: [__m256i; 2]) -> [__m256i; 2] {
        let [first, second] = bytes;
        let lanes = intrinsic!([_mm256_unpacklo_epi64(first, second), _mm256_unpackhi_epi64(first, second)]);
        shuffle_each(self, lanes, &[1, 9, 0, 8, 3, 11, 2, 10, 5, 13, 4, 12, 7, 15, 6, 14])
    }

    #[inline(always)]
    fn table(self, bytes: &[u8; 16]) -> __m256i {
        load_halves(self, bytes, bytes)
    }

    #[inline(always)]
    fn lookup(self, table: &__m256i, indices: __m256i) -> __m256i {
        intrinsic!(_mm256_shuffle_epi8(*table, indices))
    }

    #[inline(always)]
    fn places(self, exponents: &[__m256i; 8], table: &PlaceTable) -> [__m256i; 8] {
        // All complements are 0 but those of symbols, so one or per row is all that joins them.
        let mut complements = [self.splat(0); 8];
        for (upper, row) in table.rows() {
            let (upper, row) = (self.splat(u16::from_le_bytes([upper; 2])), self.table(row));
            for (complement, &exponent) in complements.iter_mut().zip(exponents) {
                // A lower half if the upper one is this row's, or else something that a shuffle takes for zero.
                let index = intrinsic!(_mm256_adds_epu8(_mm256_xor_si256(exponent, upper), _mm256_set1_epi8(0x70)));
                *complement = self.or(*complement, intrinsic!(_mm256_shuffle_epi8(row, index)));
            }
        }
        for complement in &mut complements {
            *complement = self.xor(*complement, self.splat(0x0F0F));
        }
        complements
    }

    #[inline(always)]
    fn is_zero(self, vector: __m256i) -> bool {
        intrinsic!(_mm256_testz_si256(vector, vector)) == 1
    }
}

/// See [`Isa::prefetch`].
#[inline(always)]
fn prefetch<const HINT: i32>(bytes: &[u8], steps: isize, index: usize, count: usize) {
    let share = bytes.len() / count;
    let mut offset = 0;
    while offset < share {
        let address =
            bytes.as_ptr().wrapping_offset(steps * bytes.len().cast_signed()).wrapping_add(index * share + offset);
        // SAFETY: every x86-64 processor has the instruction, and it may be given any address.
        unsafe { _mm_prefetch::<HINT>(address.cast()) }
        offset += 64;
    }
}

/// Moves the bytes of each half of both vectors.
#[inline(always)]
fn shuffle_each(isa: Avx2, vectors: [__m256i; 2], order: &[u8; 16]) -> [__m256i; 2] {
    let order = load_halves(isa, order, order);
    intrinsic!([_mm256_shuffle_epi8(vectors[0], order), _mm256_shuffle_epi8(vectors[1], order)])
}

/// Two times 16 bytes in one vector.
#[inline(always)]
fn load_halves(_: Avx2, first: &[u8; 16], second: &[u8; 16]) -> __m256i {
    let (first, second) = (first.as_ptr().cast(), second.as_ptr().cast());
    // SAFETY: the processor has AVX2; reads the 16 bytes of each array, which need no alignment.
    unsafe { _mm256_inserti128_si256::<1>(_mm256_castsi128_si256(_mm_loadu_si128(first)), _mm_loadu_si128(second)) }
}

#[inline(always)]
fn store_half(_: Avx2, half: __m128i, bytes: &mut [u8; 16]) {
    // SAFETY: the processor has AVX2; writes the 16 bytes of the array, which need no alignment.
    unsafe { _mm_storeu_si128(bytes.as_mut_ptr().cast(), half) }
}

/// 8 columns of a row of wide lanes, from `rank` on.
#[inline(always)]
fn window<const N: usize>(row: &[u8; N], rank: usize) -> &[u8; 16] {
    match row[2 * rank..].first_chunk() {
        Some(window) => window,
        None => unreachable!("no more than a block's lanes"),
    }
}

/// As [`window`].
#[inline(always)]
fn window_mut<const N: usize>(row: &mut [u8; N], rank: usize) -> &mut [u8; 16] {
    match row[2 * rank..].first_chunk_mut() {
        Some(window) => window,
        None => unreachable!("no more than a block's lanes"),
    }
}

/// The byte shuffle of two times 8 lanes, and the ranks at which their wide lanes start.
#[inline(always)]
fn shuffle(isa: Avx2, ShuffleTable(table): &ShuffleTable, lanes: u32, rank: usize) -> (__m256i, [usize; 2]) {
    let [first, second, ..] = lanes.to_le_bytes();
    let controls = load_halves(isa, &table[usize::from(first)], &table[usize::from(second)]);
    (controls, [rank, rank + first.count_ones() as usize])
}

/// Byte shuffles of 8 lanes, for each mask of them. Aligned, so that none lies in two cache lines, or even two pages.
#[repr(align(64))]
struct ShuffleTable([[u8; 16]; 256]);

/// A shuffle index that yields zero.
const ZERO: u8 = 0x80;

/// For each mask of 8 lanes, the byte shuffle that moves words from the front, in order, into the set lanes, zero elsewhere.
static EXPAND: ShuffleTable = {
    let mut table = [[ZERO; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut rank) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][2 * lane] = 2 * rank;
                table[mask][2 * lane + 1] = 2 * rank + 1;
                rank += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    ShuffleTable(table)
};

/// For each mask of 8 lanes, the byte shuffle that moves the set lanes' words to the front, in order, zero behind them.
static COMPACT: ShuffleTable = {
    let mut table = [[ZERO; 16]; 256];
    let mut mask = 0;
    while mask < 256 {
        let (mut lane, mut rank) = (0, 0);
        while lane < 8 {
            if mask >> lane & 1 == 1 {
                table[mask][2 * rank] = 2 * lane;
                table[mask][2 * rank + 1] = 2 * lane + 1;
                rank += 1;
            }
            lane += 1;
        }
        mask += 1;
    }
    ShuffleTable(table)
};
