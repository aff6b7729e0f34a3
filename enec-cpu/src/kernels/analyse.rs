//! The analysis of a block: which lanes are wide, and the window that covers them.

use std::marker::PhantomData;

use enec_format::geometry::{ROWS, TILE_MASK_BYTES};
use enec_format::{TwoWindows, wide_lanes};

use super::WideLanes;
use super::float::{Float, VECTORS};
use super::isa::{Isa, Kernel};

/// How many tiles ahead elements are asked for: measured, 1 to 7 differ by less than the noise.
const PREFETCH_TILES: usize = 2;

/// See [`Kernels::analyse`](super::Kernels::analyse).
pub(super) struct Analyse<'a, F> {
    pub(super) windows: TwoWindows,
    pub(super) elements: &'a [u8],
    pub(super) mask: &'a mut [u8],
    pub(super) float: PhantomData<F>,
}

impl<F: Float> Kernel for Analyse<'_, F> {
    type Output = WideLanes;

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) -> WideLanes {
        let Self { windows, elements, mask, .. } = self;
        let largest_common = windows.common_base();
        let span = (1_u16 << windows.common_width()) - 1;
        let smallest_common = isa.splat(u16::from(largest_common).saturating_sub(span));
        let largest_common = isa.splat(u16::from(largest_common));
        let (mut smallest_wide, mut largest_wide) = (isa.splat(0xFFFF), isa.splat(0));
        let tiles = elements.chunks_exact(F::DTYPE.tile_bytes());
        for (tile, mask) in tiles.zip(mask.as_chunks_mut::<TILE_MASK_BYTES>().0) {
            for (strip, mask) in mask.as_chunks_mut::<4>().0.iter_mut().enumerate() {
                isa.prefetch(tile, PREFETCH_TILES * tile.len(), strip, TILE_MASK_BYTES / 4);
                let (mut bounds, mut wide) = ([(isa.splat(0), isa.splat(0)); 2], [isa.splat(0); 2]);
                for half in 0..2 {
                    let (smallest, largest) = lane_range::<I, F>(isa, tile, 2 * strip + half);
                    wide[half] = isa.or(isa.greater(largest, largest_common), isa.greater(smallest_common, smallest));
                    bounds[half] = (smallest, largest);
                }
                *mask = isa.lane_bits(wide[0], wide[1]).to_le_bytes();
                for ((smallest, largest), wide) in bounds.into_iter().zip(wide) {
                    smallest_wide = isa.smaller(smallest_wide, isa.select(wide, smallest, isa.splat(0xFFFF)));
                    largest_wide = isa.larger(largest_wide, isa.and(wide, largest));
                }
            }
        }
        WideLanes::new(
            windows,
            wide_lanes(mask),
            words(isa, smallest_wide).into_iter().fold(u8::MAX, |a, b| a.min(b[0])),
            words(isa, largest_wide).into_iter().fold(0, |a, b| a.max(b[0])),
        )
    }
}

const _: () = assert!(VECTORS == 2 * TILE_MASK_BYTES / 4);

/// Smallest and largest exponent of 16 lanes.
#[inline(always)]
fn lane_range<I: Isa, F: Float>(isa: I, tile: &[u8], index: usize) -> (I::Vector, I::Vector) {
    // Without the sign, and unsigned, words compare as their exponents do.
    let (mut smallest, mut largest) = (isa.splat(0xFFFF), isa.splat(0));
    for row in 0..ROWS {
        let (words, _) = F::load(isa, tile, row, index);
        let magnitudes = isa.shift_up(words, 1);
        smallest = isa.smaller(smallest, magnitudes);
        largest = isa.larger(largest, magnitudes);
    }
    let shift = 16 - usize::from(F::DTYPE.exponent_bits());
    (isa.shift_down(smallest, shift), isa.shift_down(largest, shift))
}

#[inline(always)]
fn words<I: Isa>(isa: I, vector: I::Vector) -> [[u8; 2]; 16] {
    let mut bytes = [0; 32];
    isa.store(vector, &mut bytes);
    let mut words = [[0; 2]; 16];
    words.copy_from_slice(bytes.as_chunks().0);
    words
}
