//! Encoding an analysed block, a vector of lanes at a time.

use std::marker::PhantomData;

use enec_format::geometry::{ROW_BYTES, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES};

use super::float::{Float, at, pair};
use super::isa::{Isa, Kernel, tile_lanes};
use super::pack::{Width, bits, pack, with_width};
use super::planes::split_lanes;
use super::scratch::WideRows;
use super::{EncodeBlock, TileTarget};

/// Writes all planes, the low plane at `common_width`, and to `wide` the rows of the high segment.
pub(super) struct EncodePlanes<'a, 't, 'b, F, W> {
    pub(super) common_width: W,
    pub(super) block: &'a EncodeBlock<'a>,
    pub(super) planes: [TileTarget<'t, 'b>; 3],
    pub(super) wide: &'a mut WideRows,
    pub(super) float: PhantomData<F>,
}

impl<F: Float, W: Width> Kernel for EncodePlanes<'_, '_, '_, F, W> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { common_width, block, planes: [mut bytes, mut extra, mut low], wide, .. } = self;
        let (extra_bytes, low_bytes) = (F::DTYPE.tile_extra_bytes(), common_width.bits() * ROW_BYTES);
        let common_base = isa.splat(pair(block.windows.common_base()));
        let wide_base = isa.splat(pair(block.wide.base));
        let high_width = block.wide.high_width(block.windows);
        let mut ahead = block.ahead.chunks_exact(F::DTYPE.tile_bytes() / I::VECTORS);
        let mut rank = 0;
        for (index, tile) in block.elements.chunks_exact(F::DTYPE.tile_bytes()).enumerate() {
            let mask = &block.mask.as_chunks::<TILE_MASK_BYTES>().0[index];
            let (byte_plane, mut bytes_before) = bytes.tile(index, TILE_BYTE_PLANE_BYTES);
            let (extra_plane, mut extra_before) = extra.tile(index, extra_bytes);
            let (low_plane, mut low_before) = low.tile(index, low_bytes);
            let mut planes = TilePlanes { byte_plane, extra_plane, low_plane };
            for vector in 0..I::VECTORS {
                // One by one, here and in the cascade: together in an array they made encoding in cache a fifteenth slower.
                if let Some(before) = &mut bytes_before {
                    before.advance(isa, TILE_BYTE_PLANE_BYTES / I::VECTORS);
                }
                if let Some(before) = &mut extra_before {
                    before.advance(isa, extra_bytes / I::VECTORS);
                }
                if let Some(before) = &mut low_before {
                    before.advance(isa, low_bytes / I::VECTORS);
                }
                if let Some(ahead) = ahead.next() {
                    isa.prefetch_to_second_level(ahead, 0, 0, 1);
                }
                let lanes = tile_lanes::<I>(mask, vector);
                let mut base = common_base;
                if lanes != 0 {
                    base = isa.select(isa.mask(lanes), wide_base, common_base);
                }
                let differences = planes.write::<I, F, W>(isa, common_width, tile, vector, base);
                if lanes != 0 {
                    with_width!(I, high_width, high_width => {
                        compact(isa, (common_width, high_width), &differences, lanes, wide, rank);
                    });
                    rank += lanes.count_ones() as usize;
                }
            }
            bytes.complete(isa, TILE_BYTE_PLANE_BYTES);
            extra.complete(isa, extra_bytes);
            low.complete(isa, low_bytes);
        }
        bytes.finish(isa);
        extra.finish(isa);
        low.finish(isa);
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
            *low = isa.and(*low, isa.splat(bits(0, common_width.bits())));
        }
        for (row, words) in pack(isa, common_width, &low).into_iter().enumerate().take(common_width.bits()) {
            isa.store(words, self.low_plane, at::<I>(row, vector));
        }
        differences
    }
}

/// Packs the differences of wide lanes without their lowest `common_width` bits, and puts them behind those of the first `rank` wide lanes.
#[inline(always)]
fn compact<I: Isa>(
    isa: I,
    widths: (impl Width, impl Width),
    differences: &[I::Vector; 8],
    lanes: u32,
    wide: &mut WideRows,
    rank: usize,
) {
    let (common_width, high_width) = widths;
    let mut high = *differences;
    for high in &mut high {
        *high = isa.and(isa.shift_down(*high, common_width.bits()), isa.splat(bits(0, high_width.bits())));
    }
    isa.compact(&pack(isa, high_width, &high)[..high_width.bits()], lanes, wide, rank);
}
