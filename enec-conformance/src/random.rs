//! SplitMix64: a generator whose algorithm will not change under the golden inputs.

/// The generator of Steele, Lea and Flood, "Fast splittable pseudorandom number generators" (2014).
#[derive(Debug, Clone)]
pub struct SplitMix64(u64);

impl SplitMix64 {
    /// A generator that starts from `seed`.
    #[must_use]
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// The next 64 bits.
    pub fn next_u64(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// The next byte.
    pub fn next_u8(&mut self) -> u8 {
        self.next_u64().to_be_bytes()[0]
    }

    /// A number below `bound`; 0 if that is 0. The slight bias does not matter here.
    pub fn below(&mut self, bound: usize) -> usize {
        usize::try_from((self.next_u64() >> 1).checked_rem(bound as u64).unwrap_or(0)).unwrap_or(0)
    }

    /// Random bytes.
    pub fn bytes(&mut self, len: usize) -> Vec<u8> {
        std::iter::repeat_with(|| self.next_u8()).take(len).collect()
    }
}
