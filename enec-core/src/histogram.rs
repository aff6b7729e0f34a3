//! How often each exponent occurs.

use enec_format::Dtype;

/// Counts of exponents.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Histogram([u64; 256]);

impl Default for Histogram {
    fn default() -> Self {
        Self([0; 256])
    }
}

impl Histogram {
    /// The counts of some whole elements.
    pub(crate) fn of(dtype: Dtype, elements: &[u8]) -> Self {
        let mut histogram = Self::default();
        histogram.add(dtype, elements);
        histogram
    }

    /// Counts the exponents of more whole elements. Opaque bytes have none.
    pub(crate) fn add(&mut self, dtype: Dtype, elements: &[u8]) {
        let halves = || elements.as_chunks::<2>().0.iter().copied();
        match dtype {
            Dtype::Bf16 => self.count(halves(), 7),
            Dtype::F16 => self.count(halves(), 10),
            Dtype::F32 => self.count(elements.as_chunks::<4>().0.iter().map(|&[_, _, low, high]| [low, high]), 7),
            Dtype::Opaque => {}
        }
    }

    /// Counts what follows the sign of 16-bit words, without the `mantissa_bits` at their end.
    fn count(&mut self, words: impl Iterator<Item = [u8; 2]>, mantissa_bits: u32) {
        // Equal exponents follow each other: with tables of their own, neighbours need not wait for each other's sum.
        let mut tables = [[0_u64; 256]; 4];
        for (place, word) in words.enumerate() {
            tables[place % 4][usize::from((u16::from_le_bytes(word) & 0x7FFF) >> mantissa_bits)] += 1;
        }
        for (exponent, count) in self.0.iter_mut().enumerate() {
            *count += tables.iter().map(|table| table[exponent]).sum::<u64>();
        }
    }

    /// How often an exponent occurs.
    pub(crate) fn of_exponent(&self, exponent: u8) -> u64 {
        self.0[usize::from(exponent)]
    }

    /// The counts by exponent.
    pub(crate) fn counts(&self) -> &[u64; 256] {
        &self.0
    }
}
