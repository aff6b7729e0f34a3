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
        match dtype {
            Dtype::Bf16 => self.count::<2>(elements, 7, 0xFF),
            Dtype::F16 => self.count::<2>(elements, 10, 0x1F),
            Dtype::F32 => self.count::<4>(elements, 23, 0xFF),
            Dtype::Opaque => {}
        }
    }

    /// Counts the bits of `mask` above the `mantissa_bits` of words of `BYTES` bytes.
    fn count<const BYTES: usize>(&mut self, elements: &[u8], mantissa_bits: usize, mask: u8) {
        // Equal exponents follow each other: with tables of their own, neighbours need not wait for each other's sum.
        let mut tables = [[0_u32; 256]; 4];
        let exponent = |words: u64, place: usize| {
            let [exponent, ..] = (words >> (8 * BYTES * place + mantissa_bits)).to_le_bytes();
            usize::from(exponent & mask)
        };
        // A table holds no more than these before they are added up.
        for elements in elements.chunks(1 << 30) {
            let (several, rest) = elements.as_chunks();
            for words in several {
                let words = u64::from_le_bytes(*words);
                for (place, table) in tables.iter_mut().enumerate().take(8 / BYTES) {
                    table[exponent(words, place)] += 1;
                }
            }
            for word in rest.chunks_exact(BYTES) {
                let mut words = [0; 8];
                words[..BYTES].copy_from_slice(word);
                tables[0][exponent(u64::from_le_bytes(words), 0)] += 1;
            }
            for (exponent, count) in self.0.iter_mut().enumerate() {
                *count += tables.iter_mut().map(|table| u64::from(std::mem::take(&mut table[exponent]))).sum::<u64>();
            }
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

#[cfg(test)]
mod tests {
    use enec_format::reference::exponents;

    use super::*;

    #[test]
    fn counts_are_those_of_the_reference() {
        let mut state = 1_u32;
        let bytes: Vec<u8> = (0..4 * 1003)
            .map(|_| {
                state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                state.to_be_bytes()[0]
            })
            .collect();
        for dtype in Dtype::FLOATS {
            for elements in [0, 1, 2, 3, 5, 1003] {
                let bytes = &bytes[..elements * dtype.element_bytes()];
                let mut expected = [0; 256];
                exponents(dtype, bytes).for_each(|exponent| expected[usize::from(exponent)] += 1);
                assert_eq!(Histogram::of(dtype, bytes).counts(), &expected, "{dtype:?}, {elements} elements");
                let mut twice = Histogram::of(dtype, bytes);
                twice.add(dtype, bytes);
                assert_eq!(twice.counts(), &expected.map(|count| 2 * count));
            }
        }
    }
}
