//! Streams that no encoder writes and every decoder must read: valid by structure, random in everything that validation leaves open.

use enec_format::geometry::{ROW_BYTES, SEGMENT_ROW_LANES, SEGMENT_UNIT, TILE_ELEMENTS, TILE_MASK_BYTES};
use enec_format::{
    BlockEntry, Cascade, Coding, Dtype, FormatError, Layout, TwoWindows, escapes, level_len, padded_lanes, segment_len,
    wide_lanes,
};

use crate::random::SplitMix64;

/// A valid, unsealed stream of random planes. In codec 1 with needlessly wide lanes, wide bases that are too low and wide widths that are
/// too large, so that the decoder's subtraction wraps; in codec 2 with random codes and raw exponents that may be symbols.
///
/// # Errors
///
/// [`FormatErrorKind::Count`](enec_format::FormatErrorKind::Count) if the stream does not fit the address space, or of parameters of
/// another dtype.
pub fn stream(
    random: &mut SplitMix64,
    dtype: Dtype,
    coding: impl Into<Coding>,
    elements: usize,
) -> Result<Vec<u8>, FormatError> {
    let coding = coding.into();
    coding.check(dtype)?;
    let empty = Layout::new(dtype, coding, elements as u64, 0)?;
    let blocks: Vec<HostileBlock> = (0..empty.blocks())
        .map(|index| HostileBlock::random(random, dtype, coding, empty.block(index).tiles.len()))
        .collect();
    let variable_len: usize = blocks.iter().map(|block| block.segment.len()).sum();
    let layout = Layout::new(dtype, coding, elements as u64, variable_len as u64)?;
    let mut bytes = vec![0; layout.stream_len];
    for section in [layout.byte_plane, layout.extra_plane, layout.tail] {
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
        bytes[ranges.low_plane].copy_from_slice(&block.low_plane);
    }
    layout.header(None).write(&mut bytes);
    Ok(bytes)
}

struct HostileBlock {
    mask: Vec<u8>,
    low_plane: Vec<u8>,
    entry: BlockEntry,
    segment: Vec<u8>,
}

impl HostileBlock {
    fn random(random: &mut SplitMix64, dtype: Dtype, coding: Coding, tiles: usize) -> Self {
        match coding {
            Coding::TwoWindows(windows) => Self::two_windows(random, dtype, windows, tiles),
            Coding::Cascade(cascade) => Self::cascade(random, dtype, cascade, tiles),
            _ => unreachable!("a stored stream has no blocks"),
        }
    }

    /// Codes that escape more often or less, level by level.
    fn cascade(random: &mut SplitMix64, dtype: Dtype, cascade: Cascade, tiles: usize) -> Self {
        let codes = |random: &mut SplitMix64, count: usize| -> Vec<u8> {
            let escapes = random.next_u8();
            let code = |random: &mut SplitMix64| if random.next_u8() < escapes { 3 } else { random.next_u8() & 3 };
            let mut bytes = vec![0; level_len(count)];
            (0..count).for_each(|index| bytes[index / 4] |= code(random) << (2 * (index % 4)));
            bytes
        };
        let mut count = tiles * TILE_ELEMENTS;
        let low_plane = codes(random, count);
        count = escapes(&low_plane, count);
        let mut segment = Vec::new();
        for _ in 2..=cascade.levels() {
            let level = codes(random, count);
            count = escapes(&level, count);
            segment.extend(level);
        }
        segment.extend(random.bytes(count).iter().map(|exponent| exponent & dtype.exponent_mask()));
        segment.resize(segment.len().next_multiple_of(SEGMENT_UNIT), 0);
        let entry = BlockEntry { wide_base: 0, wide_width: 0, end: 0 };
        Self { mask: Vec::new(), low_plane, entry, segment }
    }

    fn two_windows(random: &mut SplitMix64, dtype: Dtype, windows: TwoWindows, tiles: usize) -> Self {
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
        let low_plane = random.bytes(tiles * usize::from(common_width) * ROW_BYTES);
        Self { mask, low_plane, entry, segment }
    }
}

#[cfg(test)]
mod tests {
    use enec_format::{Levels, Stream};

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

    #[test]
    fn cascades_are_valid_and_use_every_level() {
        let mut random = SplitMix64::new(2);
        for dtype in Dtype::FLOATS {
            for levels in 1..=5 {
                let symbols: Vec<u8> = (0..3 * levels).collect();
                let cascade = Cascade::new(dtype, &symbols).unwrap();
                let bytes = stream(&mut random, dtype, cascade, 40_000).unwrap();
                let stream = Stream::open(&bytes).unwrap();
                let counted = stream.blocks().map(|block| Levels::count(levels, block.low_plane, block.segment));
                let raw: usize = counted.map(|levels| levels.raw_count()).sum();
                assert!(raw > 0, "{dtype:?}, {levels} levels");
            }
        }
    }
}
