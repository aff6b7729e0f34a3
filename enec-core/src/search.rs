//! The parameter search: common base and width, or symbols and levels, from a deterministic sample, in integer arithmetic and fixed order.
//!
//! It runs on the host whatever the backend is, so that all backends get the same parameters (docs/format.md, "Choosing the
//! parameters"; the paper's section V-B searches by distribution instead).

#![deny(clippy::float_arithmetic)]

mod cascade;
pub(crate) mod choice;

use std::ops::RangeInclusive;

use enec_format::geometry::{BLOCK_ELEMENTS, BLOCK_TILES, LANES, ROWS};
use enec_format::{Dtype, TwoWindows};

pub use self::cascade::{search_cascade, search_cascade_sampled};

/// Blocks sampled of one tensor. Measured on real weights, tensors of over 1 MB: 8 lose up to 0.58 % (two windows) and 0.48 % (cascade), 16 up to
/// 0.18 % and 0.25 %, 32 nothing and 0.12 %, in twice the time of 16; of all tensors of a file together 16 lose at most 0.03 %.
pub const SAMPLE_BLOCKS: usize = 16;

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
    blocks: Vec<LaneCounts>,
}

impl Sample {
    fn new(dtype: Dtype) -> Self {
        assert!(dtype != Dtype::Opaque, "opaque bytes have no exponents");
        Self { dtype, blocks: Vec::new() }
    }

    fn add_block(&mut self, block: &[u8]) {
        self.blocks.push(LaneCounts::of_block(self.dtype, block));
    }

    /// The parameters with the smallest encoded size; ties: smaller width, then larger base.
    fn best(&self) -> TwoWindows {
        // Between two exponents that are the largest of some lane, a higher base makes no lane common and no wide one shorter: the
        // cost cannot fall. So the best base is among those exponents, or above one of them at the same cost.
        let mut is_largest = [false; 256];
        for block in &self.blocks {
            block.mark_largest(&mut is_largest);
        }
        let range = |end: fn(&LaneCounts) -> u8| self.blocks.iter().map(end);
        let lowest = range(|block| *block.largest.start()).min().unwrap_or(0);
        let highest = range(|block| *block.largest.end()).max().unwrap_or(0);
        let mut bases = Vec::with_capacity(256);
        bases.extend((lowest..=highest).rev().filter(|&base| is_largest[usize::from(base)]));
        let lanes: u64 = self.blocks.iter().map(|block| u64::from(block.lanes)).sum();
        let (mut best, mut best_base, mut best_width) = (u64::MAX, 0, 0);
        for width in 0..=self.dtype.exponent_bits() {
            let fixed = lanes * ROWS as u64 * u64::from(width);
            // Of equal costs the smaller width is wanted, and this one's cannot be smaller any more; nor those of wider ones.
            if fixed >= best {
                break;
            }
            for &base in &bases {
                let cost = fixed + self.high_bits(base, width);
                if cost < best {
                    (best, best_base, best_width) = (cost, base, width);
                }
            }
        }
        let fixed = lanes * ROWS as u64 * u64::from(best_width);
        let as_good = |&base: &u8| fixed + self.high_bits(base, best_width) == best;
        let above = (best_base..=u8::MAX).skip(1).take_while(|&base| !is_largest[usize::from(base)]);
        // The largest exponent of all takes part with its own base only: no lane is nearer to a higher one.
        let above = above.take(if is_largest[usize::from(best_base) + 1..].contains(&true) { 256 } else { 0 });
        best_base = above.take_while(as_good).last().unwrap_or(best_base);
        TwoWindows::new(self.dtype, best_base, best_width).unwrap_or_else(|_| unreachable!("exponents are below 2^E"))
    }

    /// Bits of all high segments with this common window.
    fn high_bits(&self, base: u8, width: u8) -> u64 {
        self.blocks.iter().map(|block| block.high_bits(base, width)).sum()
    }
}

/// The lanes of one block, counted by their smallest and largest exponents: answers, for any window, how many lanes are wide and what
/// their exponents span.
struct LaneCounts {
    lanes: u32,
    /// Bounds of the smallest exponents of lanes, and of the largest ones.
    smallest: RangeInclusive<u8>,
    largest: RangeInclusive<u8>,
    /// For each largest exponent, from the lowest on, lanes whose own is not above it and whose smallest one is at least each of the
    /// smallest exponents; one column more, which is zero.
    within: Vec<u16>,
    /// For each largest exponent, from the lowest on, the smallest exponent of lanes whose own is above it.
    smallest_above: Vec<u8>,
    /// For each smallest exponent, from the lowest on, the largest exponent of lanes whose own is below it.
    largest_below: Vec<u8>,
}

impl LaneCounts {
    fn of_block(dtype: Dtype, block: &[u8]) -> Self {
        let (mut smallest, mut largest) = ([0; BLOCK_TILES * LANES], [0; BLOCK_TILES * LANES]);
        let tile_bytes = dtype.tile_bytes();
        let bounds = smallest.as_chunks_mut::<LANES>().0.iter_mut().zip(largest.as_chunks_mut::<LANES>().0);
        for (tile, (smallest, largest)) in block.chunks_exact(tile_bytes).zip(bounds) {
            lane_ranges(dtype, tile, smallest, largest);
        }
        let lanes = block.len() / tile_bytes * LANES;
        Self::new(&smallest[..lanes], &largest[..lanes])
    }

    fn new(smallest: &[u8], largest: &[u8]) -> Self {
        let range = |values: &[u8]| {
            let (low, high) = values.iter().fold((u8::MAX, 0), |(low, high), &value| (low.min(value), high.max(value)));
            low.min(high)..=high
        };
        let (rows, columns) = (range(largest), range(smallest));
        let stride = columns.len() + 1;
        let mut within = vec![0_u16; rows.len() * stride];
        let place = |largest: u8, smallest: u8| usize::from(largest) * stride + usize::from(smallest);
        let origin = place(*rows.start(), *columns.start());
        for (&smallest, &largest) in smallest.iter().zip(largest) {
            within[place(largest, smallest) - origin] += 1;
        }
        // Before lanes are added up: what lies above each row, and left of each column.
        let mut smallest_above = vec![u8::MAX; rows.len()];
        let mut largest_below = vec![0; columns.len()];
        let mut above = u8::MAX;
        for ((counts, largest), smallest_above) in
            within.chunks_exact(stride).zip(rows.clone()).zip(&mut smallest_above).rev()
        {
            *smallest_above = above;
            let occurring = || counts.iter().zip(columns.clone()).filter(|&(&count, _)| count > 0);
            above = occurring().next().map_or(above, |(_, smallest)| above.min(smallest));
            for (_, smallest) in occurring() {
                let below = &mut largest_below[usize::from(smallest - columns.start())];
                *below = largest.max(*below);
            }
        }
        let mut below = 0;
        for largest_below in &mut largest_below {
            (*largest_below, below) = (below, below.max(*largest_below));
        }
        let mut before: Vec<u16> = vec![0; stride];
        for counts in within.chunks_exact_mut(stride) {
            let mut lanes = 0;
            for (count, before) in counts.iter_mut().zip(&mut before).rev() {
                lanes += *count;
                *count = lanes + *before;
                *before = *count;
            }
        }
        Self {
            lanes: u32::try_from(smallest.len()).unwrap_or_else(|_| unreachable!("lanes of one block")),
            smallest: columns,
            largest: rows,
            within,
            smallest_above,
            largest_below,
        }
    }

    /// Marks the exponents that are the largest of a lane.
    fn mark_largest(&self, is_largest: &mut [bool; 256]) {
        let mut before = 0;
        for (counts, largest) in self.within.chunks_exact(self.smallest.len() + 1).zip(self.largest.clone()) {
            is_largest[usize::from(largest)] |= counts[0] > before;
            before = counts[0];
        }
    }

    /// Bits of the block's high segment with this common window: `16 (n - m)` for each wide lane.
    fn high_bits(&self, base: u8, width: u8) -> u64 {
        let (lanes, high_width) = self.wide(base, width);
        16 * u64::from(lanes) * u64::from(high_width)
    }

    /// Wide lanes of the block with this common window, and what they take beyond `width` bits an exponent.
    fn wide(&self, base: u8, width: u8) -> (u32, u32) {
        if self.lanes == 0 {
            return (0, 0);
        }
        // The window is `[lowest, base]`: lanes that reach above it, and lanes that reach below it.
        let lowest = (u16::from(base) + 1).saturating_sub(1 << width);
        let row =
            base.checked_sub(*self.largest.start()).map(|row| usize::from(row).min(self.smallest_above.len() - 1));
        let column =
            usize::from(lowest.saturating_sub(u16::from(*self.smallest.start()))).min(self.largest_below.len());
        let common = row.map_or(0, |row| u32::from(self.within[row * (self.largest_below.len() + 1) + column]));
        let lanes = self.lanes - common;
        if lanes == 0 {
            return (0, 0);
        }
        let reach_above = base < *self.largest.end();
        let reach_below = lowest > u16::from(*self.smallest.start());
        let wide_base = if reach_above {
            *self.largest.end()
        } else {
            // Only lanes that reach below: all of them if every column is.
            self.largest_below.get(column).copied().unwrap_or(*self.largest.end())
        };
        let smallest = if reach_below {
            *self.smallest.start()
        } else {
            row.map_or(*self.smallest.start(), |row| self.smallest_above[row])
        };
        let wide_width = u8::BITS - (wide_base - smallest).leading_zeros();
        (lanes, wide_width.saturating_sub(u32::from(width)))
    }
}

/// Smallest and largest exponent of each lane of a tile.
fn lane_ranges(dtype: Dtype, tile: &[u8], smallest: &mut [u8], largest: &mut [u8]) {
    match dtype {
        Dtype::Opaque => unreachable!("opaque bytes have no exponents"),
        Dtype::Bf16 => fold_lanes::<2, 7>(tile, i16::from_le_bytes, smallest, largest),
        Dtype::F16 => fold_lanes::<2, 10>(tile, i16::from_le_bytes, smallest, largest),
        Dtype::F32 => fold_lanes::<4, 7>(tile, upper_half, smallest, largest),
    }
}

/// By a shift of the whole, which there are vector instructions for.
fn upper_half(word: [u8; 4]) -> i16 {
    (i32::from_le_bytes(word) >> 16) as i16
}

/// Lanes that are folded at a time: what has been found of them stays in registers, and whole cache lines are read.
const LANES_AT_ONCE: usize = 32;

/// Plain loops of known length, which the compiler turns into vector code. Without the sign, words compare as their exponents do, and are
/// positive: the baseline of x86-64 has minimum and maximum for signed 16-bit words only.
fn fold_lanes<const BYTES: usize, const MANTISSA_BITS: u32>(
    tile: &[u8],
    word: impl Fn([u8; BYTES]) -> i16,
    smallest: &mut [u8],
    largest: &mut [u8],
) {
    let rows = tile.as_chunks::<BYTES>().0.as_chunks::<LANES>().0;
    let bounds = smallest.as_chunks_mut::<LANES_AT_ONCE>().0.iter_mut().zip(largest.as_chunks_mut::<LANES_AT_ONCE>().0);
    for (group, (smallest, largest)) in bounds.enumerate() {
        let (mut low, mut high) = ([i16::MAX; LANES_AT_ONCE], [0_i16; LANES_AT_ONCE]);
        for row in rows {
            for (lane, &element) in row.as_chunks::<LANES_AT_ONCE>().0[group].iter().enumerate() {
                let magnitude = word(element) & i16::MAX;
                (low[lane], high[lane]) = (low[lane].min(magnitude), high[lane].max(magnitude));
            }
        }
        for lane in 0..LANES_AT_ONCE {
            [smallest[lane], _] = (low[lane] >> MANTISSA_BITS).to_le_bytes();
            [largest[lane], _] = (high[lane] >> MANTISSA_BITS).to_le_bytes();
        }
    }
}

const _: () = assert!(LANES.is_multiple_of(LANES_AT_ONCE));
const _: () = assert!(BLOCK_TILES * LANES <= u16::MAX as usize, "lane counts of a block fit the table");

#[cfg(test)]
mod tests;
