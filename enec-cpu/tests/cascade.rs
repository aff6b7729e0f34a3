//! Every variant of the kernels of the cascade against the reference codec, byte for byte.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, and its numbers are small"
)]

mod common;

use common::{COUNTS, Random, backends, cascades, check, check_ranges, decode, encode, inputs};
use enec_format::geometry::TILE_ELEMENTS;
use enec_format::{Cascade, DecodePlan, Dtype, EncodeOutcome, EncodePlan, Stream, reference};

#[test]
fn every_number_of_levels_and_input_encodes_and_decodes_like_the_reference() {
    let backends = backends();
    let mut round = 0;
    for dtype in Dtype::FLOATS {
        for cascade in cascades(dtype) {
            for (name, source) in inputs(dtype, 40000, cascade.symbols()[0], cascade.levels()) {
                let count = COUNTS[round % COUNTS.len()];
                let source = &source[..count * dtype.element_bytes()];
                let plan = EncodePlan::window(dtype, cascade, count, 0).unwrap();
                let what = format!("{dtype:?} {cascade:?} {name} {count}");
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
        // Two levels leave a good part of the exponents raw, so that a tile's are found only by counting those before it.
        let cascade = cascades(dtype).nth(2).unwrap();
        let (_, source) = inputs(dtype, 60_001, cascade.symbols()[0], 2).swap_remove(0);
        let stream = reference::encode_plan(&EncodePlan::window(dtype, cascade, 60_001, 0).unwrap(), &source).unwrap();
        let stream = Stream::open(&stream).unwrap();
        check_ranges(&backends, &stream, &source, random);
    }
}

/// Targets beyond the size of caches are written past them: another way to every byte, whatever the target's alignment is.
#[test]
fn large_tensors_encode_and_decode_like_the_reference() {
    let backends = backends();
    for (dtype, shift) in [(Dtype::Bf16, 0), (Dtype::F16, 2), (Dtype::F32, 61)] {
        let cascade = cascades(dtype).nth(4).unwrap();
        let count = (8 << 20) / dtype.element_bytes() + 3 * TILE_ELEMENTS + 77;
        let (_, source) = inputs(dtype, 60_000, cascade.symbols()[0], 2).swap_remove(0);
        let source: Vec<u8> = source.iter().copied().cycle().take(count * dtype.element_bytes()).collect();
        let plan = EncodePlan::new(dtype, cascade.into(), count).unwrap();
        check(&backends, &plan, &source, shift, &format!("{dtype:?} at {shift}"));
    }
}

#[test]
fn window_plans_count_segments_from_the_start_of_the_tensor() {
    let cascade = cascades(Dtype::Bf16).nth(4).unwrap();
    let (_, source) = inputs(Dtype::Bf16, 16384 * 3, cascade.symbols()[0], 1).swap_remove(0);
    let plan = EncodePlan::window(Dtype::Bf16, cascade, 16384 * 3, (1 << 40) + 5).unwrap();
    let mut expected = vec![0; plan.target_len()];
    let outcome = reference::encode(&plan, &source, &mut expected).unwrap();
    let layout = plan.written(outcome).unwrap();
    for backend in backends() {
        let (found, body) = encode(&*backend, &plan, &source, 7, None);
        assert_eq!(found, outcome);
        assert!(body == expected[layout.front_len()..layout.stream_len], "{}", backend.info().variant);
    }
}

/// Streams that are valid although no encoder writes them: other symbols than those that were coded, so that raw exponents are some, and
/// any bits in the planes that are not counted.
#[test]
fn hostile_but_valid_streams_decode_like_the_reference() {
    let backends = backends();
    let random = &mut Random(2);
    for dtype in Dtype::FLOATS {
        for cascade in cascades(dtype) {
            let count = 20_000;
            let input = random.below(14) as usize;
            let (_, source) = inputs(dtype, count, cascade.symbols()[0], cascade.levels()).swap_remove(input);
            let plan = EncodePlan::window(dtype, cascade, count, 0).unwrap();
            let mut bytes = reference::encode_plan(&plan, &source).unwrap();
            let layout = Stream::open(&bytes).unwrap().layout().clone();
            let others: Vec<u8> = cascade.symbols().iter().map(|&symbol| symbol ^ 5).collect();
            let section = Cascade::new(dtype, &others).unwrap().to_section();
            bytes[layout.symbols.range()].copy_from_slice(&section);
            for range in [layout.byte_plane.range(), layout.extra_plane.range()] {
                bytes[range].fill_with(|| random.next() as u8);
            }
            let stream = Stream::open(&bytes).unwrap();
            let expected = reference::decode_stream(&stream).unwrap();
            assert!(expected != source);
            for backend in &backends {
                let decoded = decode(&**backend, &DecodePlan::whole(&stream), &bytes, 3, None);
                assert!(decoded == expected, "{} {dtype:?} {cascade:?}", backend.info().variant);
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
        for cascade in cascades(dtype) {
            let count = 16384 + 2048;
            let input = random.below(16) as usize;
            let (_, source) = inputs(dtype, count, cascade.symbols()[0], cascade.levels()).swap_remove(input);
            let plan = EncodePlan::window(dtype, cascade, count, 0).unwrap();
            let bytes = reference::encode_plan(&plan, &source).unwrap();
            let whole = DecodePlan::whole(&Stream::open(&bytes).unwrap());
            let layout = whole.layout();
            for round in 0..6 {
                let mut bytes = bytes.clone();
                let ranges = [layout.table.range(), layout.low_plane.range(), layout.variable.range()];
                for range in ranges.into_iter().skip(round % 3) {
                    for byte in &mut bytes[range] {
                        if random.below(4) == 0 {
                            *byte = random.next() as u8;
                        }
                    }
                }
                let mut expected = vec![0; source.len()];
                reference::decode(&whole, &bytes, &mut expected).unwrap();
                for backend in &backends {
                    let decoded = decode(&**backend, &whole, &bytes, random.below(64) as usize, None);
                    assert!(decoded == expected, "{} {dtype:?} {cascade:?}", backend.info().variant);
                }
            }
        }
    }
}

/// One block and one level: as many raw exponents as the variable section may have bytes, and one more.
#[test]
fn the_stored_rule_holds_at_its_very_limit() {
    let backends = backends();
    for dtype in Dtype::FLOATS {
        let cascade = Cascade::new(dtype, &[1, 2, 3]).unwrap();
        for (count, blocks) in [(16384, 1), (16384 + 100, 1), (16384 * 3, 3)] {
            let plan = EncodePlan::new(dtype, cascade.into(), count).unwrap();
            let limit = plan.variable_limit();
            for raw in [limit - 32, limit - 31, limit, limit + 1, 16384 * blocks] {
                let random = &mut Random(raw as u64);
                // The blocks before the last one take whole segments, so that only the last one decides.
                let exponents = (0..count).map(|i| if i < raw { 4 + (i % 7) as u8 } else { 2 });
                let source = common::with_exponents(dtype, random, exponents);
                let mut expected = vec![0; plan.target_len()];
                let outcome = reference::encode(&plan, &source, &mut expected).unwrap();
                let fits = EncodeOutcome::Coded { variable_len: raw.next_multiple_of(32) };
                assert_eq!(outcome, if raw <= limit { fits } else { EncodeOutcome::Stored }, "{dtype:?} {count} {raw}");
                let layout = plan.written(outcome).unwrap();
                for backend in &backends {
                    let (found, body) = encode(&**backend, &plan, &source, raw % 64, None);
                    assert_eq!(found, outcome, "{} {dtype:?} {count} {raw}", backend.info().variant);
                    let expected = &expected[layout.front_len()..layout.stream_len];
                    assert!(body == expected, "{} {dtype:?} {count} {raw}", backend.info().variant);
                }
            }
        }
    }
}
