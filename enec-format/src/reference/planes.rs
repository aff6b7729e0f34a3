//! The parts of a tile that all codecs share: exponents out of elements, byte plane and extra plane (docs/format.md, "Splitting a value").

use core::ops::Range;

use crate::Dtype;
use crate::geometry::{LANES, ROWS};
use crate::reference::lane::{element, pack, read_words, unpack, write_words};
use crate::reference::value::{Parts, join, split};

/// The exponents of one lane.
pub(super) fn lane_exponents(dtype: Dtype, tile: &[u8], lane: usize) -> [u8; ROWS] {
    core::array::from_fn(|row| split(dtype, &tile[element(row, lane) * dtype.element_bytes()..]).exponent)
}

/// Writes the byte plane and the extra plane of one tile.
pub(super) fn encode_planes(
    dtype: Dtype,
    tile: &[u8],
    byte_plane: Range<usize>,
    extra_plane: Range<usize>,
    target: &mut [u8],
) {
    for lane in 0..LANES {
        let parts: [_; ROWS] =
            core::array::from_fn(|row| split(dtype, &tile[element(row, lane) * dtype.element_bytes()..]));
        for row in 0..ROWS / 2 {
            let at = byte_plane.start + 2 * element(row, lane);
            target[at..at + 2].copy_from_slice(&[parts[row].byte, parts[row + ROWS / 2].byte]);
        }
        match dtype {
            Dtype::Opaque | Dtype::Bf16 => {}
            Dtype::F16 => {
                let bits = pack(parts.map(|parts| parts.extra.to_le_bytes()[0]), 3);
                write_words(&mut target[extra_plane.clone()], LANES, lane, 3, bits);
            }
            Dtype::F32 => {
                for (row, parts) in parts.iter().enumerate() {
                    let at = extra_plane.start + 2 * element(row, lane);
                    target[at..at + 2].copy_from_slice(&parts.extra.to_le_bytes());
                }
            }
        }
    }
}

/// Joins one lane's exponents with its bytes and extra bits.
pub(super) fn decode_lane(
    dtype: Dtype,
    exponents: [u8; ROWS],
    byte_plane: &[u8],
    extra_plane: &[u8],
    lane: usize,
    elements: &mut [u8],
) {
    for (row, exponent) in exponents.into_iter().enumerate() {
        let parts = Parts {
            exponent,
            byte: byte_plane[2 * element(row % (ROWS / 2), lane) + row / (ROWS / 2)],
            extra: extra(dtype, extra_plane, row, lane),
        };
        let at = element(row, lane) * dtype.element_bytes();
        join(dtype, parts, &mut elements[at..at + dtype.element_bytes()]);
    }
}

fn extra(dtype: Dtype, extra_plane: &[u8], row: usize, lane: usize) -> u16 {
    match dtype {
        Dtype::Opaque | Dtype::Bf16 => 0,
        Dtype::F16 => u16::from(unpack(read_words(extra_plane, LANES, lane, 3), 3)[row]),
        Dtype::F32 => {
            let at = 2 * element(row, lane);
            u16::from_le_bytes([extra_plane[at], extra_plane[at + 1]])
        }
    }
}
