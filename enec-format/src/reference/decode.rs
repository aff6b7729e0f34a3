//! The reference decoder: codec 0 and 1; codec 2 is in `cascade`.

use crate::geometry::{BLOCK_TILES, LANES, TILE_MASK_BYTES};
use crate::reference::cascade;
use crate::reference::lane::{read_words, unpack};
use crate::reference::planes::decode_lane;
use crate::{
    BlockEntry, Coding, DecodePlan, FormatError, FormatErrorKind as Kind, Layout, Result, TwoWindows, padded_lanes,
    segment, wide_lanes,
};

/// Decodes by a plan. `source` holds the whole stream; bytes that changed since it was validated give wrong elements, never a panic.
///
/// # Errors
///
/// [`Kind::SourceLength`] or [`Kind::TargetLength`] if the buffers are not those of the plan.
pub fn decode(plan: &DecodePlan, source: &[u8], target: &mut [u8]) -> Result<()> {
    if source.len() != plan.source_len() {
        let kind = Kind::SourceLength { expected: plan.source_len() as u64, found: source.len() as u64 };
        return Err(FormatError::new(kind, 0));
    }
    let needed = plan.target_len();
    let Some(target) = target.get_mut(..needed) else {
        let kind = Kind::TargetLength { expected: needed as u64, found: target.len() as u64 };
        return Err(FormatError::new(kind, 0));
    };
    let tile_bytes = plan.layout().dtype.tile_bytes();
    let (tiles, tail) = target.split_at_mut(plan.tiles().len() * tile_bytes);
    for (tile, elements) in plan.tiles().zip(tiles.chunks_exact_mut(tile_bytes)) {
        match plan.layout().coding {
            Coding::Stored => {}
            Coding::TwoWindows(windows) => decode_tile(plan.layout(), windows, source, tile, elements),
            Coding::Cascade(cascade) => cascade::decode_tile(plan.layout(), cascade, source, tile, elements),
        }
    }
    tail.copy_from_slice(&source[plan.tail()]);
    Ok(())
}

/// Decodes one tile by itself: only the masks of its block are scanned.
fn decode_tile(layout: &Layout, windows: TwoWindows, source: &[u8], tile: usize, elements: &mut [u8]) {
    let dtype = layout.dtype;
    let block = layout.block(tile / BLOCK_TILES);
    let ranges = block.tile(tile % BLOCK_TILES);
    let mask = &source[ranges.mask];
    let (byte_plane, extra_plane) = (&source[ranges.byte_plane], &source[ranges.extra_plane]);
    let low_plane = &source[ranges.low_plane];

    let table = &source[layout.table.range()];
    let entry = BlockEntry::read(table, tile / BLOCK_TILES);
    let segment = segment(&source[layout.variable.range()], BlockEntry::start(table, tile / BLOCK_TILES), entry.end);
    let stride = padded_lanes(wide_lanes(&source[block.mask.clone()]));
    let mut rank = wide_lanes(&source[block.mask.start..block.mask.start + tile % BLOCK_TILES * TILE_MASK_BYTES]);
    let common_width = windows.common_width();
    let high_width = entry.wide_width.saturating_sub(common_width).min(8);

    for lane in 0..LANES {
        let is_wide = mask[lane / 8] >> (lane % 8) & 1 == 1;
        let mut q = unpack(read_words(low_plane, LANES, lane, common_width), common_width);
        let mut base = windows.common_base();
        if is_wide {
            let high = unpack(read_words(segment, stride, rank, high_width), high_width);
            for (q, high) in q.iter_mut().zip(high) {
                *q |= high.checked_shl(u32::from(common_width)).unwrap_or(0);
            }
            base = entry.wide_base;
            rank += 1;
        }
        let exponents = q.map(|q| base.wrapping_sub(q) & dtype.exponent_mask());
        decode_lane(dtype, exponents, byte_plane, extra_plane, lane, elements);
    }
}
