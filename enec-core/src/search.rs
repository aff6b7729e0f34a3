//! The parameter search: common base and width, or symbols and levels, from a deterministic sample, in integer arithmetic and fixed order.
//!
//! It runs on the host whatever the backend is, so that all backends get the same parameters (docs/format.md, "Choosing the
//! parameters"; the paper's section V-B searches by distribution instead).

#![deny(clippy::float_arithmetic)]

mod cascade;
pub(crate) mod choice;

use enec_format::geometry::{BLOCK_ELEMENTS, BLOCK_TILES, LANES, ROWS};
use enec_format::{Dtype, TwoWindows};

pub use self::cascade::{search_cascade, search_cascade_sampled};

/// Blocks sampled of one tensor. Measured on real weights: 8 lose up to 0.46 % on some tensors, 16 up to 0.18 %, 32 at most 0.03 %.
pub const SAMPLE_BLOCKS: usize = 32;

/// The best parameters for a tensor, by a sample of [`SAMPLE_BLOCKS`] blocks spread evenly over it.
///
/// `elements` are little-endian. A tensor without a whole tile gets parameters that no one will use.
///
/// # Panics
///
/// If `dtype` is opaque.
#[must_use]
pub fn search(dtype: Dtype, elements: &[u8]) -> TwoWindows {
    search_sampled(dtype, &[elements], SAMPLE_BLOCKS)
}

/// The best single pair of parameters for several tensors of one dtype: `blocks` blocks are sampled, spread evenly over all of
/// them. With `blocks` = `usize::MAX` the search is exhaustive.
///
/// # Panics
///
/// If `dtype` is opaque.
#[must_use]
pub fn search_sampled(dtype: Dtype, tensors: &[&[u8]], blocks: usize) -> TwoWindows {
    let mut sample = Sample::new(dtype);
    for block in sampled_blocks(dtype, tensors, blocks) {
        sample.add_block(block);
    }
    sample.best()
}

/// Blocks spread evenly over tensors that lie one after the other: the middle ones of equal shares.
fn sampled_blocks<'a>(dtype: Dtype, tensors: &[&'a [u8]], wanted: usize) -> impl Iterator<Item = &'a [u8]> {
    let block_bytes = BLOCK_ELEMENTS * dtype.element_bytes();
    let whole_tiles = |tensor: &&'a [u8]| {
        let tensor: &'a [u8] = tensor;
        &tensor[..tensor.len() / dtype.tile_bytes() * dtype.tile_bytes()]
    };
    let tensors: Vec<&[u8]> = tensors.iter().map(whole_tiles).collect();
    let total: usize = tensors.iter().map(|tensor| tensor.len().div_ceil(block_bytes)).sum();
    let wanted = wanted.min(total);
    let (mut tensor, mut before) = (0, 0);
    (0..wanted).map(move |i| {
        // (2 i + 1) total / (2 wanted), without a product that could overflow.
        let index = i * (total / wanted) + (i * (total % wanted) + total / 2) / wanted;
        while index - before >= tensors[tensor].len().div_ceil(block_bytes) {
            before += tensors[tensor].len().div_ceil(block_bytes);
            tensor += 1;
        }
        let start = (index - before) * block_bytes;
        &tensors[tensor][start..tensors[tensor].len().min(start + block_bytes)]
    })
}

/// The sampled blocks' lanes: all that the search needs to know of them.
struct Sample {
    dtype: Dtype,
    blocks: Vec<LaneRanges>,
}

/// Smallest and largest exponent of each lane of a block.
struct LaneRanges {
    smallest: [u8; BLOCK_TILES * LANES],
    largest: [u8; BLOCK_TILES * LANES],
    lanes: usize,
}

impl LaneRanges {
    fn of_block(dtype: Dtype, block: &[u8]) -> Self {
        let mut ranges = Self { smallest: [0; _], largest: [0; _], lanes: 0 };
        for tile in block.chunks_exact(dtype.tile_bytes()) {
            let lanes = ranges.lanes..ranges.lanes + LANES;
            lane_ranges(dtype, tile, &mut ranges.smallest[lanes.clone()], &mut ranges.largest[lanes.clone()]);
            ranges.lanes = lanes.end;
        }
        ranges
    }

    fn tiles(&self) -> usize {
        self.lanes / LANES
    }
}

impl Sample {
    fn new(dtype: Dtype) -> Self {
        assert!(dtype != Dtype::Opaque, "opaque bytes have no exponents");
        Self { dtype, blocks: Vec::new() }
    }

    fn add_block(&mut self, block: &[u8]) {
        self.blocks.push(LaneRanges::of_block(self.dtype, block));
    }

    /// The parameters with the smallest encoded size; ties: smaller width, then larger base.
    fn best(&self) -> TwoWindows {
        // A base below every lane's largest exponent leaves no lane common; one above the largest exponent only shifts the window
        // away from the values.
        let largest = || self.blocks.iter().flat_map(|block| &block.largest[..block.lanes]).copied();
        let bases = largest().min().unwrap_or(0)..=largest().max().unwrap_or(0);
        let widths = 0..=self.dtype.exponent_bits();
        let mut costs = vec![0_u64; widths.len() * bases.len()];
        for block in &self.blocks {
            let table = LaneTable::new(block);
            let fixed = (block.lanes * ROWS) as u64;
            let mut cost = costs.iter_mut();
            for width in widths.clone() {
                for (base, cost) in bases.clone().rev().zip(&mut cost) {
                    *cost += fixed * u64::from(width) + table.high_bits(base, width);
                }
            }
        }
        // The first of equal costs: widths ascend, bases descend.
        let best = costs.iter().enumerate().min_by_key(|&(_, cost)| *cost).map_or(0, |(index, _)| index);
        let (width, base) = (best / bases.len(), best % bases.len());
        let pair = (bases.rev().nth(base), widths.into_iter().nth(width));
        let (Some(base), Some(width)) = pair else { unreachable!("the index is one of the costs'") };
        TwoWindows::new(self.dtype, base, width).unwrap_or_else(|_| unreachable!("exponents are below 2^E"))
    }
}

/// Answers, for one block and any window, how many lanes are wide and what their exponents span.
struct LaneTable {
    /// For each exponent, how many of the block's distinct lane bounds lie below it.
    rank: [u16; 257],
    values: usize,
    lanes: u64,
    smallest: u8,
    largest: u8,
    /// Smallest exponent of the lanes whose largest one has this rank or a higher one.
    smallest_above: Vec<u8>,
    /// Largest exponent of the lanes whose smallest one has a lower rank than this.
    largest_below: Vec<u8>,
    /// Lanes whose largest exponent has a rank below `i` and whose smallest one has at least rank `j`, at `i * (values + 1) + j`.
    within: Vec<u16>,
}

impl LaneTable {
    fn new(block: &LaneRanges) -> Self {
        let bounds = || block.smallest[..block.lanes].iter().copied().zip(block.largest[..block.lanes].iter().copied());
        let mut occurs = [false; 256];
        for (smallest, largest) in bounds() {
            occurs[usize::from(smallest)] = true;
            occurs[usize::from(largest)] = true;
        }
        let mut rank = [0_u16; 257];
        for (exponent, &occurs) in occurs.iter().enumerate() {
            rank[exponent + 1] = rank[exponent] + u16::from(occurs);
        }
        let values = usize::from(rank[256]);
        let stride = values + 1;
        let mut table = Self {
            rank,
            values,
            lanes: block.lanes as u64,
            smallest: bounds().map(|(smallest, _)| smallest).min().unwrap_or(0),
            largest: bounds().map(|(_, largest)| largest).max().unwrap_or(0),
            smallest_above: vec![u8::MAX; stride],
            largest_below: vec![0; stride],
            within: vec![0; stride * stride],
        };
        for (smallest, largest) in bounds() {
            let (i, j) = (usize::from(rank[usize::from(largest)]), usize::from(rank[usize::from(smallest)]));
            table.within[(i + 1) * stride + j] += 1;
            table.smallest_above[i] = table.smallest_above[i].min(smallest);
            table.largest_below[j + 1] = table.largest_below[j + 1].max(largest);
        }
        for i in 1..stride {
            table.largest_below[i] = table.largest_below[i].max(table.largest_below[i - 1]);
            let at = values - i;
            table.smallest_above[at] = table.smallest_above[at].min(table.smallest_above[at + 1]);
            let (above, row) = table.within[(i - 1) * stride..(i + 1) * stride].split_at_mut(stride);
            let mut lanes = 0;
            for (count, above) in row.iter_mut().zip(above).rev() {
                lanes += *count;
                *count = lanes + *above;
            }
        }
        table
    }

    /// Bits of the block's high segment with this common window: `16 (n - m)` for each wide lane.
    fn high_bits(&self, base: u8, width: u8) -> u64 {
        // The window is `[lowest, base]`: lanes that reach above it, and lanes that reach below it.
        let lowest = (u16::from(base) + 1).saturating_sub(1 << width);
        let above = usize::from(self.rank[usize::from(base) + 1]);
        let below = usize::from(self.rank[usize::from(lowest)]);
        let lanes = self.lanes - u64::from(self.within[above * (self.values + 1) + below]);
        if lanes == 0 {
            return 0;
        }
        let wide_base = if above < self.values { self.largest } else { self.largest_below[below] };
        let smallest = if below > 0 { self.smallest } else { self.smallest_above[above] };
        let wide_width = u8::BITS - (wide_base - smallest).leading_zeros();
        16 * lanes * u64::from(wide_width.saturating_sub(u32::from(width)))
    }
}

/// Smallest and largest exponent of each lane of a tile.
fn lane_ranges(dtype: Dtype, tile: &[u8], smallest: &mut [u8], largest: &mut [u8]) {
    match dtype {
        Dtype::Opaque => unreachable!("opaque bytes have no exponents"),
        Dtype::Bf16 => {
            fold_rows::<2>(tile, |[low, high]| i16::from_le_bytes([low, high]) >> 7 & 0xFF, smallest, largest)
        }
        Dtype::F16 => {
            fold_rows::<2>(tile, |[low, high]| i16::from_le_bytes([low, high]) >> 10 & 0x1F, smallest, largest)
        }
        Dtype::F32 => {
            fold_rows::<4>(tile, |[_, _, low, high]| i16::from_le_bytes([low, high]) >> 7 & 0xFF, smallest, largest);
        }
    }
}

/// Plain loops over rows of known length, which the compiler turns into vector code. Signed words, because the baseline of x86-64 has
/// minimum and maximum for no other 16-bit ones.
fn fold_rows<const BYTES: usize>(
    tile: &[u8],
    exponent: impl Fn([u8; BYTES]) -> i16,
    smallest: &mut [u8],
    largest: &mut [u8],
) {
    let (mut low, mut high) = ([i16::MAX; LANES], [0_i16; LANES]);
    for row in tile.chunks_exact(LANES * BYTES) {
        for (lane, word) in row.as_chunks::<BYTES>().0.iter().enumerate() {
            let exponent = exponent(*word);
            low[lane] = low[lane].min(exponent);
            high[lane] = high[lane].max(exponent);
        }
    }
    for lane in 0..LANES {
        [smallest[lane], _] = low[lane].to_le_bytes();
        [largest[lane], _] = high[lane].to_le_bytes();
    }
}

const _: () = assert!(BLOCK_TILES * LANES <= u16::MAX as usize, "lane counts of a block fit the table");

#[cfg(test)]
mod tests;
