//! Every variant of the kernels against the reference codec, byte for byte.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, and its numbers are small"
)]

mod common;

use common::{COUNTS, Random, backends, check, check_ranges, decode, encode, inputs, windows};
use enec_format::geometry::{LANES, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, EncodeOutcome, EncodePlan, Stream, TwoWindows, reference};

#[test]
fn every_width_and_input_encodes_and_decodes_like_the_reference() {
    let backends = backends();
    let mut round = 0;
    for dtype in Dtype::FLOATS {
        for windows in windows(dtype) {
            for (name, source) in inputs(dtype, 40000, windows.common_base(), windows.common_width()) {
                let count = COUNTS[round % COUNTS.len()];
                let source = &source[..count * dtype.element_bytes()];
                let plan = EncodePlan::window(dtype, windows, count, 0).unwrap();
                let what = format!("{dtype:?} {windows:?} {name} {count}");
                check(&backends, &plan, source, round % 64, &what);
                round += 1;
            }
        }
    }
}

#[test]
fn ranges_of_tiles_start_and_end_anywhere() {
    let backends = backends();
    let random = &mut Random(1);
    for dtype in Dtype::FLOATS {
        let windows = TwoWindows::new(dtype, dtype.exponent_mask() / 2, 2).unwrap();
        let (_, source) = inputs(dtype, 60_001, windows.common_base(), 2).swap_remove(0);
        let stream = reference::encode_plan(&EncodePlan::window(dtype, windows, 60_001, 0).unwrap(), &source).unwrap();
        let stream = Stream::open(&stream).unwrap();
        assert_eq!(stream.layout().tiles, 29);
        check_ranges(&backends, &stream, &source, random);
    }
}

/// Targets beyond the size of caches are written past them: another way to every byte, whatever the target's alignment is.
#[test]
fn large_tensors_encode_and_decode_like_the_reference() {
    let backends = backends();
    for (dtype, shift) in [(Dtype::Bf16, 0), (Dtype::F16, 2), (Dtype::F32, 61)] {
        let windows = TwoWindows::new(dtype, dtype.exponent_mask() / 2, 2).unwrap();
        let count = (8 << 20) / dtype.element_bytes() + 3 * TILE_ELEMENTS + 77;
        let (_, source) = inputs(dtype, 60_000, windows.common_base(), 2).swap_remove(0);
        let source: Vec<u8> = source.iter().copied().cycle().take(count * dtype.element_bytes()).collect();
        let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows), count).unwrap();
        check(&backends, &plan, &source, shift, &format!("{dtype:?} at {shift}"));
        let stream = reference::encode_plan(&plan, &source).unwrap();
        let whole = DecodePlan::whole(&Stream::open(&stream).unwrap());
        let start = 3;
        let part = whole.clone().with_tiles(start..whole.layout().tiles, true).unwrap();
        for backend in &backends {
            let decoded = decode(&**backend, &part, &stream, shift + 1, None);
            assert!(decoded == source[start * dtype.tile_bytes()..], "{} {dtype:?}", backend.info().variant);
        }
    }
}

#[test]
fn window_plans_count_segments_from_the_start_of_the_tensor() {
    let windows = TwoWindows::new(Dtype::Bf16, 127, 1).unwrap();
    let (_, source) = inputs(Dtype::Bf16, 16384 * 3, 127, 1).swap_remove(0);
    let plan = EncodePlan::window(Dtype::Bf16, windows, 16384 * 3, (1 << 40) + 5).unwrap();
    let mut expected = vec![0; plan.target_len()];
    let outcome = reference::encode(&plan, &source, &mut expected).unwrap();
    for backend in backends() {
        let (found, body) = encode(&*backend, &plan, &source, 7, None);
        assert_eq!(found, outcome);
        assert!(body == expected[64..plan.written(outcome).unwrap().stream_len], "{}", backend.info().variant);
    }
}

/// Streams that are valid although no encoder writes them: the subtraction wraps, lanes are wide needlessly.
#[test]
fn hostile_but_valid_streams_decode_like_the_reference() {
    let backends = backends();
    let random = &mut Random(2);
    for dtype in Dtype::FLOATS {
        for windows in windows(dtype) {
            let count = 20_000;
            let (_, source) = inputs(dtype, count, windows.common_base(), windows.common_width())
                .swap_remove(random.below(14) as usize);
            let plan = EncodePlan::window(dtype, windows, count, 0).unwrap();
            let mut bytes = reference::encode_plan(&plan, &source).unwrap();
            let layout = Stream::open(&bytes).unwrap().layout().clone();
            // Any base below 2^E is legal in a block with wide lanes; any bits are in the planes.
            for block in 0..layout.blocks() {
                let ranges = layout.block(block);
                if bytes[ranges.mask.clone()].iter().any(|&byte| byte != 0) {
                    bytes[ranges.entry.start] = random.next() as u8 & dtype.exponent_mask();
                }
                for range in [ranges.byte_plane, ranges.extra_plane, ranges.low_plane] {
                    bytes[range].fill_with(|| random.next() as u8);
                }
            }
            let stream = Stream::open(&bytes).unwrap();
            let expected = reference::decode_stream(&stream).unwrap();
            for backend in &backends {
                let decoded = decode(&**backend, &DecodePlan::whole(&stream), &bytes, 3, None);
                assert!(decoded == expected, "{} {dtype:?} {windows:?}", backend.info().variant);
            }
        }
    }
}

/// A stream whose bytes change after its validation gives wrong elements, never a panic or a stray read: the source ends where the
/// stream does.
#[test]
fn streams_that_change_after_validation_do_no_harm() {
    let backends = backends();
    let random = &mut Random(3);
    for dtype in Dtype::FLOATS {
        for windows in windows(dtype) {
            let count = 16384 + 2048;
            let (_, source) = inputs(dtype, count, windows.common_base(), windows.common_width())
                .swap_remove(random.below(16) as usize);
            let plan = EncodePlan::window(dtype, windows, count, 0).unwrap();
            let bytes = reference::encode_plan(&plan, &source).unwrap();
            let stream = Stream::open(&bytes).unwrap();
            let (table, mask) = (stream.layout().table.range(), stream.layout().mask.range());
            for _ in 0..6 {
                let mut bytes = bytes.clone();
                for range in [table.clone(), mask.clone()] {
                    for byte in &mut bytes[range] {
                        if random.below(4) == 0 {
                            *byte = random.next() as u8;
                        }
                    }
                }
                let decoded = backends.iter().map(|backend| {
                    decode(&**backend, &DecodePlan::whole(&stream), &bytes, random.below(64) as usize, None)
                });
                let decoded: Vec<_> = decoded.collect();
                assert!(decoded.iter().all(|other| *other == decoded[0]), "{dtype:?} {windows:?}: variants differ");
            }
        }
    }
}

/// One block at common width 0 whose wide lanes need all exponent bits: 1008 of them fill the variable section to the very limit.
#[test]
fn the_stored_rule_holds_at_its_very_limit() {
    let backends = backends();
    for (dtype, largest_coded) in [(Dtype::Bf16, 1008), (Dtype::F16, 992), (Dtype::F32, 1008)] {
        let windows = TwoWindows::new(dtype, dtype.exponent_mask(), 0).unwrap();
        for (count, blocks) in [(16384, 1), (16384 + 100, 1), (16384 * 3, 3)] {
            let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows), count).unwrap();
            for wide in [largest_coded - 16, largest_coded, largest_coded + 1, 1024] {
                let random = &mut Random(wide as u64);
                let exponents = (0..count).map(|i| {
                    let (row, lane) = (i / LANES % 16, i / TILE_ELEMENTS % 8 * LANES + i % LANES);
                    let is_wide = lane < wide;
                    if is_wide { (row.to_le_bytes()[0] * 17) & dtype.exponent_mask() } else { dtype.exponent_mask() }
                });
                let source = common::with_exponents(dtype, random, exponents);
                let mut expected = vec![0; plan.target_len()];
                let outcome = reference::encode(&plan, &source, &mut expected).unwrap();
                match outcome {
                    EncodeOutcome::Stored => assert!(wide > largest_coded || blocks > 1, "{dtype:?} {count} {wide}"),
                    EncodeOutcome::Coded { variable_len } => {
                        assert!(wide <= largest_coded, "{dtype:?} {count} {wide}");
                        let is_full = variable_len == plan.variable_limit();
                        assert_eq!(is_full, dtype != Dtype::F16 && blocks == 1 && wide == 1008, "{dtype:?} {wide}");
                    }
                }
                let len = plan.written(outcome).unwrap().stream_len;
                for backend in &backends {
                    let (found, body) = encode(&**backend, &plan, &source, wide % 64, None);
                    assert_eq!(found, outcome, "{} {dtype:?} {count} {wide}", backend.info().variant);
                    assert!(body == expected[64..len], "{} {dtype:?} {count} {wide}", backend.info().variant);
                }
            }
        }
    }
}

#[test]
fn small_and_opaque_tensors_are_stored_and_come_back() {
    for backend in backends() {
        for (dtype, count) in [
            (Dtype::Opaque, 0),
            (Dtype::Opaque, 1),
            (Dtype::Opaque, 64),
            (Dtype::Opaque, 3_000_001),
            (Dtype::Bf16, 0),
            (Dtype::Bf16, 1),
            (Dtype::Bf16, 2047),
            (Dtype::F32, 2047),
            (Dtype::F16, 31),
        ] {
            let random = &mut Random(count as u64);
            let source: Vec<u8> = (0..count * dtype.element_bytes()).map(|_| random.next() as u8).collect();
            let coding = match dtype {
                Dtype::Opaque => Coding::Stored,
                _ => Coding::TwoWindows(TwoWindows::new(dtype, 15, 3).unwrap()),
            };
            let plan = EncodePlan::new(dtype, coding, count).unwrap();
            let expected = reference::encode_plan(&plan, &source).unwrap();
            let (outcome, body) = encode(&*backend, &plan, &source, 9, None);
            assert_eq!(outcome, EncodeOutcome::Stored);
            assert!(body == expected[64..], "{dtype:?} {count}");
            let stream = Stream::open(&expected).unwrap();
            assert!(decode(&*backend, &DecodePlan::whole(&stream), &expected, 5, None) == source, "{dtype:?} {count}");
        }
    }
}
