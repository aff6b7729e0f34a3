//! The reference encoder: codec 0 and 1; codec 2 is in `cascade`.

use crate::geometry::{BLOCK_TILES, HEADER_BYTES, LANES, SEGMENT_UNIT};
use crate::reference::cascade;
use crate::reference::lane::{low_bits, pack, write_words};
use crate::reference::planes::{encode_planes, lane_exponents};
use crate::{
    BlockEntry, BlockRanges, Coding, Dtype, EncodeOutcome, EncodePlan, FormatError, FormatErrorKind as Kind, Result,
    TwoWindows, padded_lanes, segment_len,
};

/// Encodes by a plan, everything but the header and the codec's own section, whose bytes are set to zero.
///
/// # Errors
///
/// [`Kind::SourceLength`] or [`Kind::TargetLength`] if the buffers are not those of the plan.
pub fn encode(plan: &EncodePlan, source: &[u8], target: &mut [u8]) -> Result<EncodeOutcome> {
    if source.len() != plan.source_len() {
        let kind = Kind::SourceLength { expected: plan.source_len() as u64, found: source.len() as u64 };
        return Err(FormatError::new(kind, 0));
    }
    if target.len() < plan.target_len() {
        let kind = Kind::TargetLength { expected: plan.target_len() as u64, found: target.len() as u64 };
        return Err(FormatError::new(kind, 0));
    }
    let target = &mut target[..plan.target_len()];
    target.fill(0);
    let variable_len = match plan.coding() {
        Coding::Stored => None,
        Coding::TwoWindows(windows) => encode_blocks(plan, windows, source, target),
        Coding::Cascade(cascade) => cascade::encode_blocks(plan, cascade, source, target),
    };
    if let Some(variable_len) = variable_len {
        let outcome = EncodeOutcome::Coded { variable_len };
        let layout = plan.written(outcome)?;
        let tail = &source[layout.decoded_range(0..layout.tiles).end..];
        target[layout.tail.range()].copy_from_slice(tail);
        return Ok(outcome);
    }
    target.fill(0);
    target[HEADER_BYTES..HEADER_BYTES + source.len()].copy_from_slice(source);
    Ok(EncodeOutcome::Stored)
}

/// Encodes all blocks and returns the length of the variable section, or `None` if it would exceed the plan's limit.
fn encode_blocks(plan: &EncodePlan, windows: TwoWindows, source: &[u8], target: &mut [u8]) -> Option<usize> {
    let layout = plan.layout();
    let mut variable_len = 0;
    for index in 0..layout.blocks() {
        let ranges = layout.block(index);
        let elements = &source[layout.decoded_range(ranges.tiles.clone())];
        let wide = WideWindow::of_block(layout.dtype, windows, elements);
        let segment = variable_len..variable_len + wide.segment_len(windows);
        if segment.end > plan.variable_limit() {
            return None;
        }
        variable_len = segment.end;
        let end = plan.first_segment() + (variable_len / SEGMENT_UNIT) as u64;
        let entry = BlockEntry { wide_base: wide.base, wide_width: wide.width, end };
        target[ranges.entry.clone()].copy_from_slice(&entry.to_bytes());
        let segment = layout.variable.offset + segment.start..layout.variable.offset + segment.end;
        encode_block(layout.dtype, windows, &wide, elements, &ranges, segment, target);
    }
    Some(variable_len)
}

/// The wide lanes of a block and the window that covers them.
struct WideWindow {
    /// Whether lane `j` of tile `t` is wide, at `t * LANES + j`.
    is_wide: [bool; BLOCK_TILES * LANES],
    lanes: usize,
    base: u8,
    width: u8,
}

impl WideWindow {
    fn of_block(dtype: Dtype, windows: TwoWindows, elements: &[u8]) -> Self {
        let mut wide = Self { is_wide: [false; _], lanes: 0, base: 0, width: windows.common_width() };
        let mut smallest_wide = u8::MAX;
        for (tile_index, tile) in elements.chunks_exact(dtype.tile_bytes()).enumerate() {
            for lane in 0..LANES {
                let exponents = lane_exponents(dtype, tile, lane);
                let (smallest, largest) =
                    exponents.iter().fold((u8::MAX, 0), |(low, high), &e| (low.min(e), high.max(e)));
                if !windows.is_common(smallest, largest) {
                    wide.is_wide[tile_index * LANES + lane] = true;
                    wide.lanes += 1;
                    wide.base = wide.base.max(largest);
                    smallest_wide = smallest_wide.min(smallest);
                }
            }
        }
        if wide.lanes > 0 {
            wide.width = wide.width.max(bit_length(wide.base - smallest_wide));
        }
        wide
    }

    fn segment_len(&self, windows: TwoWindows) -> usize {
        segment_len(self.lanes, self.width - windows.common_width())
    }
}

/// Bits needed for a value; 0 for 0.
fn bit_length(value: u8) -> u8 {
    match value.checked_ilog2() {
        None => 0,
        Some(log) => log.to_le_bytes()[0] + 1,
    }
}

fn encode_block(
    dtype: Dtype,
    windows: TwoWindows,
    wide: &WideWindow,
    elements: &[u8],
    ranges: &BlockRanges,
    segment: core::ops::Range<usize>,
    target: &mut [u8],
) {
    let (common_width, high_width) = (windows.common_width(), wide.width - windows.common_width());
    let mut rank = 0;
    for (index, tile) in elements.chunks_exact(dtype.tile_bytes()).enumerate() {
        let ranges = ranges.tile(index);
        encode_planes(dtype, tile, ranges.byte_plane, ranges.extra_plane, target);
        for lane in 0..LANES {
            let is_wide = wide.is_wide[index * LANES + lane];
            let base = if is_wide { wide.base } else { windows.common_base() };
            let q = lane_exponents(dtype, tile, lane).map(|exponent| base - exponent);
            let low = pack(q.map(|q| q & low_bits(common_width)), common_width);
            write_words(&mut target[ranges.low_plane.clone()], LANES, lane, common_width, low);
            if is_wide {
                target[ranges.mask.clone()][lane / 8] |= 1 << (lane % 8);
                let high = pack(q.map(|q| q.checked_shr(u32::from(common_width)).unwrap_or(0)), high_width);
                write_words(&mut target[segment.clone()], padded_lanes(wide.lanes), rank, high_width, high);
                rank += 1;
            }
        }
    }
}
