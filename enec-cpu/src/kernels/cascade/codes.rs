//! Strings of codes: two bits for each element of a block, or for those of its elements that reached a level.

use enec_format::geometry::{BLOCK_ELEMENTS, LANES};

use super::bits::Bits;

/// Elements of one 64-bit word of codes.
pub(super) const WORD_ELEMENTS: usize = 32;

/// Vectors of 16 lanes in a row.
pub(super) const VECTORS: usize = LANES / 16;

/// Words of codes of 16 lanes of a tile.
pub(super) const VECTOR_WORDS: usize = 8;

/// Bytes of the codes of a whole block.
const BYTES: usize = BLOCK_ELEMENTS / 4;

/// Codes of up to a block's elements.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(super) struct Codes {
    /// A word more than a block needs, so that a window can start at any byte.
    bytes: [u8; BYTES + 8],
}

impl Codes {
    /// All zero.
    pub(super) const ZERO: Self = Self { bytes: [0; _] };

    /// Word `index`; one behind the last is the first.
    #[inline(always)]
    pub(super) fn word(&self, index: usize) -> u64 {
        let mut word = [0; 8];
        word.copy_from_slice(&self.bytes[index * 8 % BYTES..][..8]);
        u64::from_le_bytes(word)
    }

    /// Writes word `index`; one behind the last is the first.
    #[inline(always)]
    pub(super) fn set_word(&mut self, index: usize, word: u64) {
        self.bytes[index * 8 % BYTES..][..8].copy_from_slice(&word.to_le_bytes());
    }

    /// The words of 16 lanes.
    #[inline(always)]
    pub(super) fn lanes(&self, index: usize) -> &[[u8; 8]; VECTOR_WORDS] {
        &self.bytes.as_chunks().0.as_chunks().0[index]
    }

    /// As [`lanes`](Self::lanes).
    #[inline(always)]
    pub(super) fn lanes_mut(&mut self, index: usize) -> &mut [[u8; 8]; VECTOR_WORDS] {
        &mut self.bytes.as_chunks_mut().0.as_chunks_mut().0[index]
    }

    /// The words one after the other.
    #[inline(always)]
    pub(super) fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// As [`bytes`](Self::bytes).
    #[inline(always)]
    pub(super) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes
    }

    /// The 64 bits that start at a byte; a byte behind the last is the first.
    #[inline(always)]
    fn window(&self, byte: usize) -> u64 {
        let mut window = [0; 8];
        window.copy_from_slice(&self.bytes[byte % BYTES..][..8]);
        u64::from_le_bytes(window)
    }

    #[inline(always)]
    fn set_window(&mut self, byte: usize, bits: u64) {
        self.bytes[byte % BYTES..][..8].copy_from_slice(&bits.to_le_bytes());
    }

    /// Takes `elements` codes from bytes, zero for those that the bytes do not have; zeros behind them up to the end of a word.
    pub(super) fn fill(&mut self, bytes: &[u8], elements: usize) {
        let len = elements.div_ceil(4);
        let padded = elements.div_ceil(WORD_ELEMENTS) * 8;
        let present = bytes.len().min(len);
        self.bytes[..present].copy_from_slice(&bytes[..present]);
        self.bytes[present..padded].fill(0);
        if let Some(last) = elements.checked_sub(1) {
            let word = last / WORD_ELEMENTS;
            self.set_word(word, self.word(word) & first_codes(elements - word * WORD_ELEMENTS));
        }
    }
}

/// The bits of the first codes of a word, all of them if there are more.
#[inline(always)]
pub(super) fn first_codes(elements: usize) -> u64 {
    if elements < WORD_ELEMENTS { (1 << (2 * elements)) - 1 } else { u64::MAX }
}

/// The bits of the codes that are 3.
#[inline(always)]
pub(super) fn escapes(codes: u64) -> u64 {
    let ones = codes & codes >> 1 & 0x5555_5555_5555_5555;
    ones | ones << 1
}

/// Tells the compiler that a branch is seldom taken.
#[cold]
fn cold() {}

/// Does something for each pair of lanes of 16: `$pair`, a constant, counts from 0. A loop would look up where they lie.
macro_rules! for_lane_pairs {
    ($pair:ident => $body:block) => {
        for_lane_pairs!(@ $pair => $body, 0, 1, 2, 3, 4, 5, 6, 7)
    };
    (@ $pair:ident => $body:block, $($index:literal),*) => {
        $({ const $pair: usize = $index; $body })*
    };
}
pub(super) use for_lane_pairs;

/// Strings of codes that belong to the same elements and are read or written together: those of their [places](super::places).
#[derive(Debug, Clone, Copy)]
pub(super) struct Places {
    /// The lower two bits of each place.
    pub(super) low: Codes,
    /// The upper two bits of each place.
    pub(super) high: Codes,
}

/// Reads places in order.
#[derive(Debug)]
pub(super) struct Reader<'a> {
    places: &'a Places,
    /// Bits of each string before the next element.
    position: usize,
}

impl<'a> Reader<'a> {
    /// Starts before element `element`.
    pub(super) fn new(places: &'a Places, element: usize) -> Self {
        Self { places, position: 2 * element }
    }

    /// Gives the next elements to those that the mask has set, zero to the others.
    #[inline(always)]
    pub(super) fn spread<B: Bits>(&mut self, bits: B, mask: u64) -> (u64, u64) {
        // A window that starts within a byte has 58 bits of whole codes at least.
        let count = mask.count_ones() as usize;
        if count > 58 {
            cold();
            let (first, second) = (mask & 0xFFFF_FFFF, mask & !0xFFFF_FFFF);
            let (first, second) = (self.spread_window(bits, first), self.spread_window(bits, second));
            return (first.0 | second.0, first.1 | second.1);
        }
        self.spread_window(bits, mask)
    }

    #[inline(always)]
    fn spread_window<B: Bits>(&mut self, bits: B, mask: u64) -> (u64, u64) {
        let (byte, shift) = (self.position / 8, self.position % 8);
        self.position += mask.count_ones() as usize;
        let Places { low, high } = self.places;
        (bits.spread(low.window(byte) >> shift, mask), bits.spread(high.window(byte) >> shift, mask))
    }
}

/// Writes places in order.
#[derive(Debug)]
pub(super) struct Writer<'a> {
    places: &'a mut Places,
    /// Bits of each string that are written.
    position: usize,
    /// The bits of each that begin a byte which is not full yet.
    begun: [u64; 2],
}

impl<'a> Writer<'a> {
    /// Starts with the first element.
    pub(super) fn new(places: &'a mut Places) -> Self {
        Self { places, position: 0, begun: [0; 2] }
    }

    /// Writes those elements of a word that the mask has set.
    #[inline(always)]
    pub(super) fn gather<B: Bits>(&mut self, bits: B, places: (u64, u64), mask: u64) {
        // With up to 6 bits begun, 56 more leave the shifts below 64.
        if mask.count_ones() > 56 {
            cold();
            self.gather_window(bits, places, mask & 0xFFFF_FFFF);
            self.gather_window(bits, places, mask & !0xFFFF_FFFF);
        } else {
            self.gather_window(bits, places, mask);
        }
    }

    #[inline(always)]
    fn gather_window<B: Bits>(&mut self, bits: B, places: (u64, u64), mask: u64) {
        let (byte, shift) = (self.position / 8, self.position % 8);
        let count = mask.count_ones() as usize;
        let full = (shift + count) & !7;
        let low = self.begun[0] | bits.gather(places.0, mask) << shift;
        let high = self.begun[1] | bits.gather(places.1, mask) << shift;
        self.places.low.set_window(byte, low);
        self.places.high.set_window(byte, high);
        self.begun = [low >> full, high >> full];
        self.position += count;
    }

    /// Zeros behind the last element up to the end of a word; returns the number of elements.
    pub(super) fn finish(self) -> usize {
        if !self.position.is_multiple_of(64) {
            let byte = self.position / 8;
            self.places.low.set_window(byte, self.begun[0]);
            self.places.high.set_window(byte, self.begun[1]);
        }
        self.position / 2
    }
}
