//! Encoding an analysed block, 16 lanes at a time.

use std::marker::PhantomData;

use enec_format::Dtype;
use enec_format::geometry::{ROW_BYTES, ROWS, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES};

use super::float::{Float, VECTORS, pair, split, vector_mut};
use super::isa::{Isa, Kernel};
use super::pack::pack;
use super::scratch::WideRows;
use super::{EncodeBlock, EncodedParts};

/// Writes all planes at common width `M`, and what the wide lanes need of the high segment to `wide`, unpacked.
pub(super) struct EncodePlanes<'a, 'b, F, const M: usize> {
    pub(super) block: &'a EncodeBlock<'a>,
    pub(super) parts: &'a mut EncodedParts<'b>,
    pub(super) wide: &'a mut WideRows,
    pub(super) float: PhantomData<F>,
}

impl<F: Float, const M: usize> Kernel for EncodePlanes<'_, '_, F, M> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { block, parts, wide, .. } = self;
        let common_base = isa.splat(pair(block.windows.common_base()));
        let wide_base = isa.splat(pair(block.wide.base));
        let mut rank = 0;
        for (index, tile) in block.elements.chunks_exact(F::DTYPE.tile_bytes()).enumerate() {
            let mask = &block.mask.as_chunks::<TILE_MASK_BYTES>().0[index];
            let extra_bytes = F::DTYPE.tile_extra_bytes();
            let mut planes = TilePlanes {
                byte_plane: &mut parts.byte_plane[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES],
                extra_plane: &mut parts.extra_plane[index * extra_bytes..][..extra_bytes],
                low_plane: &mut parts.low_plane[index * M * ROW_BYTES..][..M * ROW_BYTES],
            };
            for vector in 0..VECTORS {
                let bits = u16::from_le_bytes([mask[2 * vector], mask[2 * vector + 1]]);
                let mut base = common_base;
                if bits != 0 {
                    base = isa.select(isa.lane_mask(bits), wide_base, common_base);
                }
                let differences = planes.write::<I, F, M>(isa, tile, vector, base);
                if bits != 0 {
                    isa.compact(&differences, bits, wide, rank);
                    rank += bits.count_ones() as usize;
                }
            }
        }
        wide.clear_from(rank);
    }
}

/// The planes of one tile.
struct TilePlanes<'a> {
    byte_plane: &'a mut [u8],
    extra_plane: &'a mut [u8],
    low_plane: &'a mut [u8],
}

impl TilePlanes<'_> {
    /// Writes 16 lanes and returns their differences from `base`, as pairs.
    #[inline(always)]
    fn write<I: Isa, F: Float, const M: usize>(
        &mut self,
        isa: I,
        tile: &[u8],
        vector: usize,
        base: I::Vector,
    ) -> [I::Vector; 8] {
        let (mut differences, mut extra) = ([isa.splat(0); 8], [isa.splat(0); 8]);
        for row in 0..ROWS / 2 {
            let (first, first_lower) = F::load(isa, tile, row, vector);
            let (second, second_lower) = F::load(isa, tile, row + ROWS / 2, vector);
            if F::DTYPE == Dtype::F32 {
                isa.store(first_lower, vector_mut(self.extra_plane, row, vector));
                isa.store(second_lower, vector_mut(self.extra_plane, row + ROWS / 2, vector));
            }
            let (bytes, mut exponents) = split::<I, F>(isa, first, second);
            isa.store(bytes, vector_mut(self.byte_plane, row, vector));
            if F::DTYPE == Dtype::F16 {
                extra[row] = isa.and(isa.shift_down(exponents, 5), isa.splat(0x0707));
                exponents = isa.and(exponents, isa.splat(0x1F1F));
            }
            differences[row] = isa.subtract_bytes(base, exponents);
        }
        if F::DTYPE == Dtype::F16 {
            for (row, words) in pack::<I, 3>(isa, &extra).into_iter().enumerate() {
                isa.store(words, vector_mut(self.extra_plane, row, vector));
            }
        }
        let mut low = differences;
        for low in &mut low {
            *low = isa.and(*low, isa.splat(pair(low_bits(M))));
        }
        for (row, words) in pack::<I, M>(isa, &low).into_iter().enumerate() {
            isa.store(words, vector_mut(self.low_plane, row, vector));
        }
        differences
    }
}

/// Packs the wide lanes' differences, without their lowest `common_width` bits, at width `H` into the high segment.
pub(super) struct PackSegment<'a, const H: usize> {
    pub(super) common_width: usize,
    pub(super) wide: &'a WideRows,
    pub(super) segment: &'a mut [u8],
}

impl<const H: usize> Kernel for PackSegment<'_, H> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { common_width, wide, segment } = self;
        let row_vectors = segment.len() / (H * 32);
        let high_mask = isa.splat(pair(low_bits(H)));
        let vectors = segment.as_chunks_mut::<32>().0;
        for index in 0..row_vectors {
            let mut high = [isa.splat(0); 8];
            for (row, high) in high.iter_mut().enumerate() {
                let differences = isa.load(wide.vector(row, index));
                *high = isa.and(isa.shift_down(differences, common_width), high_mask);
            }
            for (row, words) in pack::<I, H>(isa, &high).into_iter().enumerate() {
                isa.store(words, &mut vectors[row * row_vectors + index]);
            }
        }
    }
}

/// The lowest `width` bits of a byte.
const fn low_bits(width: usize) -> u8 {
    if width == 0 { 0 } else { 0xFF >> (8 - width) }
}
