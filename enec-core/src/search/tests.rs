//! The search against brute force by the reference encoder.

use enec_format::geometry::TILE_ELEMENTS;
use enec_format::{Cascade, Coding, EncodePlan, reference};

use super::*;

/// Exponents that fall off by halves from `top`, as trained weights do, with `outliers` per 1,024 elements.
fn weights(dtype: Dtype, elements: usize, top: u32, outliers: u32) -> Vec<u8> {
    let mut state = 1_u32;
    let mut next = || {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        state >> 8
    };
    let mut bytes = Vec::new();
    for _ in 0..elements {
        let exponent = if next() % 1024 < outliers { next() % 20 } else { top - next().trailing_zeros().min(12) };
        match dtype {
            Dtype::Bf16 => bytes.extend(u16::try_from(exponent << 7 | next() & 0x7F).unwrap().to_le_bytes()),
            Dtype::F16 => bytes.extend(u16::try_from((exponent & 31) << 10 | next() & 0x3FF).unwrap().to_le_bytes()),
            _ => bytes.extend((exponent << 23 | next() & 0x7F_FFFF).to_le_bytes()),
        }
    }
    bytes
}

/// The size that the search minimises, computed by encoding.
fn encoded_bits(dtype: Dtype, windows: TwoWindows, elements: &[u8]) -> u64 {
    let count = elements.len() / dtype.element_bytes();
    let plan = EncodePlan::window(dtype, windows, count, 0).unwrap();
    let bytes = reference::encode_plan(&plan, elements).unwrap();
    let stream = enec_format::Stream::open(&bytes).unwrap();
    let high: u64 = stream
        .blocks()
        .map(|block| {
            let lanes = enec_format::wide_lanes(block.mask) as u64;
            16 * lanes * u64::from(block.entry.wide_width - windows.common_width())
        })
        .sum();
    high + stream.layout().low_plane.len as u64 * 8
}

#[test]
fn finds_the_exhaustive_best_with_its_ties() {
    for (dtype, top, outliers) in
        [(Dtype::Bf16, 120, 0), (Dtype::Bf16, 126, 9), (Dtype::F16, 15, 3), (Dtype::F32, 122, 30)]
    {
        let elements = weights(dtype, 3 * TILE_ELEMENTS, top, outliers);
        let mut best = (u64::MAX, 0, 0);
        for width in 0..=dtype.exponent_bits() {
            for base in (0..=dtype.exponent_mask()).rev() {
                let bits = encoded_bits(dtype, TwoWindows::new(dtype, base, width).unwrap(), &elements);
                if bits < best.0 {
                    best = (bits, width, base);
                }
            }
        }
        let found = search(dtype, &elements);
        let bits = encoded_bits(dtype, found, &elements);
        assert_eq!((bits, found.common_width(), found.common_base()), best, "{dtype:?} {top} {outliers}");
    }
}

#[test]
fn constant_and_zero_tensors_take_no_bits() {
    for word in [0_u16, 0x3F80, 0xFFFF] {
        let elements: Vec<u8> = word.to_le_bytes().repeat(TILE_ELEMENTS);
        let found = search(Dtype::Bf16, &elements);
        assert_eq!(found.common_width(), 0);
        assert_eq!(u16::from(found.common_base()), word >> 7 & 0xFF);
    }
}

#[test]
fn any_length_has_parameters() {
    for count in [0, 1, 2047, 2048, 2049, 16_383, 16_384, 40_000] {
        let elements = weights(Dtype::Bf16, count, 120, 5);
        let windows = search(Dtype::Bf16, &elements);
        reference::encode_stream(Dtype::Bf16, Coding::TwoWindows(windows), &elements).unwrap();
    }
}

#[test]
fn samples_are_spread_over_all_tensors() {
    let block = BLOCK_ELEMENTS * 2;
    let tensors: Vec<Vec<u8>> = [3 * block, 100, 5 * block + 4096, 4096].iter().map(|&len| vec![0; len]).collect();
    let tensors: Vec<&[u8]> = tensors.iter().map(Vec::as_slice).collect();
    let lengths = |wanted| -> Vec<usize> { sampled_blocks(Dtype::Bf16, &tensors, wanted).map(<[u8]>::len).collect() };
    assert_eq!(lengths(usize::MAX), [vec![block; 8], vec![4096; 2]].concat());
    assert_eq!(lengths(2), [block, block]);
    assert_eq!(lengths(0), Vec::<usize>::new());
    let starts = sampled_blocks(Dtype::Bf16, &tensors, 5).map(<[u8]>::as_ptr);
    assert_eq!(starts.collect::<std::collections::BTreeSet<_>>().len(), 5);
}

/// The cascade of some levels that codes the most frequent exponents, ties by the smaller one.
fn ranked(dtype: Dtype, levels: usize, elements: &[u8]) -> Cascade {
    let mut counts = vec![0_u32; 256];
    reference::exponents(dtype, elements).for_each(|exponent| counts[usize::from(exponent)] += 1);
    let mut exponents: Vec<u8> = (0..=dtype.exponent_mask()).collect();
    exponents.sort_by_key(|&exponent| (u32::MAX - counts[usize::from(exponent)], exponent));
    Cascade::new(dtype, &exponents[..3 * levels]).unwrap()
}

#[test]
fn finds_the_number_of_levels_with_the_shortest_stream() {
    let mut found = std::collections::BTreeSet::new();
    for (dtype, top, outliers) in [
        (Dtype::Bf16, 120, 0),
        (Dtype::Bf16, 126, 200),
        (Dtype::Bf16, 14, 900),
        (Dtype::F16, 15, 3),
        (Dtype::F32, 122, 30),
    ] {
        let elements = weights(dtype, 3 * TILE_ELEMENTS, top, outliers);
        let len = |cascade: Cascade| {
            let plan = EncodePlan::window(dtype, cascade, elements.len() / dtype.element_bytes(), 0).unwrap();
            let bytes = reference::encode_plan(&plan, &elements).unwrap();
            enec_format::Stream::open(&bytes).unwrap().layout().variable.len
        };
        let best = (1..=5).map(|levels| ranked(dtype, levels, &elements)).min_by_key(|&cascade| len(cascade)).unwrap();
        assert_eq!(search_cascade(dtype, &elements), best, "{dtype:?} {top} {outliers}");
        found.insert(best.levels());
    }
    assert!(found.len() > 2, "{found:?}");
    for count in [0, 1, 2047, 2048, 16_385] {
        let cascade = search_cascade(Dtype::F16, &weights(Dtype::F16, count, 15, 5));
        assert_eq!(cascade.symbols().len() % 3, 0);
    }
}

/// Blocks of one exponent, which suit the windows, and blocks of few exponents that lie far apart, which do not.
fn halves(blocks: usize, is_far: impl Fn(usize) -> bool) -> Vec<u8> {
    let element = |index: usize| match (is_far(index / BLOCK_ELEMENTS), index / LANES % 16) {
        (false, _) => 100_u16,
        (true, row) => [100, 10, 200][row % 3],
    };
    (0..blocks * BLOCK_ELEMENTS).flat_map(|index| (element(index) << 7).to_le_bytes()).collect()
}

fn encoded_len(coding: Coding, elements: &[u8]) -> usize {
    reference::encode_stream(Dtype::Bf16, coding, elements).unwrap().len()
}

/// Where the sample is the whole tensor, the shorter stream is taken; also by a few bytes.
#[test]
fn automatic_choice_is_exact_for_whole_samples() {
    let mut cascades = 0;
    for far in 0..=8 {
        let elements = halves(8, |block| block < far);
        let (windows, cascade) = (search(Dtype::Bf16, &elements), search_cascade(Dtype::Bf16, &elements));
        let (windows_len, cascade_len) =
            (encoded_len(windows.into(), &elements), encoded_len(cascade.into(), &elements));
        let chosen = choice::choose(Dtype::Bf16, &elements, crate::CodecChoice::Auto, choice::Known::default());
        let expected = if cascade_len < windows_len { cascade.into() } else { Coding::from(windows) };
        assert_eq!(chosen, expected, "{far}: {windows_len} and {cascade_len} bytes");
        cascades += usize::from(cascade_len < windows_len);
    }
    assert!((1..9).contains(&cascades), "{cascades}");
}

/// In a tensor whose sampled blocks disagree about the codec all blocks are looked at.
#[test]
fn automatic_choice_looks_at_all_blocks_where_the_sample_disagrees() {
    // 48 blocks, of which the sample has every third: half of those are the far ones, and no other.
    let elements = halves(48, |block| block % 6 == 1);
    let (windows, cascade) = (search(Dtype::Bf16, &elements), search_cascade(Dtype::Bf16, &elements));
    let (windows_len, cascade_len) = (encoded_len(windows.into(), &elements), encoded_len(cascade.into(), &elements));
    let chosen = choice::choose(Dtype::Bf16, &elements, crate::CodecChoice::Auto, choice::Known::default());
    let sampled = sampled_blocks(Dtype::Bf16, &[&elements], SAMPLE_BLOCKS).flatten().copied().collect::<Vec<u8>>();
    assert!(encoded_len(cascade.into(), &sampled) < encoded_len(windows.into(), &sampled), "the sample misleads");
    assert!(windows_len < cascade_len, "{windows_len} and {cascade_len} bytes");
    assert_eq!(chosen, windows.into());
}

/// Where one codec saves in the sample many times what the other does, the sample decides; also where all blocks would tell otherwise.
#[test]
fn automatic_choice_goes_by_a_sample_that_is_clear() {
    for (far, is_clear) in [(11, false), (12, true)] {
        // 64 blocks, of which the sample has every fourth: this many of those are far ones, and no other. Each saves three times what one
        // of the others does.
        let elements = halves(64, |block| block % 4 == 2 && block / 4 < far);
        let (windows, cascade) = (search(Dtype::Bf16, &elements), search_cascade(Dtype::Bf16, &elements));
        let (windows_len, cascade_len) =
            (encoded_len(windows.into(), &elements), encoded_len(cascade.into(), &elements));
        assert!(windows_len < cascade_len, "{windows_len} and {cascade_len} bytes");
        let chosen = choice::choose(Dtype::Bf16, &elements, crate::CodecChoice::Auto, choice::Known::default());
        assert_eq!(chosen, if is_clear { cascade.into() } else { Coding::from(windows) }, "{far}");
    }
}

/// Every window of the sample, by the definition of the cost: what the search leaves out must not be the best.
#[test]
fn leaves_out_no_window_that_is_better() {
    let mut state = 7_u32;
    let mut next = |below: u32| {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        (state >> 8) % below
    };
    for round in 0..200 {
        // Lanes with gaps between their largest exponents, few or many of them, near the ends of the range or not.
        let dtype = if round % 3 == 0 { Dtype::F16 } else { Dtype::Bf16 };
        let top = u32::from(dtype.exponent_mask());
        let blocks: Vec<(Vec<u8>, Vec<u8>)> = (0..1 + next(3))
            .map(|_| {
                let (tops, spread) = (1 + next(5), 1 + next(top));
                let levels: Vec<u32> = (0..tops).map(|_| next(top + 1)).collect();
                (0..LANES)
                    .map(|_| {
                        let largest = levels[next(tops) as usize];
                        let smallest = largest - next(spread.min(largest + 1));
                        (u8::try_from(smallest).unwrap(), u8::try_from(largest).unwrap())
                    })
                    .unzip()
            })
            .collect();
        let cost = |base: u8, width: u8| -> u64 {
            let lowest = (u16::from(base) + 1).saturating_sub(1 << width);
            let of_block = |(smallest, largest): &(Vec<u8>, Vec<u8>)| {
                let wide: Vec<_> = smallest
                    .iter()
                    .zip(largest)
                    .filter(|&(&smallest, &largest)| u16::from(smallest) < lowest || largest > base)
                    .collect();
                let low = wide.iter().map(|(smallest, _)| **smallest).min().unwrap_or(0);
                let high = wide.iter().map(|(_, largest)| **largest).max().unwrap_or(0);
                let wide_width = 8 - (high - low).leading_zeros();
                16 * (wide.len() as u64 * u64::from(wide_width.saturating_sub(u32::from(width)))
                    + smallest.len() as u64 * u64::from(width))
            };
            blocks.iter().map(of_block).sum()
        };
        let bounds = || blocks.iter().flat_map(|(_, largest)| largest.iter().copied());
        let (lowest, highest) = (bounds().min().unwrap(), bounds().max().unwrap());
        let mut best = (u64::MAX, 0, 0);
        for width in 0..=dtype.exponent_bits() {
            for base in (lowest..=highest).rev() {
                if cost(base, width) < best.0 {
                    best = (cost(base, width), width, base);
                }
            }
        }
        let counts = |(smallest, largest): &(Vec<u8>, Vec<u8>)| LaneCounts::new(smallest, largest);
        let found = Sample { dtype, blocks: blocks.iter().map(counts).collect() }.best();
        assert_eq!((found.common_width(), found.common_base()), (best.1, best.2), "round {round}");
    }
}
