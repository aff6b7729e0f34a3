//! Encoding an analysed block, a vector of lanes at a time.

use std::marker::PhantomData;

use enec_format::geometry::{BLOCK_TILES, ROW_BYTES, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES};

use super::float::{Float, at, pair};
use super::isa::{Isa, Kernel, tile_lanes};
use super::pack::{Width, pack};
use super::planes::split_lanes;
use super::scratch::WideRows;
use super::{EncodeBlock, PlanesTarget};

/// Writes all planes, the low plane at `common_width`, and what the wide lanes need of the high segment to `wide`, unpacked.
pub(super) struct EncodePlanes<'a, 't, 'b, F, W> {
    pub(super) common_width: W,
    pub(super) block: &'a EncodeBlock<'a>,
    pub(super) planes: PlanesTarget<'t, 'b>,
    pub(super) wide: &'a mut WideRows,
    pub(super) float: PhantomData<F>,
}

impl<F: Float, W: Width> Kernel for EncodePlanes<'_, '_, '_, F, W> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { common_width, block, planes: mut target, wide, .. } = self;
        let bytes = [TILE_BYTE_PLANE_BYTES, F::DTYPE.tile_extra_bytes(), common_width.bits() * ROW_BYTES];
        let common_base = isa.splat(pair(block.windows.common_base()));
        let wide_base = isa.splat(pair(block.wide.base));
        let mut rank = 0;
        for (index, tile) in block.elements.chunks_exact(F::DTYPE.tile_bytes()).enumerate() {
            let mask = &block.mask.as_chunks::<TILE_MASK_BYTES>().0[index];
            for vector in 0..I::VECTORS {
                isa.prefetch(block.ahead, 0, index * I::VECTORS + vector, BLOCK_TILES * I::VECTORS);
                let lanes = tile_lanes::<I>(mask, vector);
                let mut base = common_base;
                if lanes != 0 {
                    base = isa.select(isa.mask(lanes), wide_base, common_base);
                }
                let [byte_plane, extra_plane, low_plane] = target.tile(isa, index, bytes, I::VECTORS);
                let mut planes = TilePlanes { byte_plane, extra_plane, low_plane };
                let differences = planes.write::<I, F, W>(isa, common_width, tile, vector, base);
                if lanes != 0 {
                    isa.compact(&differences, lanes, wide, rank);
                    rank += lanes.count_ones() as usize;
                }
            }
            target.complete(isa, bytes);
        }
        target.finish(isa);
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
    /// Writes the lanes of a vector and returns their differences from `base`, as pairs.
    #[inline(always)]
    fn write<I: Isa, F: Float, W: Width>(
        &mut self,
        isa: I,
        common_width: W,
        tile: &[u8],
        vector: usize,
        base: I::Vector,
    ) -> [I::Vector; 8] {
        let mut differences = split_lanes::<I, F>(isa, tile, vector, self.byte_plane, self.extra_plane);
        for difference in &mut differences {
            *difference = isa.subtract_bytes(base, *difference);
        }
        let mut low = differences;
        for low in &mut low {
            *low = isa.and(*low, isa.splat(pair(low_bits(common_width.bits()))));
        }
        for (row, words) in pack(isa, common_width, &low).into_iter().enumerate().take(common_width.bits()) {
            isa.store(words, self.low_plane, at::<I>(row, vector));
        }
        differences
    }
}

/// Packs the wide lanes' differences, without their lowest `common_width` bits, at `high_width` into the high segment.
pub(super) struct PackSegment<'a, W> {
    pub(super) high_width: W,
    pub(super) common_width: usize,
    pub(super) wide: &'a WideRows,
    pub(super) segment: &'a mut [u8],
}

impl<W: Width> Kernel for PackSegment<'_, W> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { high_width, common_width, wide, segment } = self;
        let row_vectors = segment.len() / (high_width.bits() * 2 * I::LANES);
        let high_mask = isa.splat(pair(low_bits(high_width.bits())));
        for index in 0..row_vectors {
            let mut high = [isa.splat(0); 8];
            for (row, high) in high.iter_mut().enumerate() {
                let differences = isa.load(&wide.0[row], index);
                *high = isa.and(isa.shift_down(differences, common_width), high_mask);
            }
            for (row, words) in pack(isa, high_width, &high).into_iter().enumerate().take(high_width.bits()) {
                isa.store(words, segment, row * row_vectors + index);
            }
        }
    }
}

/// The lowest `width` bits of a byte.
const fn low_bits(width: usize) -> u8 {
    if width == 0 { 0 } else { 0xFF >> (8 - width) }
}
