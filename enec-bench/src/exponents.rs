//! What the exponents of a tensor look like: their histogram, and the bounds of its lanes.

use enec::Dtype;
use enec::format::geometry::{LANES, ROWS, TILE_ELEMENTS};
use enec::format::reference;

/// Counts over a tensor.
pub(crate) struct Exponents {
    pub(crate) dtype: Dtype,
    /// Elements with each exponent.
    pub(crate) histogram: Vec<u64>,
    /// Lanes of whole tiles by smallest and largest exponent, at `smallest << 8 | largest`.
    pub(crate) lanes: Vec<u64>,
    /// Elements after the last whole tile.
    pub(crate) tail: u64,
}

impl Exponents {
    pub(crate) fn of(dtype: Dtype, elements: &[u8]) -> Self {
        let mut counts = Self { dtype, histogram: vec![0; 256], lanes: vec![0; 1 << 16], tail: 0 };
        let exponents: Vec<u8> = reference::exponents(dtype, elements).collect();
        for &exponent in &exponents {
            counts.histogram[usize::from(exponent)] += 1;
        }
        let tiles = exponents.chunks_exact(TILE_ELEMENTS);
        counts.tail = tiles.remainder().len() as u64;
        for tile in tiles {
            for lane in 0..LANES {
                let values = || (0..ROWS).map(|row| tile[row * LANES + lane]);
                let (smallest, largest) = (values().min().unwrap_or(0), values().max().unwrap_or(0));
                counts.lanes[usize::from(smallest) << 8 | usize::from(largest)] += 1;
            }
        }
        counts
    }

    pub(crate) fn elements(&self) -> u64 {
        self.histogram.iter().sum()
    }

    /// Sign and mantissa bits of an element, which no codec here touches.
    pub(crate) fn other_bits(&self) -> u64 {
        self.dtype.element_bytes() as u64 * 8 - u64::from(self.dtype.exponent_bits())
    }

    /// Bits per exponent that no code of single exponents can go below.
    pub(crate) fn entropy(&self) -> f64 {
        let total = self.elements() as f64;
        let share = |&count: &u64| count as f64 / total;
        self.histogram.iter().filter(|&&count| count > 0).map(share).map(|share| -share * share.log2()).sum()
    }
}
