//! The cascade, one element after the other.

use enec_format::geometry::{LANES, MAX_LEVELS, ROWS, TILE_BYTE_PLANE_BYTES};
use enec_format::{Levels, level_len};

use super::{Value, byte_at, read_extra, read_lane, read_packed, write_extra, write_packed};
use crate::kernels::cascade::TILE_LOW_BYTES;
use crate::kernels::{CascadeBlock, CascadeScratch, CascadeSource};

/// The code that sends an element to the next level.
const ESCAPE: u8 = 3;

/// See [`Kernels::decode_cascade`](crate::kernels::Kernels::decode_cascade).
pub(super) fn decode(block: &CascadeBlock<'_>, target: &mut [u8]) {
    let &CascadeBlock { dtype, levels, ref tiles, segment, .. } = block;
    let counted = Levels::count(levels.to_le_bytes()[0], block.low_plane, segment);
    let mut starts = [0; MAX_LEVELS + 1];
    for level in 2..=levels {
        starts[level] =
            starts[level - 1] + if level > 2 { level_len(counted.codes(level.to_le_bytes()[0] - 1)) } else { 0 };
    }
    // How many codes of each level, and raw exponents, the elements so far took.
    let (mut taken, mut raw) = ([0; MAX_LEVELS + 1], counted.raw().start);
    let byte = |at: usize| segment.get(at).copied().unwrap_or(0);
    for (tile, low_plane) in block.low_plane.chunks_exact(TILE_LOW_BYTES).enumerate() {
        let index = tile.checked_sub(tiles.start).filter(|_| tile < tiles.end);
        for lane in 0..LANES {
            let exponents = read_packed(low_plane, LANES, lane, 2).map(|first| {
                let (mut rank, mut code) = (usize::from(first), first);
                for level in 2..=levels {
                    if code != ESCAPE {
                        break;
                    }
                    let at = taken[level];
                    taken[level] += 1;
                    code = byte(starts[level] + at / 4) >> (at % 4 * 2) & ESCAPE;
                    rank += usize::from(code);
                }
                if code == ESCAPE {
                    raw += 1;
                    return byte(raw - 1) & dtype.exponent_mask();
                }
                block.symbols[rank]
            });
            let Some(index) = index else { continue };
            let tile = &mut target[index * dtype.tile_bytes()..][..dtype.tile_bytes()];
            let byte_plane = &block.byte_plane[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES];
            let extra_plane = &block.extra_plane[index * dtype.tile_extra_bytes()..][..dtype.tile_extra_bytes()];
            let extra = read_extra(dtype, extra_plane, lane);
            for row in 0..ROWS {
                let value = Value { exponent: exponents[row], byte: byte_plane[byte_at(row, lane)], extra: extra[row] };
                let at = (row * LANES + lane) * dtype.element_bytes();
                value.write(dtype, &mut tile[at..at + dtype.element_bytes()]);
            }
        }
    }
}

/// See [`Kernels::encode_cascade`](crate::kernels::Kernels::encode_cascade).
pub(super) fn encode(
    block: &CascadeSource<'_>,
    planes: [&mut [u8]; 3],
    show: &mut dyn FnMut(&[u8]),
    scratch: &mut CascadeScratch,
) -> usize {
    let [byte_planes, extra_planes, low_planes] = planes;
    let &CascadeSource { dtype, levels, symbols, elements } = block;
    let mut codes: [Vec<u8>; MAX_LEVELS + 1] = Default::default();
    let mut raw = Vec::new();
    for (index, tile) in elements.chunks_exact(dtype.tile_bytes()).enumerate() {
        show(tile);
        let byte_plane = &mut byte_planes[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES];
        let extra_plane = &mut extra_planes[index * dtype.tile_extra_bytes()..][..dtype.tile_extra_bytes()];
        let low_plane = &mut low_planes[index * TILE_LOW_BYTES..][..TILE_LOW_BYTES];
        for lane in 0..LANES {
            let values = read_lane(dtype, tile, lane);
            for (row, value) in values.iter().enumerate() {
                byte_plane[byte_at(row, lane)] = value.byte;
            }
            write_extra(dtype, extra_plane, lane, values.map(|value| value.extra));
            let first = values.map(|value| {
                let rank = symbols.iter().position(|&symbol| symbol == value.exponent);
                let rank = rank.unwrap_or(symbols.len()).to_le_bytes()[0];
                let code = |level: usize| rank.saturating_sub(ESCAPE * (level.to_le_bytes()[0] - 1)).min(ESCAPE);
                let mut level = 1;
                while level < levels && code(level) == ESCAPE {
                    level += 1;
                    codes[level].push(code(level));
                }
                if code(level) == ESCAPE {
                    raw.push(value.exponent);
                }
                code(1)
            });
            write_packed(low_plane, LANES, lane, 2, first);
        }
    }
    let mut segment = Vec::new();
    for codes in codes.iter().take(levels + 1).skip(2) {
        let end = segment.len() + level_len(codes.len());
        segment.extend(codes.chunks(4).map(|codes| codes.iter().rev().fold(0, |byte, code| byte << 2 | code)));
        segment.resize(end, 0);
    }
    segment.extend(raw);
    scratch.set_segment(&segment)
}
