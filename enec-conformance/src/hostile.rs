//! Streams that no encoder writes and every decoder must read: valid by structure, random in everything that validation leaves open.

use enec_format::geometry::{SEGMENT_ROW_LANES, SEGMENT_UNIT, TILE_MASK_BYTES};
use enec_format::{BlockEntry, Coding, Dtype, FormatError, Layout, TwoWindows, padded_lanes, segment_len, wide_lanes};

use crate::random::SplitMix64;

/// A valid, unsealed stream of random planes, with needlessly wide lanes, wide bases that are too low and wide widths that are too
/// large, so that the decoder's subtraction wraps.
///
/// # Errors
///
/// [`FormatErrorKind::Count`](enec_format::FormatErrorKind::Count) if the stream does not fit the address space.
pub fn stream(
    random: &mut SplitMix64,
    dtype: Dtype,
    windows: TwoWindows,
    elements: usize,
) -> Result<Vec<u8>, FormatError> {
    let coding = Coding::TwoWindows(windows);
    let empty = Layout::new(dtype, coding, elements as u64, 0)?;
    let blocks: Vec<HostileBlock> = (0..empty.blocks())
        .map(|index| HostileBlock::random(random, dtype, windows, empty.block(index).tiles.len()))
        .collect();
    let variable_len: usize = blocks.iter().map(|block| block.segment.len()).sum();
    let layout = Layout::new(dtype, coding, elements as u64, variable_len as u64)?;
    let mut bytes = vec![0; layout.stream_len];
    for section in [layout.byte_plane, layout.extra_plane, layout.low_plane, layout.tail] {
        bytes[section.range()].copy_from_slice(&random.bytes(section.len));
    }
    let mut end = 0;
    for (index, block) in blocks.iter().enumerate() {
        let (ranges, start) = (layout.block(index), layout.variable.offset + end);
        bytes[start..start + block.segment.len()].copy_from_slice(&block.segment);
        end += block.segment.len();
        let entry = BlockEntry { end: (end / SEGMENT_UNIT) as u64, ..block.entry };
        bytes[ranges.entry].copy_from_slice(&entry.to_bytes());
        bytes[ranges.mask].copy_from_slice(&block.mask);
    }
    let header = layout.header(None).to_bytes();
    bytes[..header.len()].copy_from_slice(&header);
    Ok(bytes)
}

struct HostileBlock {
    mask: Vec<u8>,
    entry: BlockEntry,
    segment: Vec<u8>,
}

impl HostileBlock {
    fn random(random: &mut SplitMix64, dtype: Dtype, windows: TwoWindows, tiles: usize) -> Self {
        let density = random.next_u8();
        let mask: Vec<u8> = (0..tiles * TILE_MASK_BYTES)
            .map(|_| (0..8).fold(0, |byte, bit| byte | u8::from(random.next_u8() < density) << bit))
            .collect();
        let (lanes, common_width) = (wide_lanes(&mask), windows.common_width());
        let mut entry = BlockEntry { wide_base: 0, wide_width: common_width, end: 0 };
        if lanes > 0 {
            entry.wide_base = random.next_u8() & dtype.exponent_mask();
            entry.wide_width += random.next_u8() % (dtype.exponent_bits() - common_width + 1);
        }
        let high_width = entry.wide_width - common_width;
        let mut segment = random.bytes(segment_len(lanes, high_width));
        for row in segment.chunks_exact_mut(2 * padded_lanes(lanes).max(SEGMENT_ROW_LANES)) {
            row[2 * lanes..].fill(0);
        }
        Self { mask, entry, segment }
    }
}

#[cfg(test)]
mod tests {
    use enec_format::Stream;

    use super::*;

    #[test]
    fn are_valid_and_wrap() {
        let mut random = SplitMix64::new(1);
        let mut too_low = 0;
        for dtype in Dtype::FLOATS {
            for width in 0..=dtype.exponent_bits() {
                let windows = TwoWindows::new(dtype, 3, width).unwrap();
                let bytes = stream(&mut random, dtype, windows, 20_000).unwrap();
                let stream = Stream::open(&bytes).unwrap();
                too_low += stream
                    .blocks()
                    .filter(|block| u32::from(block.entry.wide_base) < (1 << block.entry.wide_width) - 1)
                    .count();
            }
        }
        assert!(too_low > 10);
    }
}
