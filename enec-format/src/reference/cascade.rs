//! The reference encoder and decoder of codec 2.

use alloc::vec::Vec;

use crate::geometry::{
    BLOCK_TILES, CODE_BITS, LANES, LEVEL_SYMBOLS, MAX_LEVELS, ROW_BYTES, ROWS, SEGMENT_UNIT, TILE_ELEMENTS,
};
use crate::reference::lane::{pack, read_words, unpack, write_words};
use crate::reference::planes::{decode_lane, encode_planes, lane_exponents};
use crate::{BlockEntry, Cascade, EncodePlan, Layout, Levels, escapes, level_len, segment};

const WIDTH: u8 = 2;
const ESCAPE: u8 = 3;
const LOW_BYTES: usize = CODE_BITS * ROW_BYTES;

/// Encodes all blocks and returns the length of the variable section, or `None` if it would exceed the plan's limit.
pub(super) fn encode_blocks(plan: &EncodePlan, cascade: Cascade, source: &[u8], target: &mut [u8]) -> Option<usize> {
    let layout = plan.layout();
    let ranks = cascade.ranks();
    let mut variable_len = 0;
    for index in 0..layout.blocks() {
        let ranges = layout.block(index);
        let elements = &source[layout.decoded_range(ranges.tiles)];
        let mut block = EncodedBlock::default();
        for (tile_index, tile) in elements.chunks_exact(layout.dtype.tile_bytes()).enumerate() {
            let tile_ranges = layout.block(index).tile(tile_index);
            encode_planes(layout.dtype, tile, tile_ranges.byte_plane, tile_ranges.extra_plane, target);
            for lane in 0..LANES {
                let exponents = lane_exponents(layout.dtype, tile, lane);
                let codes = exponents.map(|exponent| block.add(cascade, ranks[usize::from(exponent)], exponent));
                let low_plane = &mut target[tile_ranges.low_plane.clone()];
                write_words(low_plane, LANES, lane, WIDTH, pack(codes, WIDTH));
            }
        }
        let segment = block.segment(cascade.levels());
        let start = variable_len;
        variable_len += segment.len();
        if variable_len > plan.variable_limit() {
            return None;
        }
        let end = plan.first_segment() + (variable_len / SEGMENT_UNIT) as u64;
        let entry = BlockEntry { wide_base: 0, wide_width: 0, end };
        target[ranges.entry].copy_from_slice(&entry.to_bytes());
        target[layout.variable.offset + start..][..segment.len()].copy_from_slice(&segment);
    }
    Some(variable_len)
}

/// What a block's segment is made of.
#[derive(Default)]
struct EncodedBlock {
    /// The codes of level 2 and up.
    levels: [Vec<u8>; MAX_LEVELS - 1],
    raw: Vec<u8>,
}

impl EncodedBlock {
    /// Adds an element and returns its code of level 1.
    fn add(&mut self, cascade: Cascade, rank: u8, exponent: u8) -> u8 {
        // A rank is the sum of its codes: all but the last of them are escapes.
        let code = |level: u8| rank.saturating_sub(ESCAPE * (level - 1)).min(ESCAPE);
        for level in 2..=cascade.levels() {
            if code(level - 1) == ESCAPE {
                self.levels[usize::from(level) - 2].push(code(level));
            }
        }
        if rank == cascade.raw_rank() {
            self.raw.push(exponent);
        }
        code(1)
    }

    fn segment(&self, levels: u8) -> Vec<u8> {
        let mut segment = Vec::new();
        for codes in &self.levels[..usize::from(levels) - 1] {
            let end = segment.len() + level_len(codes.len());
            let bytes = codes.chunks(8 / CODE_BITS);
            segment.extend(bytes.map(|codes| codes.iter().rev().fold(0, |byte, code| byte << CODE_BITS | code)));
            segment.resize(end, 0);
        }
        segment.extend(&self.raw);
        segment.resize(segment.len().next_multiple_of(SEGMENT_UNIT), 0);
        segment
    }
}

/// Decodes one tile by itself: the codes of its block before it are only counted.
pub(super) fn decode_tile(layout: &Layout, cascade: Cascade, source: &[u8], tile: usize, elements: &mut [u8]) {
    let (block_index, index) = (tile / BLOCK_TILES, tile % BLOCK_TILES);
    let block = layout.block(block_index);
    let ranges = block.tile(index);
    let (byte_plane, extra_plane) = (&source[ranges.byte_plane], &source[ranges.extra_plane]);
    let low_plane = &source[block.low_plane];
    let table = &source[layout.table.range()];
    let start = BlockEntry::start(table, block_index);
    let segment = segment(&source[layout.variable.range()], start, BlockEntry::read(table, block_index).end);
    let mut codes = Codes::before_tile(cascade, low_plane, segment, index);
    let low_plane = &low_plane[index * LOW_BYTES..][..LOW_BYTES];
    for lane in 0..LANES {
        let first = unpack(read_words(low_plane, LANES, lane, WIDTH), WIDTH);
        let exponents: [u8; ROWS] = core::array::from_fn(|row| codes.exponent(cascade, first[row]));
        let exponents = exponents.map(|exponent| exponent & layout.dtype.exponent_mask());
        decode_lane(layout.dtype, exponents, byte_plane, extra_plane, lane, elements);
    }
}

/// The next code of every level behind the first, and the next raw exponent.
struct Codes<'a> {
    segment: &'a [u8],
    levels: Levels,
    /// Codes before the next one, by level, the first of which is 2; behind the last level, raw exponents.
    next: [usize; MAX_LEVELS],
}

impl<'a> Codes<'a> {
    fn before_tile(cascade: Cascade, low_plane: &[u8], segment: &'a [u8], tile: usize) -> Self {
        let levels = Levels::count(cascade.levels(), low_plane, segment);
        let mut next = [0; MAX_LEVELS];
        next[0] = escapes(low_plane, tile * TILE_ELEMENTS);
        for level in 2..=cascade.levels() {
            let at = usize::from(level) - 2;
            next[at + 1] = escapes(segment.get(levels.level(level).start..).unwrap_or(&[]), next[at]);
        }
        Self { segment, levels, next }
    }

    /// The exponent of the next element, whose code of level 1 is known. What the segment lacks counts as zero.
    fn exponent(&mut self, cascade: Cascade, first: u8) -> u8 {
        let mut code = first;
        for level in 2..=cascade.levels() {
            if code != ESCAPE {
                return self.symbol(cascade, level - 1, code);
            }
            let next = &mut self.next[usize::from(level) - 2];
            let byte = self.segment.get(self.levels.level(level).start + *next / 4).copied().unwrap_or(0);
            code = byte >> (CODE_BITS * (*next % 4)) & ESCAPE;
            *next += 1;
        }
        if code != ESCAPE {
            return self.symbol(cascade, cascade.levels(), code);
        }
        let next = &mut self.next[usize::from(cascade.levels()) - 1];
        let exponent = self.segment.get(self.levels.raw().start + *next).copied().unwrap_or(0);
        *next += 1;
        exponent
    }

    fn symbol(&self, cascade: Cascade, level: u8, code: u8) -> u8 {
        cascade.symbols()[(usize::from(level) - 1) * LEVEL_SYMBOLS + usize::from(code)]
    }
}

#[cfg(test)]
mod tests;
