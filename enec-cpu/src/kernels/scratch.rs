//! Memory that one thread reuses from block to block.

use enec_format::geometry::{BLOCK_ELEMENTS, BLOCK_TILES, LANES};
use enec_format::padded_lanes;

use super::{CascadeScratch, TileBytes};

/// Lanes of a block.
const BLOCK_LANES: usize = BLOCK_TILES * LANES;

/// Columns of [`WideRows`]: as many as the widest vector has more than a block has lanes, so that the last one can be read and written whole.
const COLUMNS: usize = BLOCK_LANES + 32;

/// Bytes of an element in all planes, rounded up: at most 1 in the byte plane, 2 in the extra plane and 1 in the low plane.
const LARGEST_KEPT: usize = 4;

/// The high segment of one block: rows of words, as many as its width, with a column for each wide lane in the order of their ranks.
///
/// Other than in the segment itself, there is room behind a row: wide lanes are moved a vector at a time, whatever there are of them.
#[derive(Debug, Clone, Copy)]
#[repr(align(64))]
pub(crate) struct WideRows(pub(super) [[u8; 2 * COLUMNS]; 8]);

impl WideRows {
    /// Takes the rows of the segment of so many wide lanes.
    pub(super) fn read(&mut self, lanes: usize, segment: &[u8]) {
        if lanes > 0 {
            for (row, source) in self.0.iter_mut().zip(segment.chunks_exact(2 * padded_lanes(lanes))) {
                row[..source.len()].copy_from_slice(source);
            }
        }
    }

    /// Writes the rows of the segment of so many wide lanes, with zeros behind them.
    pub(super) fn write(&self, lanes: usize, segment: &mut [u8]) {
        if lanes > 0 {
            for (row, target) in self.0.iter().zip(segment.chunks_exact_mut(2 * padded_lanes(lanes))) {
                let (columns, padding) = target.split_at_mut(2 * lanes);
                columns.copy_from_slice(&row[..2 * lanes]);
                padding.fill(0);
            }
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
    /// Segments whose places in the stream are not known yet, one after the other.
    pub(crate) segments: Vec<u8>,
}

impl Scratch {
    /// New memory, zeroed.
    pub(crate) fn new() -> Box<Self> {
        Box::new(Self {
            wide: WideRows([[0; _]; 8]),
            cascade: CascadeScratch::ZERO,
            tiles: [TileBytes::ZERO; 3],
            kept: KeptPlanes([0; _]),
            segments: Vec::new(),
        })
    }
}
