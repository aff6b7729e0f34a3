//! The scalar kernels: one lane after the other, as docs/format.md describes it.

mod cascade;

use enec_format::geometry::{LANES, ROW_BYTES, ROWS, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES};
use enec_format::{Dtype, TwoWindows, padded_lanes};

use super::{
    CascadeBlock, CascadeScratch, CascadeSource, DecodeBlock, EncodeBlock, Kernels, TileTarget, WideLanes, WideRows,
};

/// Runs anywhere.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scalar;

impl Kernels for Scalar {
    const STREAMS: bool = false;

    fn analyse(self, dtype: Dtype, windows: TwoWindows, elements: &[u8], mask: &mut [u8]) -> WideLanes {
        let (mut lanes, mut smallest_wide, mut largest_wide) = (0, u8::MAX, 0);
        mask.fill(0);
        for (tile, mask) in elements.chunks_exact(dtype.tile_bytes()).zip(mask.chunks_exact_mut(TILE_MASK_BYTES)) {
            for lane in 0..LANES {
                let exponents = read_lane(dtype, tile, lane).map(|value| value.exponent);
                let smallest = exponents.into_iter().fold(u8::MAX, u8::min);
                let largest = exponents.into_iter().fold(0, u8::max);
                if !windows.is_common(smallest, largest) {
                    mask[lane / 8] |= 1 << (lane % 8);
                    lanes += 1;
                    smallest_wide = smallest_wide.min(smallest);
                    largest_wide = largest_wide.max(largest);
                }
            }
        }
        WideLanes::new(windows, lanes, smallest_wide, largest_wide)
    }

    fn encode(self, block: &EncodeBlock<'_>, planes: [TileTarget<'_, '_>; 3], segment: &mut [u8], _: &mut WideRows) {
        let [byte_planes, extra_planes, low_planes] = planes.map(cached);
        let EncodeBlock { dtype, windows, wide, .. } = *block;
        let (common_width, high_width) = (windows.common_width(), wide.high_width(windows));
        let low_bytes = usize::from(common_width) * ROW_BYTES;
        segment.fill(0);
        let mut rank = 0;
        for (index, tile) in block.elements.chunks_exact(dtype.tile_bytes()).enumerate() {
            let mask = &block.mask[index * TILE_MASK_BYTES..][..TILE_MASK_BYTES];
            let byte_plane = &mut byte_planes[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES];
            let extra_plane = &mut extra_planes[index * dtype.tile_extra_bytes()..][..dtype.tile_extra_bytes()];
            let low_plane = &mut low_planes[index * low_bytes..][..low_bytes];
            for lane in 0..LANES {
                let values = read_lane(dtype, tile, lane);
                for (row, value) in values.iter().enumerate() {
                    byte_plane[byte_at(row, lane)] = value.byte;
                }
                write_extra(dtype, extra_plane, lane, values.map(|value| value.extra));
                let is_wide = is_wide(mask, lane);
                let base = if is_wide { wide.base } else { windows.common_base() };
                let q = values.map(|value| base - value.exponent);
                write_packed(low_plane, LANES, lane, common_width, q);
                if is_wide {
                    let high = q.map(|q| q.checked_shr(u32::from(common_width)).unwrap_or(0));
                    write_packed(segment, padded_lanes(wide.lanes), rank, high_width, high);
                    rank += 1;
                }
            }
        }
    }

    fn decode(self, block: &DecodeBlock<'_>, target: TileTarget<'_, '_>, _: &mut WideRows) {
        let target = cached(target);
        let &DecodeBlock { dtype, common_base, common_width, wide_base, high_width, .. } = block;
        let low_bytes = usize::from(common_width) * ROW_BYTES;
        let mut rank = block.first_rank();
        for (index, tile) in target.chunks_exact_mut(dtype.tile_bytes()).enumerate() {
            let mask = block.tile_mask(block.tiles.start + index);
            let byte_plane = &block.byte_plane[index * TILE_BYTE_PLANE_BYTES..][..TILE_BYTE_PLANE_BYTES];
            let extra_plane = &block.extra_plane[index * dtype.tile_extra_bytes()..][..dtype.tile_extra_bytes()];
            let low_plane = &block.low_plane[index * low_bytes..][..low_bytes];
            for lane in 0..LANES {
                let mut q = read_packed(low_plane, LANES, lane, common_width);
                let mut base = common_base;
                if is_wide(mask, lane) {
                    let high = read_packed(block.segment, padded_lanes(block.lanes), rank, high_width);
                    for (q, high) in q.iter_mut().zip(high) {
                        *q |= high.checked_shl(u32::from(common_width)).unwrap_or(0);
                    }
                    base = wide_base;
                    rank += 1;
                }
                let extra = read_extra(dtype, extra_plane, lane);
                for row in 0..ROWS {
                    let exponent = base.wrapping_sub(q[row]) & dtype.exponent_mask();
                    let value = Value { exponent, byte: byte_plane[byte_at(row, lane)], extra: extra[row] };
                    let at = (row * LANES + lane) * dtype.element_bytes();
                    value.write(dtype, &mut tile[at..at + dtype.element_bytes()]);
                }
            }
        }
    }

    fn decode_cascade(self, block: &CascadeBlock<'_>, target: TileTarget<'_, '_>, _: &mut CascadeScratch) {
        cascade::decode(block, cached(target));
    }

    fn encode_cascade(
        self,
        block: &CascadeSource<'_>,
        planes: [TileTarget<'_, '_>; 3],
        show: &mut dyn FnMut(&[u8]),
        scratch: &mut CascadeScratch,
    ) -> usize {
        cascade::encode(block, planes.map(cached), show, scratch)
    }

    fn prefetch(self, _: &[u8]) {}

    fn stream(self, source: &[u8], target: &mut [u8]) {
        target.copy_from_slice(source);
    }

    fn fence(self) {}
}

/// The bytes of a target.
fn cached<'a>(target: TileTarget<'a, '_>) -> &'a mut [u8] {
    match target {
        TileTarget::Cached(bytes) => bytes,
        TileTarget::Streamed(..) => unreachable!("these kernels do not stream"),
    }
}

/// An element in its three planes.
#[derive(Debug, Clone, Copy)]
struct Value {
    exponent: u8,
    byte: u8,
    /// 3 bits for F16, 16 for F32, none for BF16.
    extra: u16,
}

impl Value {
    fn read(dtype: Dtype, element: &[u8]) -> Self {
        match (dtype, element) {
            (Dtype::Bf16, &[low, high]) => Self::of_word(u16::from_le_bytes([low, high]), 0),
            (Dtype::F16, &[low, high]) => {
                let [low, byte] = u16::from_le_bytes([low, high]).rotate_left(6).to_le_bytes();
                Self { exponent: low & 0x1F, byte, extra: u16::from(low >> 5) }
            }
            (Dtype::F32, &[e0, e1, low, high]) => {
                Self::of_word(u16::from_le_bytes([low, high]), u16::from_le_bytes([e0, e1]))
            }
            _ => unreachable!("no {dtype:?} element has {} bytes", element.len()),
        }
    }

    fn of_word(word: u16, extra: u16) -> Self {
        let [exponent, byte] = word.rotate_left(9).to_le_bytes();
        Self { exponent, byte, extra }
    }

    fn write(self, dtype: Dtype, element: &mut [u8]) {
        let Self { exponent, byte, extra } = self;
        if dtype == Dtype::F16 {
            let word = (u16::from_le_bytes([exponent, byte]) | extra << 5).rotate_right(6);
            element.copy_from_slice(&word.to_le_bytes());
            return;
        }
        let (low, high) = element.split_at_mut(element.len() - 2);
        high.copy_from_slice(&u16::from_le_bytes([exponent, byte]).rotate_right(9).to_le_bytes());
        low.copy_from_slice(&extra.to_le_bytes()[..low.len()]);
    }
}

fn read_lane(dtype: Dtype, tile: &[u8], lane: usize) -> [Value; ROWS] {
    let size = dtype.element_bytes();
    std::array::from_fn(|row| Value::read(dtype, &tile[(row * LANES + lane) * size..][..size]))
}

fn is_wide(mask: &[u8], lane: usize) -> bool {
    mask[lane / 8] >> (lane % 8) & 1 == 1
}

/// Where the byte of an element lies in the byte plane of its tile: rows 8 to 15 are the high bytes of the words.
fn byte_at(row: usize, lane: usize) -> usize {
    2 * (row % (ROWS / 2) * LANES + lane) + row / (ROWS / 2)
}

fn low_bits(width: u8) -> u8 {
    0xFF_u8.checked_shr(u32::from(8 - width)).unwrap_or(0)
}

/// Packs the lowest `width` bits of each value and writes the lane's words into rows of `stride` words.
fn write_packed(rows: &mut [u8], stride: usize, lane: usize, width: u8, values: [u8; ROWS]) {
    let values = values.iter().rev();
    let bits = values.fold(0_u128, |bits, &value| bits << width | u128::from(value & low_bits(width)));
    for (index, word) in bits.to_le_bytes().chunks_exact(2).take(usize::from(width)).enumerate() {
        rows[2 * (index * stride + lane)..][..2].copy_from_slice(word);
    }
}

fn read_packed(rows: &[u8], stride: usize, lane: usize, width: u8) -> [u8; ROWS] {
    let mut bytes = [0; 16];
    for (index, word) in bytes.chunks_exact_mut(2).take(usize::from(width)).enumerate() {
        word.copy_from_slice(&rows[2 * (index * stride + lane)..][..2]);
    }
    let bits = u128::from_le_bytes(bytes);
    std::array::from_fn(|row| (bits >> (row * usize::from(width))).to_le_bytes()[0] & low_bits(width))
}

fn write_extra(dtype: Dtype, plane: &mut [u8], lane: usize, extra: [u16; ROWS]) {
    match dtype {
        Dtype::Opaque | Dtype::Bf16 => {}
        Dtype::F16 => write_packed(plane, LANES, lane, 3, extra.map(|extra| extra.to_le_bytes()[0])),
        Dtype::F32 => {
            for (row, extra) in extra.iter().enumerate() {
                plane[2 * (row * LANES + lane)..][..2].copy_from_slice(&extra.to_le_bytes());
            }
        }
    }
}

fn read_extra(dtype: Dtype, plane: &[u8], lane: usize) -> [u16; ROWS] {
    match dtype {
        Dtype::Opaque | Dtype::Bf16 => [0; ROWS],
        Dtype::F16 => read_packed(plane, LANES, lane, 3).map(u16::from),
        Dtype::F32 => std::array::from_fn(|row| {
            let at = 2 * (row * LANES + lane);
            u16::from_le_bytes([plane[at], plane[at + 1]])
        }),
    }
}
