//! The analysis of a block: which lanes are wide, and the window that covers them.

use std::marker::PhantomData;

use enec_format::geometry::TILE_MASK_BYTES;
use enec_format::{TwoWindows, wide_lanes};

use super::WideLanes;
use super::float::Float;
use super::isa::{AT_ONCE, Isa, Kernel};
use super::pack::low_bits;

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
        const { assert!(I::VECTORS.is_multiple_of(AT_ONCE)) };
        let Self { windows, elements, mask, .. } = self;
        let largest_common = windows.common_base();
        // A byte until here: the compiler finds the cheaper comparison only where it sees that words are not negative.
        let smallest_common = largest_common.saturating_sub(low_bits(windows.common_width().into()));
        let smallest_common = isa.splat(u16::from(smallest_common));
        let largest_common = isa.splat(u16::from(largest_common));
        let (mut smallest_wide, mut largest_wide) = (isa.splat(0xFFFF), isa.splat(0));
        let tiles = elements.chunks_exact(F::DTYPE.tile_bytes()).zip(mask.as_chunks_mut::<TILE_MASK_BYTES>().0);
        // From the last one to the first, where the kernel that writes their planes begins: it finds half of them in the first-level cache. The
        // other way round it would find none, as that cache is just as large as a block.
        for (tile, mask) in tiles.rev() {
            for first in (0..I::VECTORS).step_by(AT_ONCE) {
                let bounds = isa.lane_ranges::<F>(tile, first);
                let mut wide = [isa.mask(0); AT_ONCE];
                for (wide, (smallest, largest)) in wide.iter_mut().zip(bounds) {
                    *wide = isa.either(isa.greater(largest, largest_common), isa.greater(smallest_common, smallest));
                }
                isa.store_masks(wide, &mut mask[first * I::LANES / 8..]);
                for ((smallest, largest), wide) in bounds.into_iter().zip(wide) {
                    smallest_wide = isa.smaller(smallest_wide, isa.select(wide, smallest, isa.splat(0xFFFF)));
                    largest_wide = isa.larger(largest_wide, isa.select(wide, largest, isa.splat(0)));
                }
            }
        }
        WideLanes::new(
            windows,
            wide_lanes(mask),
            low_bytes(isa, smallest_wide).into_iter().fold(u8::MAX, u8::min),
            low_bytes(isa, largest_wide).into_iter().fold(0, u8::max),
        )
    }
}

/// The low byte of each lane; those of the first lane again where a vector has less than 32.
#[inline(always)]
fn low_bytes<I: Isa>(isa: I, vector: I::Vector) -> [u8; 32] {
    let mut words = [0; 64];
    isa.store(vector, &mut words, 0);
    let mut bytes = [words[0]; 32];
    for (byte, word) in bytes.iter_mut().zip(words.as_chunks::<2>().0).take(I::LANES) {
        *byte = word[0];
    }
    bytes
}
