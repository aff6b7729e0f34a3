//! Encoding a block, 16 lanes at a time.

use std::marker::PhantomData;

use enec_format::Dtype;
use enec_format::geometry::{BLOCK_ELEMENTS, LANES, TILE_BYTE_PLANE_BYTES};

use super::bits::Bits;
use super::codes::{Codes, Places, VECTOR_WORDS, VECTORS, Writer, for_lane_pairs};
use super::decode::{TILE_LOW_BYTES, escape_marks};
use super::{CascadeScratch, CascadeSource, PlaceTable};
use crate::kernels::TileTarget;
use crate::kernels::float::{Float, at};
use crate::kernels::isa::{BitKernel, NarrowIsa};
use crate::kernels::planes::split_lanes;

/// How many tiles ahead elements are asked for.
const PREFETCH_TILES: isize = 2;

/// Writes the planes of a block and its segment, that one to the scratch memory, and returns the segment's length.
pub(in crate::kernels) struct EncodeCascade<'a, 't, 'b, F> {
    pub(in crate::kernels) block: &'a CascadeSource<'a>,
    pub(in crate::kernels) planes: [TileTarget<'t, 'b>; 3],
    pub(in crate::kernels) show: &'a mut dyn FnMut(&[u8]),
    pub(in crate::kernels) scratch: &'a mut CascadeScratch,
    pub(in crate::kernels) float: PhantomData<F>,
}

impl<F: Float> BitKernel for EncodeCascade<'_, '_, '_, F> {
    type Output = usize;

    #[inline(always)]
    fn run<I: NarrowIsa, B: Bits>(self, isa: I, bits: B) -> usize {
        let Self { block, planes: [mut bytes, mut extra, mut low], show, scratch, .. } = self;
        let CascadeScratch { escapes, places, levels, raw, segment } = scratch;
        let table = PlaceTable::new(block.symbols);
        raw.count = 0;
        let mut writer = Writer::new(levels.second_mut());
        let extra_bytes = F::DTYPE.tile_extra_bytes();
        // The escapes of a tile go to level 2 while the next one is split: one keeps the processor's scalar units busy, the other its
        // vector units.
        let mut gathered = 0;
        for (tile_index, tile) in block.elements.chunks_exact(F::DTYPE.tile_bytes()).enumerate() {
            show(tile);
            let (byte_plane, mut bytes_before) = bytes.tile(tile_index, TILE_BYTE_PLANE_BYTES);
            let (extra_plane, mut extra_before) = extra.tile(tile_index, extra_bytes);
            let (low_plane, mut low_before) = low.tile(tile_index, TILE_LOW_BYTES);
            for vector in 0..VECTORS {
                if let Some(before) = &mut bytes_before {
                    before.advance(isa, TILE_BYTE_PLANE_BYTES / VECTORS);
                }
                if let Some(before) = &mut extra_before {
                    before.advance(isa, extra_bytes / VECTORS);
                }
                if let Some(before) = &mut low_before {
                    before.advance(isa, TILE_LOW_BYTES / VECTORS);
                }
                isa.prefetch(tile, PREFETCH_TILES, vector, VECTORS);
                let index = tile_index * VECTORS + vector;
                if index >= VECTORS {
                    gather::<I, B>(bits, &mut writer, escapes, places, gathered);
                    gathered += 1;
                }
                let exponents = split_lanes::<I, F>(isa, tile, vector, byte_plane, extra_plane);
                let pairs = isa.places(&exponents, &table);
                let has_raw = store_places(isa, &pairs, index, places, escapes, low_plane);
                if has_raw {
                    raw.take::<I>(F::DTYPE, places, index, tile);
                }
            }
            bytes.complete(isa, TILE_BYTE_PLANE_BYTES);
            extra.complete(isa, extra_bytes);
            low.complete(isa, TILE_LOW_BYTES);
        }
        bytes.finish(isa);
        extra.finish(isa);
        low.finish(isa);
        for vector in gathered..block.elements.len() / F::DTYPE.tile_bytes() * VECTORS {
            gather::<I, B>(bits, &mut writer, escapes, places, vector);
        }
        let count = writer.finish();
        levels.write(bits, block.levels, count, &raw.exponents[..raw.count], segment)
    }
}

/// Gives the places of the escapes of 16 lanes to level 2.
#[inline(always)]
fn gather<I: NarrowIsa, B: Bits>(bits: B, writer: &mut Writer<'_>, escapes: &Codes, places: &Places, vector: usize) {
    let (escapes, lows, highs) = (escapes.lanes(vector), places.low.lanes(vector), places.high.lanes(vector));
    for_lane_pairs!(PAIR => {
        let word = |words: &[[u8; 8]; VECTOR_WORDS]| u64::from_le_bytes(words[I::LANE_PAIRS[PAIR]]);
        writer.gather(bits, (word(lows), word(highs)), word(escapes));
    });
}

/// Writes the codes of level 1 and, to the scratch memory, the places of 16 lanes and which of them escape from level 1. Returns whether
/// some are raw.
#[inline(always)]
fn store_places<I: NarrowIsa>(
    isa: I,
    pairs: &[I::Vector; 8],
    index: usize,
    places: &mut Places,
    escapes: &mut Codes,
    low_plane: &mut [u8],
) -> bool {
    let even = isa.lane_strings([merge(isa, pairs[0], pairs[2]), merge(isa, pairs[4], pairs[6])]);
    let odd = isa.lane_strings([merge(isa, pairs[1], pairs[3]), merge(isa, pairs[5], pairs[7])]);
    let (lower, upper) = (isa.splat(0x3333), isa.splat(0xCCCC));
    let (mut codes, mut raw) = (even, isa.splat(0));
    for half in 0..2 {
        let (even, odd) = (even[half], odd[half]);
        let low = isa.or(isa.and(even, lower), isa.and(isa.shift_up(odd, 2), upper));
        let high = isa.or(isa.and(isa.shift_down(even, 2), lower), isa.and(odd, upper));
        let below = isa.and(isa.or(high, isa.shift_down(high, 1)), isa.splat(0x5555));
        let marks = isa.or(isa.or(below, isa.shift_up(below, 1)), escape_marks(isa, low));
        let at = 2 * index + half;
        isa.store(low, places.low.bytes_mut(), at);
        isa.store(high, places.high.bytes_mut(), at);
        isa.store(marks, escapes.bytes_mut(), at);
        codes[half] = isa.or(low, marks);
        let both = isa.and(low, high);
        raw = isa.or(raw, isa.and(isa.and(both, isa.shift_down(both, 1)), isa.splat(0x5555)));
    }
    let column = index % VECTORS;
    let [first, second] = isa.separate(codes);
    isa.store(first, low_plane, at::<I>(0, column));
    isa.store(second, low_plane, at::<I>(1, column));
    !isa.is_zero(raw)
}

/// Two places in each byte.
#[inline(always)]
fn merge<I: NarrowIsa>(isa: I, first: I::Vector, second: I::Vector) -> I::Vector {
    isa.or(first, isa.shift_up(second, 4))
}

/// Raw exponents, in the order of tiles, lanes, rows.
#[derive(Debug, Clone)]
pub(super) struct Raw {
    exponents: [u8; BLOCK_ELEMENTS],
    count: usize,
}

impl Raw {
    /// None.
    pub(super) const ZERO: Self = Self { exponents: [0; _], count: 0 };

    /// Takes those of 16 lanes.
    #[inline(always)]
    fn take<I: NarrowIsa>(&mut self, dtype: Dtype, places: &Places, index: usize, tile: &[u8]) {
        for (pair, word) in I::LANE_PAIRS.into_iter().enumerate() {
            let word = index * VECTOR_WORDS + word;
            let both = places.low.word(word) & places.high.word(word);
            let mut marks = both & both >> 1 & 0x5555_5555_5555_5555;
            while marks != 0 {
                let element = marks.trailing_zeros() as usize / 2;
                marks &= marks - 1;
                let (row, lane) = (element % 16, index % VECTORS * 16 + 2 * pair + element / 16);
                self.exponents[self.count] = exponent(dtype, tile, row * LANES + lane);
                self.count += 1;
            }
        }
    }
}

/// The exponent of an element.
#[inline(always)]
fn exponent(dtype: Dtype, tile: &[u8], index: usize) -> u8 {
    let end = (index + 1) * dtype.element_bytes();
    let word = u16::from_le_bytes([tile[end - 2], tile[end - 1]]);
    (word >> (15 - dtype.exponent_bits())).to_le_bytes()[0] & dtype.exponent_mask()
}
