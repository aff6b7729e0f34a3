//! The levels of one block of codec 2: where its codes and raw exponents lie in its segment (docs/format.md, "The cascade").

use core::ops::Range;

use crate::geometry::{CODE_BITS, LEVEL_ALIGNMENT, MAX_LEVELS, SEGMENT_UNIT};

/// How many elements of a block, or of a part of one, reach each level; that gives the place of every level in the block's segment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Levels {
    levels: usize,
    /// Elements that reach level `k + 1`; at index `levels`, those that escape from the last level.
    reached: [usize; MAX_LEVELS + 1],
}

impl Levels {
    /// Levels of which `reached[k]` elements reach level `k + 1` and the last number of elements is stored raw: one number more than
    /// there are levels.
    ///
    /// # Panics
    ///
    /// Unless there are 2 to 6 numbers.
    #[must_use]
    pub fn new(reached: &[usize]) -> Self {
        assert!((2..=MAX_LEVELS + 1).contains(&reached.len()), "{} numbers", reached.len());
        let mut own = [0; MAX_LEVELS + 1];
        own[..reached.len()].copy_from_slice(reached);
        Self { levels: reached.len() - 1, reached: own }
    }

    /// Counts the escapes of a block's codes, level by level. What the segment lacks counts as no escape, so that
    /// [`segment_len`](Self::segment_len) exceeds its length.
    ///
    /// # Panics
    ///
    /// Unless `levels` is 1 to 5.
    #[must_use]
    pub fn count(levels: u8, low_plane: &[u8], segment: &[u8]) -> Self {
        let mut counted = Self { levels: usize::from(levels), reached: [0; _] };
        counted.reached[0] = low_plane.len() * 8 / CODE_BITS;
        counted.reached[1] = escapes(low_plane, counted.reached[0]);
        let mut start = 0;
        for level in 2..=counted.levels {
            let codes = counted.reached[level - 1];
            counted.reached[level] = escapes(segment.get(start..).unwrap_or(&[]), codes);
            start += level_len(codes);
        }
        counted
    }

    /// Elements that have a code in `level`, which counts from 1.
    ///
    /// # Panics
    ///
    /// If there is no such level.
    #[must_use]
    pub fn codes(&self, level: u8) -> usize {
        let level = usize::from(level);
        assert!((1..=self.levels).contains(&level), "level {level} of {}", self.levels);
        self.reached[level - 1]
    }

    /// Elements whose exponents are stored raw.
    #[must_use]
    pub fn raw_count(&self) -> usize {
        self.reached[self.levels]
    }

    /// The bytes of a level from 2 on in the segment, its padding included.
    ///
    /// # Panics
    ///
    /// If there is no such level.
    #[must_use]
    pub fn level(&self, level: u8) -> Range<usize> {
        let start = self.reached[1..usize::from(level) - 1].iter().map(|&codes| level_len(codes)).sum();
        start..start + level_len(self.codes(level))
    }

    /// The bytes of the raw exponents in the segment.
    #[must_use]
    pub fn raw(&self) -> Range<usize> {
        let start = self.reached[1..self.levels].iter().map(|&codes| level_len(codes)).sum();
        start..start + self.raw_count()
    }

    /// Bytes of the segment, padded to a multiple of 32.
    #[must_use]
    pub fn segment_len(&self) -> usize {
        self.raw().end.next_multiple_of(SEGMENT_UNIT)
    }

    /// The most bytes that the segments of whole tiles can take together: every element escapes from every level.
    #[must_use]
    pub(crate) const fn longest_segment(levels: u8, elements: usize) -> Option<usize> {
        match (elements / 8 * CODE_BITS).checked_mul(levels as usize - 1) {
            Some(codes) => codes.checked_add(elements),
            None => None,
        }
    }
}

/// Bytes of a level of `codes` codes behind the first, padded.
#[must_use]
pub const fn level_len(codes: usize) -> usize {
    codes.div_ceil(8 * LEVEL_ALIGNMENT / CODE_BITS) * LEVEL_ALIGNMENT
}

/// How many of the first `codes` codes of some packed bytes are escapes. Bytes that are not there have none.
#[must_use]
pub fn escapes(bytes: &[u8], codes: usize) -> usize {
    let whole = (codes / 4).min(bytes.len());
    let (words, rest) = bytes[..whole].as_chunks();
    let mut count = 0;
    for words in words.chunks(u8::MAX as usize / 4) {
        // A byte of a word has at most four escapes, so this many words do not overflow a byte of the sum.
        let mut sum = 0;
        for word in words {
            let word = u64::from_le_bytes(*word);
            let bits = word & word >> 1 & 0x5555_5555_5555_5555;
            let pairs = (bits & 0x3333_3333_3333_3333) + (bits >> 2 & 0x3333_3333_3333_3333);
            sum += (pairs & 0x0F0F_0F0F_0F0F_0F0F) + (pairs >> 4 & 0x0F0F_0F0F_0F0F_0F0F);
        }
        count += sum.to_le_bytes().iter().map(|&byte| usize::from(byte)).sum::<usize>();
    }
    let last = bytes.get(whole).map_or(0, |byte| byte & ((1 << (CODE_BITS * (codes % 4))) - 1));
    let rest = rest.iter().copied().chain([last]);
    count + rest.map(|byte| (byte & byte >> 1 & 0x55).count_ones() as usize).sum::<usize>()
}

#[cfg(test)]
mod tests;
