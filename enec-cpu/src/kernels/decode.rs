//! Decoding tiles of a block, a vector of lanes at a time.

use std::marker::PhantomData;

use enec_format::Dtype;
use enec_format::geometry::{BLOCK_TILES, ROW_BYTES, ROWS, TILE_BYTE_PLANE_BYTES};

use super::float::{Float, at, pair};
use super::isa::{Isa, Kernel, tile_lanes};
use super::pack::{Width, unpack, with_width};
use super::planes::join_lanes;
use super::scratch::WideRows;
use super::{DecodeBlock, TileTarget};

/// How many tiles ahead planes are asked for. More would leave no room for the tiles themselves in a first-level cache of 32 kB.
const PREFETCH_TILES: isize = 1;

/// How many tiles ahead they are asked into the second-level cache: a block, so that who hashes one before it is decoded finds it there, too.
/// Measured, 6 to 24 differ by less than the noise. A tile of F32 has two and a half times the bytes, and 3 of them are asked for, as many
/// bytes: nothing to who hashes, and up to 1.05 times as fast as 8 to who does not.
const fn far_tiles(dtype: Dtype) -> isize {
    match dtype {
        Dtype::F32 => 3,
        _ => BLOCK_TILES.cast_signed(),
    }
}

/// Bytes that are streamed at once at most: the processor can wait for few lines to be written before it stops.
const STREAMED_AT_ONCE: usize = 1024;

/// Decodes tiles.
pub(super) struct DecodeTiles<'a, 't, 'b, F, W> {
    pub(super) common_width: W,
    pub(super) block: &'a DecodeBlock<'a>,
    pub(super) wide: &'a WideRows,
    pub(super) target: TileTarget<'t, 'b>,
    pub(super) float: PhantomData<F>,
}

impl<F: Float, W: Width> Kernel for DecodeTiles<'_, '_, '_, F, W> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        let Self { common_width, block, wide, mut target, .. } = self;
        let low_bytes = common_width.bits() * ROW_BYTES;
        let common_base = isa.splat(pair(block.common_base));
        let wide_base = isa.splat(pair(block.wide_base));
        let mut rank = block.first_rank();
        let tile_bytes = F::DTYPE.tile_bytes();
        let share = tile_bytes / I::VECTORS;
        // Behind a block that is shorter its planes do not go on.
        let asks_ahead = block.tiles.len() == BLOCK_TILES;
        let asks_far_ahead = asks_ahead && !block.is_near;
        for index in 0..block.tiles.len() {
            let mask = block.tile_mask(block.tiles.start + index);
            let extra_bytes = F::DTYPE.tile_extra_bytes();
            let planes = TilePlanes {
                byte_plane: &block.byte_plane[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES],
                extra_plane: &block.extra_plane[index * extra_bytes..][..extra_bytes],
                low_plane: &block.low_plane[index * low_bytes..][..low_bytes],
            };
            let (tile, mut before) = target.tile(index, tile_bytes);
            for vector in 0..I::VECTORS {
                if let Some(before) = &mut before {
                    before.advance(isa, share.min(STREAMED_AT_ONCE));
                }
                if asks_ahead {
                    for plane in planes.all() {
                        isa.prefetch(plane, PREFETCH_TILES, vector, I::VECTORS);
                    }
                }
                // F32's planes have more lines for a vector than the first-level cache can wait for: these are asked for row by row.
                let by_rows = if F::DTYPE == Dtype::F32 { 2 } else { 0 };
                if asks_far_ahead {
                    for plane in &planes.all()[by_rows..] {
                        isa.prefetch_to_second_level(plane, far_tiles(F::DTYPE), vector, I::VECTORS);
                    }
                }
                let ask_for_row = |row| {
                    if asks_far_ahead {
                        for plane in &planes.all()[..by_rows] {
                            let (share, shares) = (vector * ROWS / 2 + row, I::VECTORS * ROWS / 2);
                            isa.prefetch_to_second_level(plane, far_tiles(F::DTYPE), share, shares);
                        }
                    }
                };
                let lanes = tile_lanes::<I>(mask, vector);
                let mut differences = planes.low(isa, common_width, vector);
                let mut base = common_base;
                if lanes != 0 {
                    with_width!(I, block.high_width, high_width => {
                        expand(isa, (common_width, high_width), &mut differences, lanes, wide, rank);
                    });
                    base = isa.select(isa.mask(lanes), wide_base, common_base);
                    rank += lanes.count_ones() as usize;
                }
                if let Some(before) = &mut before
                    && share > STREAMED_AT_ONCE
                {
                    before.advance(isa, share - STREAMED_AT_ONCE);
                }
                planes.join::<I, F>(isa, vector, base, &differences, tile, ask_for_row);
            }
            target.complete(isa, tile_bytes);
        }
        target.finish(isa);
    }
}

/// Adds to the low bits of wide lanes, the first of which has rank `rank`, what the high segment has of them.
#[inline(always)]
fn expand<I: Isa>(
    isa: I,
    widths: (impl Width, impl Width),
    differences: &mut [I::Vector; 8],
    lanes: u32,
    wide: &WideRows,
    rank: usize,
) {
    let (common_width, high_width) = widths;
    let mut words = [isa.splat(0); 8];
    isa.expand(&mut words[..high_width.bits()], lanes, wide, rank);
    for (difference, high) in differences.iter_mut().zip(unpack(isa, high_width, &words)) {
        *difference = isa.or(*difference, isa.shift_up(high, common_width.bits()));
    }
}

/// The planes of one tile.
struct TilePlanes<'a> {
    byte_plane: &'a [u8],
    extra_plane: &'a [u8],
    low_plane: &'a [u8],
}

impl TilePlanes<'_> {
    /// The low bits of the lanes of a vector, as pairs.
    #[inline(always)]
    fn low<I: Isa, W: Width>(&self, isa: I, common_width: W, index: usize) -> [I::Vector; 8] {
        let mut words = [isa.splat(0); 8];
        for (row, words) in words.iter_mut().enumerate().take(common_width.bits()) {
            *words = isa.load(self.low_plane, at::<I>(row, index));
        }
        unpack(isa, common_width, &words)
    }

    #[inline(always)]
    fn all(&self) -> [&[u8]; 3] {
        [self.byte_plane, self.extra_plane, self.low_plane]
    }

    /// Writes the lanes of a vector, given their differences from `base`. See [`join_lanes`].
    #[inline(always)]
    fn join<I: Isa, F: Float>(
        &self,
        isa: I,
        index: usize,
        base: I::Vector,
        differences: &[I::Vector; 8],
        tile: &mut [u8],
        between: impl Fn(usize),
    ) {
        let mut exponents = *differences;
        for exponents in &mut exponents {
            *exponents = isa.subtract_bytes(base, *exponents);
            if F::DTYPE == Dtype::F16 {
                *exponents = isa.and(*exponents, isa.splat(0x1F1F));
            }
        }
        join_lanes::<I, F>(isa, self.byte_plane, self.extra_plane, index, &exponents, tile, between);
    }
}
