//! Inputs: element patterns that are known to hurt encoders.
//!
//! The golden streams are made from these builders: add builders, never change one.

use enec_format::Dtype;
use enec_format::geometry::{BLOCK_TILES, LANES, TILE_ELEMENTS};
use serde::{Deserialize, Serialize};

use crate::random::SplitMix64;

/// How the elements of a tensor are made. Element `i` depends on the seed, on `i` and on the number of elements, on nothing else.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case", deny_unknown_fields)]
pub enum Input {
    /// Every element is this word.
    Constant {
        /// The word, in its low bits.
        word: u64,
    },
    /// Word `i` is `i * step mod 65,536`: with an odd step all 16-bit patterns. For F32 that is the upper half, the lower is random.
    Patterns {
        /// 1 counts; 40,503 scatters.
        step: u64,
    },
    /// Random bits.
    Uniform {
        /// Of the generator.
        seed: u64,
    },
    /// Exponents fall off by halves from `top`, as those of trained weights do.
    Weights {
        /// Of the generator.
        seed: u64,
        /// Largest exponent.
        top: u64,
        /// Zeros among 256 elements.
        zeros: u64,
    },
    /// Exponents uniform in `low..low + size`, random sign and mantissa.
    Exponents {
        /// Of the generator.
        seed: u64,
        /// Smallest exponent.
        low: u64,
        /// Number of exponents.
        size: u64,
    },
    /// Infinities, quiet and signalling NaNs, zeros, subnormals, largest and smallest numbers, in turn.
    Special,
    /// Every block has exactly `wide` lanes, as far as it has that many, that hold exponents up to `wide_base` and down to
    /// `2^wide_width - 1` below it; the exponents of the others lie between `base - 2^width + 1` and `base`.
    Lanes {
        /// Of the generator.
        seed: u64,
        /// Wide lanes of each block.
        wide: usize,
        /// Largest exponent of the other lanes.
        base: u64,
        /// Bits that their exponents span.
        width: u32,
        /// Largest exponent of the wide lanes.
        wide_base: u64,
        /// Bits that their exponents span.
        wide_width: u32,
    },
}

impl Input {
    /// The little-endian elements; for [`Dtype::Opaque`] the low byte of each word.
    ///
    /// # Panics
    ///
    /// If the input is one of exponents and `dtype` is opaque.
    #[must_use]
    pub fn bytes(&self, dtype: Dtype, elements: usize) -> Vec<u8> {
        let element_bytes = dtype.element_bytes();
        let mut words = self.words(dtype, elements);
        let mut bytes = Vec::with_capacity(elements * element_bytes);
        for index in 0..elements {
            bytes.extend_from_slice(&words(index).to_le_bytes()[..element_bytes]);
        }
        bytes
    }

    fn words(&self, dtype: Dtype, elements: usize) -> Box<dyn FnMut(usize) -> u64> {
        match *self {
            Input::Constant { word } => Box::new(move |_| word),
            Input::Patterns { step } => {
                let mut random = SplitMix64::new(step);
                Box::new(move |index| {
                    let pattern = (index as u64).wrapping_mul(step) & 0xFFFF;
                    if dtype == Dtype::F32 { pattern << 16 | random.next_u64() & 0xFFFF } else { pattern }
                })
            }
            Input::Uniform { seed } => {
                let mut random = SplitMix64::new(seed);
                Box::new(move |_| random.next_u64())
            }
            Input::Weights { seed, top, zeros } => {
                let mut random = SplitMix64::new(seed);
                Box::new(move |_| {
                    let bits = random.next_u64();
                    let below_top = u64::from((bits >> 32 & 0xFF_FFFF).trailing_zeros());
                    if bits >> 56 < zeros { 0 } else { float(dtype, top.saturating_sub(below_top), bits) }
                })
            }
            Input::Exponents { seed, low, size } => {
                let mut random = SplitMix64::new(seed);
                Box::new(move |_| {
                    let bits = random.next_u64();
                    float(dtype, low + (bits >> 32) % size, bits)
                })
            }
            Input::Special => Box::new(move |index| special(dtype, index)),
            Input::Lanes { seed, wide, base, width, wide_base, wide_width } => {
                let mut random = SplitMix64::new(seed);
                let within = |base: u64, width: u32, value: u64| base.saturating_sub(value & ((1 << width) - 1));
                Box::new(move |index| {
                    let bits = random.next_u64();
                    let row = index % TILE_ELEMENTS / LANES;
                    let exponent = match (is_wide(index, elements, wide), row) {
                        (false, _) => within(base, width, bits >> 32),
                        (true, 0) => wide_base,
                        (true, 1) => within(wide_base, wide_width, u64::MAX),
                        (true, _) => within(wide_base, wide_width, bits >> 32),
                    };
                    float(dtype, exponent, bits)
                })
            }
        }
    }
}

/// A word with this exponent, and sign and mantissa from the low bits of `bits`.
fn float(dtype: Dtype, exponent: u64, bits: u64) -> u64 {
    let width = 8 * dtype.element_bytes();
    let mantissa = width - 1 - usize::from(dtype.exponent_bits());
    assert!(exponent <= u64::from(dtype.exponent_mask()), "exponent {exponent} of {}", dtype.name());
    (bits & 1) << (width - 1) | exponent << mantissa | bits >> 1 & ((1 << mantissa) - 1)
}

fn special(dtype: Dtype, index: usize) -> u64 {
    let width = 8 * dtype.element_bytes();
    let mantissa = width - 1 - usize::from(dtype.exponent_bits());
    let (sign, infinity, quiet) = (1 << (width - 1), u64::from(dtype.exponent_mask()) << mantissa, 1 << (mantissa - 1));
    let words = [
        infinity,
        sign | infinity,
        infinity | quiet,
        infinity | 1,
        sign | infinity | (quiet - 1),
        sign | infinity | quiet | 1,
        0,
        sign,
        1,
        sign | ((1 << mantissa) - 1),
        1 << mantissa,
        infinity - 1,
        (infinity >> 1) & infinity,
    ];
    words[index % words.len()]
}

/// Whether the lane of element `index` is one of the `wide` lanes of its block, which are spread evenly over it.
fn is_wide(index: usize, elements: usize, wide: usize) -> bool {
    let tile = index / TILE_ELEMENTS;
    let tiles = (elements / TILE_ELEMENTS).saturating_sub(tile / BLOCK_TILES * BLOCK_TILES).min(BLOCK_TILES);
    if tile % BLOCK_TILES >= tiles {
        return false;
    }
    let (lane, lanes) = (tile % BLOCK_TILES * LANES + index % LANES, tiles * LANES);
    let wide = wide.min(lanes);
    (lane + 1) * wide / lanes > lane * wide / lanes
}

/// The distributions that every encoder meets, with names for trials.
#[must_use]
pub fn distributions(dtype: Dtype) -> Vec<(&'static str, Input)> {
    let mask = u64::from(dtype.exponent_mask());
    let middle = mask / 2;
    let one = middle << (8 * dtype.element_bytes() - 1 - usize::from(dtype.exponent_bits()));
    let lanes = |seed, wide, width, wide_base, wide_width| Input::Lanes {
        seed,
        wide,
        base: middle,
        width,
        wide_base,
        wide_width,
    };
    vec![
        ("zeros", Input::Constant { word: 0 }),
        ("ones", Input::Constant { word: one }),
        ("all_bits", Input::Constant { word: u64::MAX }),
        ("random_bits", Input::Uniform { seed: 1 }),
        ("weights", Input::Weights { seed: 2, top: middle, zeros: 0 }),
        ("sparse_weights", Input::Weights { seed: 3, top: middle, zeros: 30 }),
        ("largest_weights", Input::Weights { seed: 4, top: mask, zeros: 1 }),
        ("smallest_weights", Input::Weights { seed: 5, top: 4, zeros: 0 }),
        ("uniform_exponents", Input::Exponents { seed: 6, low: 0, size: mask + 1 }),
        ("narrow_exponents", Input::Exponents { seed: 7, low: middle, size: 5 }),
        ("nan_payloads", Input::Exponents { seed: 8, low: mask, size: 1 }),
        ("subnormals", Input::Exponents { seed: 9, low: 0, size: 1 }),
        ("special", Input::Special),
        ("one_wide_lane", lanes(10, 1, 2, mask, 4)),
        ("sixteen_wide_lanes", lanes(11, 16, 2, middle + 1, 4)),
        ("seventeen_wide_lanes", lanes(12, 17, 3, mask - 1, 4)),
        ("all_wide", lanes(13, 1024, 2, mask, 4)),
        ("wide_as_common", lanes(14, 300, 3, mask, 3)),
        ("wide_below_common", lanes(15, 100, 2, middle - 4, 3)),
    ]
}

#[cfg(test)]
mod tests {
    use enec_format::reference::exponents;

    use super::*;

    #[test]
    fn distributions_have_what_their_names_say() {
        for dtype in Dtype::FLOATS {
            for (name, input) in distributions(dtype) {
                let bytes = input.bytes(dtype, 2 * TILE_ELEMENTS + 3);
                assert_eq!(bytes.len(), (2 * TILE_ELEMENTS + 3) * dtype.element_bytes(), "{name}");
                let (smallest, largest) =
                    exponents(dtype, &bytes).fold((255, 0), |(low, high), e| (e.min(low), e.max(high)));
                let mask = dtype.exponent_mask();
                match name {
                    "zeros" | "subnormals" => assert_eq!((smallest, largest), (0, 0)),
                    "all_bits" | "nan_payloads" => assert_eq!((smallest, largest), (mask, mask)),
                    "uniform_exponents" | "random_bits" | "special" => assert_eq!((smallest, largest), (0, mask)),
                    "largest_weights" => assert_eq!(largest, mask),
                    _ => {}
                }
            }
        }
    }

    #[test]
    fn wide_lanes_are_counted_by_block() {
        for (elements, wide, expected) in [
            (11 * TILE_ELEMENTS + 5, 17, vec![17, 17]),
            (9 * TILE_ELEMENTS, 1024, vec![1024, 128]),
            (TILE_ELEMENTS, 0, vec![0]),
        ] {
            let mut found = vec![0; expected.len()];
            for index in (0..elements)
                .filter(|index| index % TILE_ELEMENTS < LANES && index / TILE_ELEMENTS < elements / TILE_ELEMENTS)
            {
                found[index / TILE_ELEMENTS / BLOCK_TILES] += usize::from(is_wide(index, elements, wide));
            }
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn patterns_are_all_patterns() {
        for step in [1, 40_503] {
            let bytes = Input::Patterns { step }.bytes(Dtype::Bf16, 65_536);
            let words: std::collections::BTreeSet<[u8; 2]> = bytes.as_chunks().0.iter().copied().collect();
            assert_eq!(words.len(), 65_536);
        }
    }
}
