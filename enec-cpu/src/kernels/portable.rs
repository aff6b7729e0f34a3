//! The portable kernels: plain loops over 16 lanes, which the compiler turns into vector code for the target's baseline.

use super::cascade::{PlaceTable, Tables};
use super::isa::{AT_ONCE, BitKernel, Isa, Kernel, NarrowIsa};
use super::scratch::WideRows;

/// Runs anywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Portable;

/// 16 lanes of 16 bits.
#[derive(Debug, Clone, Copy)]
#[repr(align(32))]
pub(crate) struct Words([u16; 16]);

/// Every pair of two of 16 bytes: half as many lookups.
#[derive(Debug)]
pub(crate) struct PairTable([u16; 256]);

impl Words {
    #[inline(always)]
    fn map(self, f: impl Fn(u16) -> u16) -> Self {
        let mut words = self.0;
        for word in &mut words {
            *word = f(*word);
        }
        Self(words)
    }

    #[inline(always)]
    fn zip(self, other: Self, f: impl Fn(u16, u16) -> u16) -> Self {
        let mut words = self.0;
        for (word, other) in words.iter_mut().zip(other.0) {
            *word = f(*word, other);
        }
        Self(words)
    }
}

impl Isa for Portable {
    type Vector = Words;
    type Mask = Words;
    type Narrow = Self;
    const LANES: usize = 16;
    const FIXED_WIDTHS: bool = false;

    #[inline(always)]
    fn vectorise<K: Kernel>(self, kernel: K) -> K::Output {
        kernel.run(self)
    }

    #[inline(always)]
    fn narrow(self) -> Self {
        self
    }

    #[inline(always)]
    fn load(self, words: &[u8], index: usize) -> Words {
        let bytes: &[u8; 32] = &words.as_chunks().0[index];
        let mut words = [0; 16];
        for (word, bytes) in words.iter_mut().zip(bytes.as_chunks::<2>().0) {
            *word = u16::from_le_bytes(*bytes);
        }
        Words(words)
    }

    #[inline(always)]
    fn store(self, vector: Words, words: &mut [u8], index: usize) {
        let bytes: &mut [u8; 32] = &mut words.as_chunks_mut().0[index];
        for (bytes, word) in bytes.as_chunks_mut::<2>().0.iter_mut().zip(vector.0) {
            *bytes = word.to_le_bytes();
        }
    }

    #[inline(always)]
    fn load_double(self, words: &[u8], index: usize) -> (Words, Words) {
        let bytes: &[u8; 64] = &words.as_chunks().0[index];
        let (mut lower, mut upper) = ([0; 16], [0; 16]);
        for (lane, &[a, b, c, d]) in bytes.as_chunks::<4>().0.iter().enumerate() {
            lower[lane] = u16::from_le_bytes([a, b]);
            upper[lane] = u16::from_le_bytes([c, d]);
        }
        (Words(lower), Words(upper))
    }

    #[inline(always)]
    fn store_double(self, lower: Words, upper: Words, words: &mut [u8], index: usize) {
        let bytes: &mut [u8; 64] = &mut words.as_chunks_mut().0[index];
        for (lane, bytes) in bytes.as_chunks_mut::<4>().0.iter_mut().enumerate() {
            let ([a, b], [c, d]) = (lower.0[lane].to_le_bytes(), upper.0[lane].to_le_bytes());
            *bytes = [a, b, c, d];
        }
    }

    #[inline(always)]
    fn splat(self, word: u16) -> Words {
        Words([word; 16])
    }

    #[inline(always)]
    fn and(self, a: Words, b: Words) -> Words {
        a.zip(b, |a, b| a & b)
    }

    #[inline(always)]
    fn or(self, a: Words, b: Words) -> Words {
        a.zip(b, |a, b| a | b)
    }

    #[inline(always)]
    fn xor(self, a: Words, b: Words) -> Words {
        a.zip(b, |a, b| a ^ b)
    }

    #[inline(always)]
    fn select(self, mask: Words, a: Words, b: Words) -> Words {
        self.xor(b, self.and(mask, self.xor(a, b)))
    }

    #[inline(always)]
    fn subtract_bytes(self, a: Words, b: Words) -> Words {
        a.zip(b, |a, b| {
            let high = (a & 0xFF00).wrapping_sub(b & 0xFF00);
            high | (a.wrapping_sub(b) & 0x00FF)
        })
    }

    #[inline(always)]
    fn shift_up(self, vector: Words, count: usize) -> Words {
        vector.map(|word| word << count)
    }

    #[inline(always)]
    fn shift_down(self, vector: Words, count: usize) -> Words {
        vector.map(|word| word >> count)
    }

    #[inline(always)]
    fn smaller(self, a: Words, b: Words) -> Words {
        a.zip(b, u16::min)
    }

    #[inline(always)]
    fn larger(self, a: Words, b: Words) -> Words {
        a.zip(b, u16::max)
    }

    #[inline(always)]
    fn greater(self, a: Words, b: Words) -> Words {
        a.zip(b, |a, b| if a > b { 0xFFFF } else { 0 })
    }

    #[inline(always)]
    fn either(self, a: Words, b: Words) -> Words {
        self.or(a, b)
    }

    #[inline(always)]
    fn mask(self, lanes: u32) -> Words {
        let mut words = [0; 16];
        for (lane, word) in words.iter_mut().enumerate() {
            *word = 0_u16.wrapping_sub((lanes >> lane & 1) as u16);
        }
        Words(words)
    }

    #[inline(always)]
    fn store_masks(self, masks: [Words; AT_ONCE], bits: &mut [u8]) {
        for (bits, mask) in bits.as_chunks_mut::<2>().0[..AT_ONCE].iter_mut().zip(masks) {
            let lanes = mask.0.into_iter().enumerate();
            *bits = lanes.fold(0, |bits, (lane, word)| bits | (word & 1) << lane).to_le_bytes();
        }
    }

    #[inline(always)]
    fn expand(self, rows: &mut [Words], lanes: u32, wide: &WideRows, rank: usize) {
        rows.fill(self.splat(0));
        for (lane, rank) in set_lanes(lanes).zip(rank..) {
            for (words, row) in rows.iter_mut().zip(&wide.0) {
                words.0[lane] = u16::from_le_bytes(row.as_chunks().0[rank]);
            }
        }
    }

    #[inline(always)]
    fn compact(self, rows: &[Words], lanes: u32, wide: &mut WideRows, rank: usize) {
        for (lane, rank) in set_lanes(lanes).zip(rank..) {
            for (words, row) in rows.iter().zip(&mut wide.0) {
                row.as_chunks_mut().0[rank] = words.0[lane].to_le_bytes();
            }
        }
    }
}

impl NarrowIsa for Portable {
    type Table = PairTable;
    const LANE_PAIRS: [usize; 8] = [0, 1, 2, 3, 4, 5, 6, 7];

    #[inline(always)]
    fn vectorise_with_bits<K: BitKernel>(self, kernel: K) -> K::Output {
        kernel.run(self, Tables)
    }

    #[inline(always)]
    fn interleave(self, first: Words, second: Words) -> [Words; 2] {
        let mut lanes = [Words([0; 16]); 2];
        for lane in 0..16 {
            lanes[lane / 8].0[lane % 8 * 2] = first.0[lane];
            lanes[lane / 8].0[lane % 8 * 2 + 1] = second.0[lane];
        }
        lanes
    }

    #[inline(always)]
    fn separate(self, lanes: [Words; 2]) -> [Words; 2] {
        let mut words = [Words([0; 16]); 2];
        for lane in 0..16 {
            words[0].0[lane] = lanes[lane / 8].0[lane % 8 * 2];
            words[1].0[lane] = lanes[lane / 8].0[lane % 8 * 2 + 1];
        }
        words
    }

    #[inline(always)]
    fn lane_bytes(self, lanes: [Words; 2]) -> [Words; 2] {
        let [first, second] = self.separate(lanes);
        [
            first.zip(second, |first, second| first << 8 | second & 0x00FF),
            first.zip(second, |first, second| first & 0xFF00 | second >> 8),
        ]
    }

    #[inline(always)]
    fn lane_strings(self, bytes: [Words; 2]) -> [Words; 2] {
        let [even, odd] = bytes;
        self.interleave(
            even.zip(odd, |even, odd| even >> 8 | odd & 0xFF00),
            even.zip(odd, |even, odd| even & 0x00FF | odd << 8),
        )
    }

    #[inline(always)]
    fn table(self, bytes: &[u8; 16]) -> PairTable {
        let mut pairs = [0; 256];
        for (index, pair) in pairs.iter_mut().enumerate() {
            *pair = u16::from_le_bytes([bytes[index % 16], bytes[index / 16]]);
        }
        PairTable(pairs)
    }

    #[inline(always)]
    fn lookup(self, table: &PairTable, indices: Words) -> Words {
        indices.map(|pair| table.0[usize::from((pair | pair >> 4) & 0x00FF)])
    }

    #[inline(always)]
    fn places(self, exponents: &[Words; 8], table: &PlaceTable) -> [Words; 8] {
        let mut places = *exponents;
        for places in &mut places {
            *places = places
                .map(|pair| u16::from_le_bytes(pair.to_le_bytes().map(|exponent| table.places[usize::from(exponent)])));
        }
        places
    }

    #[inline(always)]
    fn is_zero(self, vector: Words) -> bool {
        vector.0 == [0; 16]
    }
}

/// The lanes that are set, in order.
#[inline(always)]
fn set_lanes(mut lanes: u32) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        let lane = lanes.trailing_zeros() as usize;
        (lanes != 0).then(|| {
            lanes &= lanes - 1;
            lane
        })
    })
}
