//! Decoding tiles of a block, 16 lanes at a time.

use std::marker::PhantomData;

use enec_format::Dtype;
use enec_format::geometry::{ROW_BYTES, ROWS, TILE_BYTE_PLANE_BYTES};

use super::DecodeBlock;
use super::float::{Float, VECTORS, join, pair, vector};
use super::isa::{Isa, Kernel};
use super::pack::unpack;
use super::scratch::WideRows;

/// Unpacks a high segment of width `H` into what its lanes add to their low bits.
pub(super) struct UnpackSegment<'a, const H: usize> {
    pub(super) common_width: usize,
    pub(super) segment: &'a [u8],
    pub(super) wide: &'a mut WideRows,
}

impl<const H: usize> Kernel for UnpackSegment<'_, H> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { common_width, segment, wide } = self;
        let row_vectors = segment.len() / (H * 32);
        let vectors = segment.as_chunks::<32>().0;
        for index in 0..row_vectors {
            let mut words = [isa.splat(0); H];
            for (row, words) in words.iter_mut().enumerate() {
                *words = isa.load(&vectors[row * row_vectors + index]);
            }
            for (row, high) in unpack::<I, H>(isa, &words).into_iter().enumerate() {
                isa.store(isa.shift_up(high, common_width), wide.vector_mut(row, index));
            }
        }
    }
}

/// Decodes tiles of common width `M`.
pub(super) struct DecodeTiles<'a, F, const M: usize> {
    pub(super) block: &'a DecodeBlock<'a>,
    pub(super) wide: &'a WideRows,
    pub(super) target: &'a mut [u8],
    pub(super) float: PhantomData<F>,
}

impl<F: Float, const M: usize> Kernel for DecodeTiles<'_, F, M> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { block, wide, target, .. } = self;
        let common_base = isa.splat(pair(block.common_base));
        let wide_base = isa.splat(pair(block.wide_base));
        let mut rank = block.first_rank();
        for (index, tile) in target.chunks_exact_mut(F::DTYPE.tile_bytes()).enumerate() {
            let mask = block.tile_mask(block.tiles.start + index);
            let extra_bytes = F::DTYPE.tile_extra_bytes();
            let planes = TilePlanes {
                byte_plane: &block.byte_plane[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES],
                extra_plane: &block.extra_plane[index * extra_bytes..][..extra_bytes],
                low_plane: &block.low_plane[index * M * ROW_BYTES..][..M * ROW_BYTES],
            };
            for vector in 0..VECTORS {
                let bits = u16::from_le_bytes([mask[2 * vector], mask[2 * vector + 1]]);
                let mut differences = planes.low::<I, M>(isa, vector);
                let mut base = common_base;
                if bits != 0 {
                    isa.expand(&mut differences, bits, wide, rank);
                    base = isa.select(isa.lane_mask(bits), wide_base, common_base);
                    rank += bits.count_ones() as usize;
                }
                planes.join::<I, F>(isa, vector, base, &differences, tile);
            }
        }
    }
}

/// The planes of one tile.
struct TilePlanes<'a> {
    byte_plane: &'a [u8],
    extra_plane: &'a [u8],
    low_plane: &'a [u8],
}

impl TilePlanes<'_> {
    /// The low bits of 16 lanes, as pairs.
    #[inline(always)]
    fn low<I: Isa, const M: usize>(&self, isa: I, index: usize) -> [I::Vector; 8] {
        let mut words = [isa.splat(0); M];
        for (row, words) in words.iter_mut().enumerate() {
            *words = isa.load(vector(self.low_plane, row, index));
        }
        unpack::<I, M>(isa, &words)
    }

    /// Writes 16 lanes, given their differences from `base`.
    #[inline(always)]
    fn join<I: Isa, F: Float>(
        &self,
        isa: I,
        index: usize,
        base: I::Vector,
        differences: &[I::Vector; 8],
        tile: &mut [u8],
    ) {
        let mut extra = [isa.splat(0); 8];
        if F::DTYPE == Dtype::F16 {
            let mut words = [isa.splat(0); 3];
            for (row, words) in words.iter_mut().enumerate() {
                *words = isa.load(vector(self.extra_plane, row, index));
            }
            extra = unpack::<I, 3>(isa, &words);
        }
        for row in 0..ROWS / 2 {
            let mut exponents = isa.subtract_bytes(base, differences[row]);
            if F::DTYPE == Dtype::F16 {
                exponents = isa.or(isa.and(exponents, isa.splat(0x1F1F)), isa.shift_up(extra[row], 5));
            }
            let bytes = isa.load(vector(self.byte_plane, row, index));
            let (first, second) = join::<I, F>(isa, bytes, exponents);
            let (mut first_lower, mut second_lower) = (isa.splat(0), isa.splat(0));
            if F::DTYPE == Dtype::F32 {
                first_lower = isa.load(vector(self.extra_plane, row, index));
                second_lower = isa.load(vector(self.extra_plane, row + ROWS / 2, index));
            }
            F::store(isa, first, first_lower, tile, row, index);
            F::store(isa, second, second_lower, tile, row + ROWS / 2, index);
        }
    }
}
