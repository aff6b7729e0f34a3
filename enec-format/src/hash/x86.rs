//! XXH3-64, seed 0, of bytes that come part by part, with the vectors of x86 processors.
//!
//! The library keeps its accumulators in memory between stripes when bytes come in parts, and knows no AVX-512. Whoever decodes with checksums
//! waits for that: docs/benchmarking.md, "Throughput", has what this module brings.
//!
//! The algorithm is that of the xxHash specification for large inputs; shorter ones go to the library.

use std::arch::is_x86_feature_detected;
use std::arch::x86_64::*;

use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, RawHasher, SecretBuffer};

/// Bytes of a stripe, one word for each accumulator.
const STRIPE: usize = 64;

/// Bytes between the keys of a stripe, in the secret, and those of the next one.
const KEY_STEP: usize = 8;

/// Where the last keys start.
const LAST_KEYS: usize = DEFAULT_SECRET_LENGTH - STRIPE;

/// Stripes between two scramblings: as many as there are keys.
const BLOCK_STRIPES: usize = LAST_KEYS / KEY_STEP;

/// Bytes of the longest input that has an algorithm of its own.
const SHORT: usize = 240;

const PRIME32_1: u64 = 0x9E37_79B1;
const PRIME32_2: u64 = 0x85EB_CA77;
const PRIME32_3: u64 = 0xC2B2_AE3D;
const PRIME64_1: u64 = 0x9E37_79B1_85EB_CA87;
const PRIME64_2: u64 = 0xC2B2_AE3D_27D4_EB4F;
const PRIME64_3: u64 = 0x1656_67B1_9E37_79F9;
const PRIME64_4: u64 = 0x85EB_CA77_C2B2_AE63;
const PRIME64_5: u64 = 0x27D4_EB2F_1656_67C5;
const PRIME_MX1: u64 = 0x1656_6791_9E37_79F9;

/// What the keys are taken from.
type Secret = [u8; DEFAULT_SECRET_LENGTH];

/// Bytes that are hashed one after the other.
pub(super) struct Hasher {
    isa: Isa,
    secret: &'static Secret,
    /// Eight words: of all whole stripes.
    accumulators: [u8; STRIPE],
    /// Of all but the last of them, which may turn out to be the last of the input: that one is treated in another way.
    but_last: [u8; STRIPE],
    /// Stripes since the last scrambling.
    stripes: usize,
    /// The last whole stripe, and behind it what there is of the next.
    window: [u8; 2 * STRIPE],
    pending: usize,
    /// The first bytes: all of a short input.
    start: [u8; SHORT],
    /// Bytes in all.
    len: usize,
}

impl Hasher {
    /// Of no bytes yet; none if the processor has no such vectors.
    pub(super) fn new() -> Option<Self> {
        [Isa::Avx512, Isa::Avx2].into_iter().find_map(Self::with)
    }

    fn with(isa: Isa) -> Option<Self> {
        let words = [PRIME32_3, PRIME64_1, PRIME64_2, PRIME64_3, PRIME64_4, PRIME32_2, PRIME64_5, PRIME32_1];
        let mut accumulators = [0; STRIPE];
        for (bytes, word) in accumulators.as_chunks_mut().0.iter_mut().zip(words) {
            *bytes = word.to_le_bytes();
        }
        isa.is_available().then(|| Self {
            isa,
            secret: RawHasher::new(SecretBuffer::default()).into_secret(),
            accumulators,
            but_last: accumulators,
            stripes: 0,
            window: [0; 2 * STRIPE],
            pending: 0,
            start: [0; SHORT],
            len: 0,
        })
    }

    /// Adds bytes behind those that came before.
    pub(super) fn write(&mut self, mut bytes: &[u8]) {
        if let Some(start) = self.start.get_mut(self.len..) {
            let first = start.len().min(bytes.len());
            start[..first].copy_from_slice(&bytes[..first]);
        }
        self.len += bytes.len();
        let mut first = [[0; STRIPE]];
        let mut completed = &first[..0];
        if self.pending > 0 {
            let (front, rest) = bytes.split_at(bytes.len().min(STRIPE - self.pending));
            self.window[STRIPE + self.pending..][..front.len()].copy_from_slice(front);
            (self.pending, bytes) = (self.pending + front.len(), rest);
            if self.pending < STRIPE {
                return;
            }
            first = [self.window.as_chunks().0[1]];
            completed = &first;
        }
        let (stripes, rest) = bytes.as_chunks();
        self.accumulate([completed, stripes]);
        if let Some(last) = stripes.last().or(completed.last()) {
            self.window[..STRIPE].copy_from_slice(last);
        }
        self.window[STRIPE..][..rest.len()].copy_from_slice(rest);
        self.pending = rest.len();
    }

    /// The hash of all that came.
    pub(super) fn finish(&self) -> u64 {
        if self.len <= SHORT {
            return XxHash3_64::oneshot(&self.start[..self.len]);
        }
        let last = &self.window[self.pending..];
        let (data, keys) = (words(last), words(&self.secret[LAST_KEYS - 7..]));
        let mut accumulators = words(if self.pending > 0 { &self.accumulators } else { &self.but_last });
        for (index, accumulator) in accumulators.iter_mut().enumerate() {
            let keyed = data[index] ^ keys[index];
            let product = (keyed & 0xFFFF_FFFF).wrapping_mul(keyed >> 32);
            *accumulator = accumulator.wrapping_add(product).wrapping_add(data[index ^ 1]);
        }
        let keys = words(&self.secret[11..]);
        let mut hash = (self.len as u64).wrapping_mul(PRIME64_1);
        for index in (0..8).step_by(2) {
            let [first, second] = [index, index + 1].map(|index| accumulators[index] ^ keys[index]);
            let upper = ((u128::from(first) * u128::from(second)) >> 64) as u64;
            hash = hash.wrapping_add(first.wrapping_mul(second) ^ upper);
        }
        hash ^= hash >> 37;
        hash = hash.wrapping_mul(PRIME_MX1);
        hash ^ (hash >> 32)
    }

    /// Adds whole stripes.
    fn accumulate(&mut self, stripes: [&[[u8; STRIPE]]; 2]) {
        // SAFETY: a hasher exists only if the processor has its instruction set.
        unsafe {
            match self.isa {
                Isa::Avx2 => self.accumulate_avx2(stripes),
                Isa::Avx512 => self.accumulate_avx512(stripes),
            }
        }
    }

    #[target_feature(enable = "avx2")]
    fn accumulate_avx2(&mut self, stripes: [&[[u8; STRIPE]]; 2]) {
        self.accumulate_with::<[__m256i; 2]>(stripes);
    }

    #[target_feature(enable = "avx512f")]
    fn accumulate_avx512(&mut self, stripes: [&[[u8; STRIPE]]; 2]) {
        self.accumulate_with::<__m512i>(stripes);
    }

    #[inline(always)]
    fn accumulate_with<W: Words>(&mut self, stripes: [&[[u8; STRIPE]]; 2]) {
        let (mut but_last, mut all) = (W::load(&self.but_last), W::load(&self.accumulators));
        for mut stripes in stripes {
            while !stripes.is_empty() {
                let (front, rest) = stripes.split_at(stripes.len().min(BLOCK_STRIPES - self.stripes));
                // A whole block is a loop of known length.
                (but_last, all) = match <&[_; BLOCK_STRIPES]>::try_from(front) {
                    Ok(block) => accumulate(all, block, self.secret, 0),
                    Err(_) => accumulate(all, front, self.secret, self.stripes),
                };
                (self.stripes, stripes) = (self.stripes + front.len(), rest);
                if self.stripes == BLOCK_STRIPES {
                    all = all.scramble(W::load(keys_at(self.secret, LAST_KEYS)));
                    self.stripes = 0;
                }
            }
        }
        but_last.store(&mut self.but_last);
        all.store(&mut self.accumulators);
    }
}

/// Adds stripes of one block that come behind `before` others. Returns the accumulators without the last of them and with it.
#[inline(always)]
fn accumulate<W: Words>(mut accumulators: W, stripes: &[[u8; STRIPE]], secret: &Secret, before: usize) -> (W, W) {
    let product = |stripe: W, index| {
        let keys = W::load(keys_at(secret, (before + index) * KEY_STEP));
        stripe.xor(keys).product_of_halves()
    };
    let Some((last, front)) = stripes.split_last() else { return (accumulators, accumulators) };
    // A stripe's words go to the accumulators beside their own: summed up apart, they are exchanged once.
    let mut sum = W::zero();
    for (index, stripe) in front.iter().enumerate() {
        let stripe = W::load(stripe);
        accumulators = accumulators.add(product(stripe, index));
        sum = sum.add(stripe);
    }
    let (but_last, last) = (accumulators.add(sum.exchange()), W::load(last));
    (but_last, but_last.add(product(last, front.len())).add(last.exchange()))
}

#[inline(always)]
fn keys_at(secret: &Secret, start: usize) -> &[u8; STRIPE] {
    match secret[start..].first_chunk() {
        Some(keys) => keys,
        None => unreachable!("there are keys for every stripe of a block"),
    }
}

/// Eight little-endian words.
fn words(bytes: &[u8]) -> [u64; 8] {
    core::array::from_fn(|index| u64::from_le_bytes(bytes.as_chunks().0[index]))
}

/// The vectors that a processor has.
#[derive(Clone, Copy)]
enum Isa {
    Avx2,
    Avx512,
}

impl Isa {
    fn is_available(self) -> bool {
        match self {
            Self::Avx2 => is_x86_feature_detected!("avx2"),
            // Older processors with AVX-512 slow down when they multiply with it.
            Self::Avx512 => is_x86_feature_detected!("avx512f") && is_x86_feature_detected!("avx512vbmi2"),
        }
    }
}

/// Eight words in vectors of one instruction set. All methods are inlined into the function that is compiled for it.
trait Words: Copy {
    fn zero() -> Self;
    fn load(bytes: &[u8; STRIPE]) -> Self;
    fn store(self, bytes: &mut [u8; STRIPE]);
    fn xor(self, other: Self) -> Self;
    fn add(self, other: Self) -> Self;
    /// Of each word the lower half times the upper half.
    fn product_of_halves(self) -> Self;
    /// Exchanges words 0 and 1, 2 and 3 and so on.
    fn exchange(self) -> Self;
    /// What is done to the accumulators after each block.
    fn scramble(self, keys: Self) -> Self;
}

/// An intrinsic of an instruction set, for whose processors alone the functions are compiled that all this is inlined into.
macro_rules! intrinsic {
    ($call:expr) => {
        // SAFETY: the processor has it, and loads and stores are of whole arrays, which need no alignment.
        unsafe { $call }
    };
}

impl Words for __m512i {
    #[inline(always)]
    fn zero() -> Self {
        intrinsic!(_mm512_setzero_si512())
    }

    #[inline(always)]
    fn load(bytes: &[u8; STRIPE]) -> Self {
        intrinsic!(_mm512_loadu_si512(bytes.as_ptr().cast()))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; STRIPE]) {
        intrinsic!(_mm512_storeu_si512(bytes.as_mut_ptr().cast(), self))
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        intrinsic!(_mm512_xor_si512(self, other))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        intrinsic!(_mm512_add_epi64(self, other))
    }

    #[inline(always)]
    fn product_of_halves(self) -> Self {
        intrinsic!(_mm512_mul_epu32(self, _mm512_srli_epi64::<32>(self)))
    }

    #[inline(always)]
    fn exchange(self) -> Self {
        intrinsic!(_mm512_shuffle_epi32::<0b01_00_11_10>(self))
    }

    #[inline(always)]
    fn scramble(self, keys: Self) -> Self {
        let mixed = self.xor(keys).xor(intrinsic!(_mm512_srli_epi64::<47>(self)));
        intrinsic!({
            let prime = _mm512_set1_epi64(PRIME32_1.cast_signed());
            let upper = _mm512_mul_epu32(_mm512_srli_epi64::<32>(mixed), prime);
            _mm512_add_epi64(_mm512_mul_epu32(mixed, prime), _mm512_slli_epi64::<32>(upper))
        })
    }
}

impl Words for [__m256i; 2] {
    #[inline(always)]
    fn zero() -> Self {
        intrinsic!([_mm256_setzero_si256(); 2])
    }

    #[inline(always)]
    fn load(bytes: &[u8; STRIPE]) -> Self {
        let (halves, _) = bytes.as_chunks::<32>();
        [0, 1].map(|half| intrinsic!(_mm256_loadu_si256(halves[half].as_ptr().cast())))
    }

    #[inline(always)]
    fn store(self, bytes: &mut [u8; STRIPE]) {
        for (half, bytes) in self.into_iter().zip(bytes.as_chunks_mut::<32>().0) {
            intrinsic!(_mm256_storeu_si256(bytes.as_mut_ptr().cast(), half));
        }
    }

    #[inline(always)]
    fn xor(self, other: Self) -> Self {
        [0, 1].map(|half| intrinsic!(_mm256_xor_si256(self[half], other[half])))
    }

    #[inline(always)]
    fn add(self, other: Self) -> Self {
        [0, 1].map(|half| intrinsic!(_mm256_add_epi64(self[half], other[half])))
    }

    #[inline(always)]
    fn product_of_halves(self) -> Self {
        self.map(|half| intrinsic!(_mm256_mul_epu32(half, _mm256_srli_epi64::<32>(half))))
    }

    #[inline(always)]
    fn exchange(self) -> Self {
        self.map(|half| intrinsic!(_mm256_shuffle_epi32::<0b01_00_11_10>(half)))
    }

    #[inline(always)]
    fn scramble(self, keys: Self) -> Self {
        let mixed = self.xor(keys).xor(self.map(|half| intrinsic!(_mm256_srli_epi64::<47>(half))));
        mixed.map(|half| {
            intrinsic!({
                let prime = _mm256_set1_epi64x(PRIME32_1.cast_signed());
                let upper = _mm256_mul_epu32(_mm256_srli_epi64::<32>(half), prime);
                _mm256_add_epi64(_mm256_mul_epu32(half, prime), _mm256_slli_epi64::<32>(upper))
            })
        })
    }
}

#[cfg(test)]
mod tests {
    use alloc::vec::Vec;

    use super::*;

    /// Hashes, by each instruction set that this processor has, of bytes that end at these places and at their own end.
    fn hashes<'a>(bytes: &'a [u8], ends: &'a [usize]) -> impl Iterator<Item = u64> + 'a {
        [Isa::Avx2, Isa::Avx512].into_iter().filter_map(Hasher::with).map(move |mut hasher| {
            let mut start = 0;
            for &end in ends.iter().chain([&bytes.len()]) {
                hasher.write(&bytes[start..end]);
                start = end;
            }
            hasher.finish()
        })
    }

    fn bytes(len: usize) -> Vec<u8> {
        let mut state = 1_u64;
        let bytes = core::iter::repeat_with(|| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state.to_be_bytes()[0]
        });
        bytes.take(len).collect()
    }

    #[test]
    fn every_length_in_one_part_and_in_two() {
        let bytes = bytes(3000);
        for len in 0..bytes.len() {
            let bytes = &bytes[..len];
            let expected = XxHash3_64::oneshot(bytes);
            for end in [0, 1, 8, 63, 64, 65, 240, 241, 960, 1023, 1024, 1025, len - len.min(64), len - len.min(1), len]
            {
                assert!(hashes(bytes, &[end.min(len)]).all(|hash| hash == expected), "{len} bytes, {end}");
            }
        }
    }

    #[test]
    fn many_parts() {
        let bytes = bytes(40_000);
        let expected = XxHash3_64::oneshot(&bytes);
        for step in [1, 7, 8, 63, 64, 65, 128, 136, 1000, 1024, 4096, 4104, 8192, 16_384] {
            let ends: Vec<usize> = (0..bytes.len()).step_by(step).collect();
            assert!(hashes(&bytes, &ends).all(|hash| hash == expected), "parts of {step} bytes");
        }
        // Parts of all sizes, empty ones among them.
        let ends: Vec<usize> = (0..500_usize).map(|index| index / 3 * (index / 3)).collect();
        assert!(hashes(&bytes, &ends).all(|hash| hash == expected), "parts of growing sizes");
    }

    #[test]
    fn what_was_hashed_can_go_on() {
        let bytes = bytes(5000);
        for mut hasher in [Isa::Avx2, Isa::Avx512].into_iter().filter_map(Hasher::with) {
            for (index, part) in bytes.chunks(500).enumerate() {
                hasher.write(part);
                assert_eq!(hasher.finish(), XxHash3_64::oneshot(&bytes[..500 * (index + 1)]));
            }
        }
    }
}
