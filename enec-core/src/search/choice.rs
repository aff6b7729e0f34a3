//! Which codec a tensor gets: the one that is asked for, or the smaller one.

use enec_format::geometry::{BLOCK_ELEMENTS, CODE_BITS, LANES, ROW_BYTES, TILE_MASK_BYTES};
use enec_format::{Cascade, Coding, Dtype, Layout, TwoWindows, segment_len};

use super::cascade::{self, search_cascade};
use super::{LaneCounts, SAMPLE_BLOCKS, Sample, sampled_blocks, search};
use crate::CodecChoice;
use crate::histogram::Histogram;

/// How many times as much as the other codec one has to save in the sampled blocks for these to decide.
const CLEAR_ADVANTAGE: u64 = 8;

/// Parameters that need not be searched for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Known {
    pub(crate) windows: Option<TwoWindows>,
    pub(crate) cascade: Option<Cascade>,
}

/// The coding for a tensor of floats.
///
/// [`CodecChoice::Auto`] takes the codec whose stream is shorter. The sample decides if what one codec saves in some of its blocks is many times
/// what the other one saves in the others, or if it is the whole tensor; otherwise all blocks are looked at. Ties go to the two windows, which
/// are faster.
pub(crate) fn choose(dtype: Dtype, elements: &[u8], choice: CodecChoice, known: Known) -> Coding {
    match choice {
        CodecChoice::Enec => known.windows.unwrap_or_else(|| search(dtype, elements)).into(),
        CodecChoice::Cascade => known.cascade.unwrap_or_else(|| search_cascade(dtype, elements)).into(),
        CodecChoice::Auto => smaller(dtype, elements, known),
    }
}

fn smaller(dtype: Dtype, elements: &[u8], known: Known) -> Coding {
    let mut sample = Sample::new(dtype);
    let mut histograms = Vec::new();
    for block in sampled_blocks(dtype, &[elements], SAMPLE_BLOCKS) {
        sample.add_block(block);
        histograms.push(Histogram::of(dtype, block));
    }
    let windows = known.windows.unwrap_or_else(|| sample.best());
    let cascade = known.cascade.unwrap_or_else(|| cascade::best(dtype, &histograms));
    let sizes = sample.blocks.iter().zip(&histograms).map(|(lanes, counts)| Sizes::of(windows, cascade, lanes, counts));
    let sizes = Vec::from_iter(sizes);
    let by_windows = total(&sizes, |size| size.cascade.saturating_sub(size.windows));
    let by_cascade = total(&sizes, |size| size.windows.saturating_sub(size.cascade));
    let is_clear = by_windows.min(by_cascade) <= by_windows.max(by_cascade) / CLEAR_ADVANTAGE;
    let is_whole = elements.len().div_ceil(BLOCK_ELEMENTS * dtype.element_bytes()) <= sizes.len();
    let is_cascade_smaller = if is_clear && !is_whole {
        by_windows < by_cascade
    } else {
        let all = if is_whole { sizes } else { all_sizes(dtype, elements, windows, cascade) };
        let count = elements.len() / dtype.element_bytes();
        let stream_len = |coding: Coding, segments: u64| {
            Layout::new(dtype, coding, count as u64, segments).map_or(usize::MAX, |layout| layout.stream_len)
        };
        stream_len(cascade.into(), total(&all, |size| size.cascade_segment))
            < stream_len(windows.into(), total(&all, |size| size.windows_segment))
    };
    if is_cascade_smaller { cascade.into() } else { windows.into() }
}

fn all_sizes(dtype: Dtype, elements: &[u8], windows: TwoWindows, cascade: Cascade) -> Vec<Sizes> {
    let tensors = [elements];
    let blocks = sampled_blocks(dtype, &tensors, usize::MAX);
    let size = |block| Sizes::of(windows, cascade, &LaneCounts::of_block(dtype, block), &Histogram::of(dtype, block));
    blocks.map(size).collect()
}

fn total(sizes: &[Sizes], of: impl Fn(&Sizes) -> u64) -> u64 {
    sizes.iter().map(of).sum()
}

/// Bytes that a block's exponents take, all of them and those in the segment alone.
struct Sizes {
    windows: u64,
    windows_segment: u64,
    cascade: u64,
    cascade_segment: u64,
}

impl Sizes {
    fn of(windows: TwoWindows, cascade: Cascade, lanes: &LaneCounts, counts: &Histogram) -> Self {
        let tiles = u64::from(lanes.lanes) / LANES as u64;
        let (wide, [high_width, ..]) = {
            let (wide, high_width) = lanes.wide(windows.common_base(), windows.common_width());
            (wide as usize, high_width.to_le_bytes())
        };
        let windows_segment = segment_len(wide, high_width) as u64;
        let cascade_segment = cascade::segment_len(counts, cascade);
        let windows_tile = TILE_MASK_BYTES + usize::from(windows.common_width()) * ROW_BYTES;
        Self {
            windows: tiles * windows_tile as u64 + windows_segment,
            windows_segment,
            cascade: tiles * (CODE_BITS * ROW_BYTES) as u64 + cascade_segment,
            cascade_segment,
        }
    }
}
