//! The levels below the first: a block's variable segment, which is one string of codes per level and then the raw exponents.

use std::ops::Range;

use enec_format::geometry::{BLOCK_ELEMENTS, SEGMENT_UNIT};
use enec_format::level_len;

use super::bits::Bits;
use super::codes::{Codes, Places, Reader, WORD_ELEMENTS, Writer, escapes, first_codes};
use super::places::{LEVELS, level_word};

/// Bytes of the longest segment: every element on every level, and raw in the end.
const LONGEST_SEGMENT: usize = (LEVELS - 1) * BLOCK_ELEMENTS / 4 + BLOCK_ELEMENTS;

/// The places of the elements that reached each level, from the second on.
#[derive(Debug, Clone)]
pub(super) struct LevelPlaces([Places; LEVELS - 1]);

impl LevelPlaces {
    /// All zero.
    pub(super) const ZERO: Self = Self([Places { low: Codes::ZERO, high: Codes::ZERO }; _]);

    /// What reached level 2.
    pub(super) fn second(&self) -> &Places {
        &self.0[0]
    }

    /// As [`second`](Self::second).
    pub(super) fn second_mut(&mut self) -> &mut Places {
        &mut self.0[0]
    }

    /// Reads the segment of a block, `elements` of whose codes of level 1 are 3, and finds the places of these on `levels` levels.
    ///
    /// Returns where in the segment the raw exponents lie. What the segment lacks is zero, and so is what lies between a level's last code and
    /// its end: only bytes that changed since they were validated make a difference.
    #[inline(always)]
    pub(super) fn read<B: Bits>(&mut self, bits: B, levels: usize, elements: usize, segment: &[u8]) -> Range<usize> {
        let (mut counts, mut start) = ([0; LEVELS], 0);
        let mut count = elements;
        for (places, counted) in self.0.iter_mut().zip(&mut counts).take(levels - 1) {
            *counted = count;
            let codes = &mut places.low;
            codes.fill(segment.get(start..).unwrap_or(&[]), count);
            start += level_len(count);
            count = (0..count.div_ceil(WORD_ELEMENTS))
                .map(|word| escapes(codes.word(word)).count_ones() as usize / 2)
                .sum();
        }
        for index in (0..levels - 1).rev() {
            let words = counts[index].div_ceil(WORD_ELEMENTS);
            let (these, next) = self.0.split_at_mut(index + 1);
            let Places { low, high } = &mut these[index];
            let level = index + 2;
            if level == LEVELS {
                for word in 0..words {
                    high.set_word(word, low.word(word));
                    low.set_word(word, u64::MAX);
                }
            } else if level == levels {
                for word in 0..words {
                    high.set_word(word, level_word(level) | escapes(low.word(word)));
                }
            } else {
                let mut reader = Reader::new(&next[0], 0);
                for word in 0..words {
                    let codes = low.word(word);
                    let escapes = escapes(codes);
                    let next = reader.spread(bits, escapes);
                    low.set_word(word, codes ^ escapes | next.0);
                    high.set_word(word, level_word(level) & !escapes | next.1);
                }
            }
        }
        if levels == 1 {
            let Places { low, high } = self.second_mut();
            for word in 0..count.div_ceil(WORD_ELEMENTS) {
                low.set_word(word, u64::MAX);
                high.set_word(word, u64::MAX);
            }
        }
        start..start + count
    }

    /// Writes the segment of a block to the front of `segment`, which is as long as the longest one, given the places of the `elements` that
    /// reached level 2 and the raw exponents, as many as these places say. Returns its length.
    #[inline(always)]
    pub(super) fn write<B: Bits>(
        &mut self,
        bits: B,
        levels: usize,
        elements: usize,
        raw: &[u8],
        segment: &mut Segment,
    ) -> usize {
        let (mut count, mut start) = (elements, 0);
        for index in 0..levels - 1 {
            let (these, next) = self.0.split_at_mut(index + 1);
            let Places { low, high } = &these[index];
            let level = index + 2;
            let words = count.div_ceil(WORD_ELEMENTS);
            let mut next = next.first_mut().filter(|_| level < levels).map(Writer::new);
            for word in 0..words {
                let (low, high) = (low.word(word), high.word(word));
                if level == LEVELS {
                    segment.set_word(start + 8 * word, high);
                    continue;
                }
                let elsewhere = high ^ level_word(level);
                let elsewhere = (elsewhere | elsewhere >> 1) & 0x5555_5555_5555_5555;
                let escapes = (elsewhere | elsewhere << 1 | escapes(low)) & first_codes(count - word * WORD_ELEMENTS);
                segment.set_word(start + 8 * word, low | escapes);
                if let Some(next) = &mut next {
                    next.gather(bits, (low, high), escapes);
                }
            }
            start += level_len(count);
            count = next.map_or(0, Writer::finish);
        }
        segment.finish(start, raw)
    }
}

/// Memory for one segment.
#[derive(Debug, Clone)]
#[repr(align(64))]
pub(super) struct Segment {
    /// A word more than the longest, so that words can be written anywhere.
    bytes: [u8; LONGEST_SEGMENT + 8],
}

impl Segment {
    /// All zero.
    pub(super) const ZERO: Self = Self { bytes: [0; _] };

    #[inline(always)]
    fn set_word(&mut self, at: usize, word: u64) {
        self.bytes[at..at + 8].copy_from_slice(&word.to_le_bytes());
    }

    /// Writes raw exponents behind the levels, and zeros up to a whole unit. Returns the length.
    pub(super) fn finish(&mut self, start: usize, raw: &[u8]) -> usize {
        let end = start + raw.len();
        let len = end.next_multiple_of(SEGMENT_UNIT);
        self.bytes[start..end].copy_from_slice(raw);
        self.bytes[end..len].fill(0);
        len
    }

    /// The first bytes.
    pub(super) fn bytes(&self, len: usize) -> &[u8] {
        &self.bytes[..len]
    }
}
