//! Decoding tiles of a block, 16 lanes at a time.

use std::marker::PhantomData;

use enec_format::Dtype;
use enec_format::geometry::{LANES, ROW_BYTES, TILE_BYTE_PLANE_BYTES, TILE_ELEMENTS};

use super::bits::Bits;
use super::codes::{Codes, Places, Reader, VECTOR_WORDS, VECTORS, WORD_ELEMENTS, escapes, for_lane_pairs};
use super::{CascadeBlock, CascadeScratch, places};
use crate::kernels::TileTarget;
use crate::kernels::float::{Float, at};
use crate::kernels::isa::{BitKernel, NarrowIsa};
use crate::kernels::planes::join_lanes;

/// How many tiles ahead planes are asked for.
const PREFETCH_TILES: isize = 2;

/// Bytes of the low plane of one tile.
pub(in crate::kernels) const TILE_LOW_BYTES: usize = 2 * ROW_BYTES;

/// Words of codes of one tile.
const TILE_WORDS: usize = VECTORS * VECTOR_WORDS;

/// Decodes tiles.
pub(in crate::kernels) struct DecodeCascade<'a, 't, 'b, F> {
    pub(in crate::kernels) block: &'a CascadeBlock<'a>,
    pub(in crate::kernels) target: TileTarget<'t, 'b>,
    pub(in crate::kernels) scratch: &'a mut CascadeScratch,
    pub(in crate::kernels) float: PhantomData<F>,
}

impl<F: Float> BitKernel for DecodeCascade<'_, '_, '_, F> {
    type Output = ();

    #[inline(always)]
    fn run<I: NarrowIsa, B: Bits>(self, isa: I, bits: B) {
        let Self { block, mut target, scratch, .. } = self;
        let CascadeScratch { escapes, places, levels, .. } = scratch;
        find_escapes(isa, block.low_plane, escapes);
        let count = |words: std::ops::Range<usize>| -> usize {
            words.map(|word| escapes.word(word).count_ones() as usize / 2).sum()
        };
        let words = block.low_plane.len() / TILE_LOW_BYTES * TILE_WORDS;
        let raw = levels.read(bits, block.levels, count(0..words), block.segment);
        let before = count(0..block.tiles.start * TILE_WORDS);
        let raw = block.segment.get(raw.start..).map_or(&[][..], |rest| &rest[..rest.len().min(raw.len())]);
        let mut raw = Raw { exponents: raw, next: count_raw(levels.second(), before) };
        let mut reader = Reader::new(levels.second(), before);
        let table = isa.table(&places::exponents(block.symbols).map(|exponent| exponent & F::DTYPE.exponent_mask()));
        let (tile_bytes, extra_bytes) = (F::DTYPE.tile_bytes(), F::DTYPE.tile_extra_bytes());
        // The escapes of a tile come while the one before it is joined: one keeps the processor's scalar units busy, the other its vector units.
        if !block.tiles.is_empty() {
            for vector in 0..VECTORS {
                spread::<I, B>(bits, &mut reader, escapes, places, block.tiles.start * VECTORS + vector);
            }
        }
        for (index, tile_index) in block.tiles.clone().enumerate() {
            let byte_plane = &block.byte_plane[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES];
            let extra_plane = &block.extra_plane[index * extra_bytes..][..extra_bytes];
            let low_plane = &block.low_plane[tile_index * TILE_LOW_BYTES..][..TILE_LOW_BYTES];
            let (tile, mut before) = target.tile(index, tile_bytes);
            for vector in 0..VECTORS {
                if let Some(before) = &mut before {
                    before.advance(isa, tile_bytes / VECTORS);
                }
                if tile_index + 1 < block.tiles.end {
                    spread::<I, B>(bits, &mut reader, escapes, places, (tile_index + 1) * VECTORS + vector);
                }
                for plane in [byte_plane, extra_plane, low_plane] {
                    isa.prefetch(plane, PREFETCH_TILES, vector, VECTORS);
                }
                let lanes = Lanes::load(isa, low_plane, escapes, places, tile_index * VECTORS + vector);
                join_lanes::<I, F>(isa, byte_plane, extra_plane, vector, &lanes.exponents(isa, &table), tile, |_| {});
                if !isa.is_zero(lanes.raw(isa)) {
                    raw.write::<I>(isa, F::DTYPE, &lanes, vector, tile);
                }
            }
            target.complete(isa, tile_bytes);
        }
        target.finish(isa);
    }
}

/// Marks the codes of level 1 that are 3, in the order in which the lanes are interleaved.
#[inline(always)]
fn find_escapes<I: NarrowIsa>(isa: I, low_plane: &[u8], marks: &mut Codes) {
    for (tile, low_plane) in low_plane.chunks_exact(TILE_LOW_BYTES).enumerate() {
        for index in 0..VECTORS {
            let codes = isa.interleave(isa.load(low_plane, at::<I>(0, index)), isa.load(low_plane, at::<I>(1, index)));
            for (half, codes) in codes.into_iter().enumerate() {
                isa.store(escape_marks(isa, codes), marks.bytes_mut(), 2 * (tile * VECTORS + index) + half);
            }
        }
    }
}

/// The bits of the codes that are 3.
#[inline(always)]
pub(super) fn escape_marks<I: NarrowIsa>(isa: I, codes: I::Vector) -> I::Vector {
    let ones = isa.and(isa.and(codes, isa.shift_down(codes, 1)), isa.splat(0x5555));
    isa.or(ones, isa.shift_up(ones, 1))
}

/// Brings the places of the escapes of 16 lanes from level 2.
#[inline(always)]
fn spread<I: NarrowIsa, B: Bits>(
    bits: B,
    reader: &mut Reader<'_>,
    escapes: &Codes,
    places: &mut Places,
    vector: usize,
) {
    let escapes = escapes.lanes(vector);
    let (lows, highs) = (places.low.lanes_mut(vector), places.high.lanes_mut(vector));
    for_lane_pairs!(PAIR => {
        let (low, high) = reader.spread(bits, u64::from_le_bytes(escapes[I::LANE_PAIRS[PAIR]]));
        lows[I::LANE_PAIRS[PAIR]] = low.to_le_bytes();
        highs[I::LANE_PAIRS[PAIR]] = high.to_le_bytes();
    });
}

/// The places of 16 lanes: lower and upper two bits, interleaved.
struct Lanes<V> {
    low: [V; 2],
    high: [V; 2],
}

impl<V: Copy> Lanes<V> {
    #[inline(always)]
    fn load<I: NarrowIsa<Vector = V>>(
        isa: I,
        low_plane: &[u8],
        escapes: &Codes,
        places: &Places,
        index: usize,
    ) -> Self {
        let column = index % VECTORS;
        let mut low = isa.interleave(isa.load(low_plane, at::<I>(0, column)), isa.load(low_plane, at::<I>(1, column)));
        let mut high = low;
        for half in 0..2 {
            let (escapes, at) = (isa.load(escapes.bytes(), 2 * index + half), 2 * index + half);
            low[half] = isa.or(isa.xor(low[half], escapes), isa.load(places.low.bytes(), at));
            high[half] = isa.load(places.high.bytes(), at);
        }
        Self { low, high }
    }

    /// The exponents, as pairs.
    #[inline(always)]
    fn exponents<I: NarrowIsa<Vector = V>>(&self, isa: I, table: &I::Table) -> [V; 8] {
        let (lower, upper) = (isa.splat(0x3333), isa.splat(0xCCCC));
        let (mut even, mut odd) = (self.low, self.low);
        for half in 0..2 {
            let (low, high) = (self.low[half], self.high[half]);
            even[half] = isa.or(isa.and(low, lower), isa.and(isa.shift_up(high, 2), upper));
            odd[half] = isa.or(isa.and(isa.shift_down(low, 2), lower), isa.and(high, upper));
        }
        let ([even_first, even_last], [odd_first, odd_last]) = (isa.lane_bytes(even), isa.lane_bytes(odd));
        [
            look_up(isa, table, even_first, 0),
            look_up(isa, table, odd_first, 0),
            look_up(isa, table, even_first, 4),
            look_up(isa, table, odd_first, 4),
            look_up(isa, table, even_last, 0),
            look_up(isa, table, odd_last, 0),
            look_up(isa, table, even_last, 4),
            look_up(isa, table, odd_last, 4),
        ]
    }

    /// Marks of the elements whose exponents are stored raw.
    #[inline(always)]
    fn raw_halves<I: NarrowIsa<Vector = V>>(&self, isa: I) -> [V; 2] {
        let mut raw = self.low;
        for (raw, high) in raw.iter_mut().zip(self.high) {
            let both = isa.and(*raw, high);
            *raw = isa.and(isa.and(both, isa.shift_down(both, 1)), isa.splat(0x5555));
        }
        raw
    }

    /// Zero if no exponent is stored raw.
    #[inline(always)]
    fn raw<I: NarrowIsa<Vector = V>>(&self, isa: I) -> V {
        let [first, second] = self.raw_halves(isa);
        isa.or(first, second)
    }
}

/// The exponents of the places in one half of each byte.
#[inline(always)]
fn look_up<I: NarrowIsa>(isa: I, table: &I::Table, places: I::Vector, shift: usize) -> I::Vector {
    isa.lookup(table, isa.and(isa.shift_down(places, shift), isa.splat(0x0F0F)))
}

/// How many of the first `elements` elements are stored raw.
fn count_raw(places: &Places, elements: usize) -> usize {
    let words = 0..elements.div_ceil(WORD_ELEMENTS);
    let raw = words.map(|word| {
        let rest = super::codes::first_codes(elements - word * WORD_ELEMENTS);
        (escapes(places.low.word(word) & places.high.word(word)) & rest).count_ones() as usize / 2
    });
    raw.sum()
}

/// The raw exponents, in the order of tiles, lanes, rows.
struct Raw<'a> {
    exponents: &'a [u8],
    next: usize,
}

impl Raw<'_> {
    /// Writes those of 16 lanes into elements that have all but the exponent.
    #[inline(always)]
    fn write<I: NarrowIsa>(&mut self, isa: I, dtype: Dtype, lanes: &Lanes<I::Vector>, vector: usize, tile: &mut [u8]) {
        let (mut marks, [first, second]) = ([0; 64], lanes.raw_halves(isa));
        isa.store(first, &mut marks, 0);
        isa.store(second, &mut marks, 1);
        for (pair, word) in I::LANE_PAIRS.into_iter().enumerate() {
            let mut marks = u64::from_le_bytes(marks.as_chunks().0[word]);
            while marks != 0 {
                let element = marks.trailing_zeros() as usize / 2;
                marks &= marks - 1;
                let (row, lane) = (element % 16, vector * 16 + 2 * pair + element / 16);
                let exponent = self.exponents.get(self.next).copied().unwrap_or(0);
                self.next += 1;
                set_exponent(dtype, tile, row * LANES + lane, exponent);
            }
        }
    }
}

/// Puts the lowest `E` bits of `exponent` into an element whose exponent is whatever.
#[inline(always)]
fn set_exponent(dtype: Dtype, tile: &mut [u8], index: usize, exponent: u8) {
    debug_assert!(index < TILE_ELEMENTS);
    let end = (index + 1) * dtype.element_bytes();
    let word = &mut tile[end - 2..end];
    let shift = 15 - dtype.exponent_bits();
    let mask = u16::from(dtype.exponent_mask()) << shift;
    let value = u16::from_le_bytes([word[0], word[1]]) & !mask | u16::from(exponent) << shift & mask;
    word.copy_from_slice(&value.to_le_bytes());
}
