//! Memory that one thread reuses from block to block.

use enec_format::geometry::{BLOCK_ELEMENTS, BLOCK_TILES, LANES};

use super::{CascadeScratch, TileBytes};

/// Lanes of a block.
const BLOCK_LANES: usize = BLOCK_TILES * LANES;

/// Columns of [`WideRows`]: as many as the widest vector has more than a block has lanes, so that the last one can be read and written whole.
const COLUMNS: usize = BLOCK_LANES + 32;

/// Bytes of an element in all planes, rounded up: at most 1 in the byte plane, 2 in the extra plane and 1 in the low plane.
const LARGEST_KEPT: usize = 4;

/// The wide lanes of one block side by side, in the order of their ranks: 8 rows of words, each a pair of bytes.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct WideRows(pub(super) [[u8; 2 * COLUMNS]; 8]);

impl WideRows {
    /// Sets the first columns to zero.
    pub(super) fn clear(&mut self, columns: usize) {
        for row in &mut self.0 {
            row[..2 * columns].fill(0);
        }
    }

    /// Sets the 16 columns from `rank` on to zero.
    pub(super) fn clear_from(&mut self, rank: usize) {
        for row in &mut self.0 {
            row[2 * rank..2 * rank + 32].fill(0);
        }
    }
}

/// Planes of one block, kept until they are hashed.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct KeptPlanes([u8; LARGEST_KEPT * BLOCK_ELEMENTS]);

impl KeptPlanes {
    /// Room for planes of these lengths.
    pub(crate) fn split<const N: usize>(&mut self, lens: [usize; N]) -> [&mut [u8]; N] {
        let mut rest = &mut self.0[..];
        lens.map(|len| {
            rest.split_off_mut(..len).unwrap_or_else(|| unreachable!("planes are no longer than their elements"))
        })
    }
}

/// Memory of one thread.
#[derive(Debug)]
pub(crate) struct Scratch {
    /// For the kernels.
    pub(crate) wide: WideRows,
    /// For the kernels of the cascade.
    pub(crate) cascade: CascadeScratch,
    /// What a block's tiles, or their planes, are streamed from.
    pub(crate) tiles: [TileBytes; 3],
    /// For whoever calls the kernels.
    pub(crate) kept: KeptPlanes,
}

impl Scratch {
    /// New memory, zeroed.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            wide: WideRows([[0; _]; 8]),
            cascade: CascadeScratch::ZERO,
            tiles: [TileBytes::ZERO; 3],
            kept: KeptPlanes([0; _]),
        })
    }
}
