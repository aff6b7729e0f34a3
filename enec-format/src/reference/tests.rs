//! Tests of the reference codec against the sentences of the format, computed another way.

use super::lane::{low_bits, pack, read_words, unpack, write_words};
use super::value::{join, split};
use super::*;
use crate::geometry::{
    BLOCK_ELEMENTS, BLOCK_TILES, HEADER_BYTES, LANES, ROWS, SEGMENT_UNIT, TILE_ELEMENTS, TILE_MASK_BYTES,
};
use crate::{BlockEntry, TwoWindows, padded_lanes, wide_lanes};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }

    fn bytes(&mut self, len: usize) -> Vec<u8> {
        (0..len).map(|_| self.byte()).collect()
    }

    /// Elements whose exponents lie close together in most lanes.
    fn elements(&mut self, dtype: Dtype, count: usize) -> Vec<u8> {
        let mut bytes = self.bytes(count * dtype.element_bytes());
        for (index, word) in bytes.chunks_exact_mut(dtype.element_bytes()).enumerate() {
            let spread = if (index % LANES * 7 + index / TILE_ELEMENTS).is_multiple_of(11) { 31 } else { 3 };
            let mut parts = split(dtype, word);
            parts.exponent = dtype.exponent_mask() / 2 - (self.byte() & spread).min(dtype.exponent_mask() / 2);
            join(dtype, parts, word);
        }
        bytes
    }
}

fn windows(dtype: Dtype, width: u8) -> TwoWindows {
    TwoWindows::new(dtype, dtype.exponent_mask() / 2, width).unwrap()
}

fn forced(dtype: Dtype, windows: TwoWindows, elements: &[u8]) -> Vec<u8> {
    let plan = EncodePlan::window(dtype, windows, elements.len() / dtype.element_bytes(), 0).unwrap();
    encode_plan(&plan, elements).unwrap()
}

#[test]
fn every_word_splits_by_its_fields() {
    for word in 0..=u16::MAX {
        let bytes = word.to_le_bytes();
        let (bf16, f16) = (split(Dtype::Bf16, &bytes), split(Dtype::F16, &bytes));
        let sign = word >> 15;
        assert_eq!(u16::from(bf16.exponent), word >> 7 & 0xFF);
        assert_eq!(u16::from(bf16.byte), (word & 0x7F) << 1 | sign);
        assert_eq!(u16::from(f16.exponent), word >> 10 & 0x1F);
        let rest = (word & 0x3FF) << 1 | sign;
        assert_eq!((u16::from(f16.byte), f16.extra), (rest >> 3, rest & 7));
        let float = [0x34, 0x12, bytes[0], bytes[1]];
        let f32 = split(Dtype::F32, &float);
        assert_eq!((f32.exponent, f32.byte, f32.extra), (bf16.exponent, bf16.byte, 0x1234));
        for (dtype, parts) in [(Dtype::Bf16, bf16), (Dtype::F16, f16), (Dtype::F32, f32)] {
            let mut joined = [0; 4];
            join(dtype, parts, &mut joined[..dtype.element_bytes()]);
            let expected = if dtype == Dtype::F32 { &float[..] } else { &bytes };
            assert_eq!(&joined[..dtype.element_bytes()], expected);
        }
    }
}

#[test]
fn lanes_are_strings_of_bits() {
    let mut random = Random(1);
    for width in 0..=8 {
        let values: [u8; ROWS] = core::array::from_fn(|_| random.byte() & low_bits(width));
        let bits = pack(values, width);
        assert_eq!(unpack(bits, width), values);
        let mut rows = vec![0xFF; 2 * 48 * usize::from(width)];
        write_words(&mut rows, 48, 5, width, bits);
        assert_eq!(read_words(&rows, 48, 5, width), bits);
        for (row, value) in values.into_iter().enumerate() {
            for bit in 0..usize::from(width) {
                let at = row * usize::from(width) + bit;
                let byte = rows[2 * (at / 16 * 48 + 5) + at % 16 / 8];
                assert_eq!(byte >> (at % 8) & 1, value >> bit & 1, "width {width}, row {row}, bit {bit}");
            }
        }
        let others = rows.iter().enumerate().filter(|(at, _)| at / 2 % 48 != 5);
        assert!(others.into_iter().all(|(_, byte)| *byte == 0xFF));
        assert_eq!(read_words(&[], 48, 5, width), 0, "words beyond the end count as zero");
    }
}

/// Each rule of the canonical form, computed from the elements.
#[test]
fn streams_are_canonical() {
    let mut random = Random(2);
    for dtype in Dtype::FLOATS {
        for width in [0, 1, 2, 3, dtype.exponent_bits()] {
            let (windows, elements) =
                (windows(dtype, width), random.elements(dtype, BLOCK_ELEMENTS + 2 * TILE_ELEMENTS + 5));
            let bytes = forced(dtype, windows, &elements);
            let stream = Stream::open(&bytes).unwrap();
            let exponents: Vec<u8> = exponents(dtype, &elements).collect();
            let mut end = 0;
            for (index, block) in stream.blocks().enumerate() {
                let mut wide: Vec<u8> = Vec::new();
                for tile in stream.layout().block(index).tiles {
                    for lane in 0..LANES {
                        let lane_exponents = (0..ROWS).map(|row| exponents[tile * TILE_ELEMENTS + row * LANES + lane]);
                        let lowest = i32::from(windows.common_base()) - (1 << width) + 1;
                        let common =
                            lane_exponents.clone().all(|e| e <= windows.common_base() && i32::from(e) >= lowest);
                        let bit = block.mask[tile % BLOCK_TILES * TILE_MASK_BYTES + lane / 8] >> (lane % 8) & 1;
                        assert_eq!(bit == 0, common, "tile {tile}, lane {lane}");
                        if !common {
                            wide.extend(lane_exponents);
                        }
                    }
                }
                let lanes = wide.len() / ROWS;
                let (base, smallest) =
                    (wide.iter().max().copied().unwrap_or(0), wide.iter().min().copied().unwrap_or(0));
                let bits = (0..8).find(|&bits| (base - smallest) >> bits == 0).unwrap_or(8);
                let wide_width = width.max(bits);
                end += u64::from(wide_width - width) * lanes.div_ceil(16) as u64;
                assert_eq!(block.entry, BlockEntry { wide_base: base, wide_width, end });
                assert_eq!(lanes, wide_lanes(block.mask));
                assert_eq!(block.segment.len(), usize::from(wide_width - width) * 2 * padded_lanes(lanes));
            }
            assert_eq!(decode_stream(&stream).unwrap(), elements);
        }
    }
}

/// Ranges see the same elements, whatever their tiles; a target that held something else is overwritten.
#[test]
fn tiles_decode_alone() {
    let mut random = Random(3);
    for dtype in Dtype::FLOATS {
        let elements = random.elements(dtype, 11 * TILE_ELEMENTS + 3);
        let bytes = forced(dtype, windows(dtype, 2), &elements);
        let stream = Stream::open(&bytes).unwrap();
        for (tiles, tail) in
            [(0..1, false), (7..8, false), (8..9, false), (5..10, false), (10..11, true), (11..11, true), (4..4, false)]
        {
            let plan = DecodePlan::whole(&stream).with_tiles(tiles.clone(), tail).unwrap();
            let mut target = vec![0xEE; plan.target_len() + 10];
            decode(&plan, &bytes, &mut target).unwrap();
            let end = if tail { elements.len() } else { tiles.end * dtype.tile_bytes() };
            assert_eq!(target[..plan.target_len()], elements[tiles.start * dtype.tile_bytes()..end]);
            assert_eq!(target[plan.target_len()..], [0xEE; 10]);
        }
        for (tiles, tail) in [(0..12, false), (12..12, false), (0..10, true)] {
            assert!(DecodePlan::whole(&stream).with_tiles(tiles, tail).is_err());
        }
        let reversed = core::ops::Range { start: 3, end: 2 };
        assert!(DecodePlan::whole(&stream).with_tiles(reversed, false).is_err());
    }
}

/// Windows of whole blocks, put together, are the tensor's stream.
#[test]
fn windows_add_up_to_the_tensor() {
    let mut random = Random(4);
    for dtype in Dtype::FLOATS {
        let (count, windows) = (2 * BLOCK_ELEMENTS + TILE_ELEMENTS + 9, windows(dtype, 2));
        let elements = random.elements(dtype, count);
        let whole = forced(dtype, windows, &elements);
        let stream = Stream::open(&whole).unwrap();
        let (split, mut first_segment) = (BLOCK_ELEMENTS * dtype.element_bytes(), 0);
        for (index, part) in [&elements[..split], &elements[split..]].into_iter().enumerate() {
            let plan = EncodePlan::window(dtype, windows, part.len() / dtype.element_bytes(), first_segment).unwrap();
            let mut target = vec![0xEE; plan.target_len()];
            let outcome = encode(&plan, part, &mut target).unwrap();
            let layout = plan.written(outcome).unwrap();
            let blocks = if index == 0 { 0..1 } else { 1..3 };
            for (own, block) in blocks.enumerate() {
                let (ranges, expected) = (layout.block(own), stream.block(block));
                assert_eq!(&target[ranges.entry], expected.entry_bytes, "{dtype:?}, block {block}");
                assert_eq!(&target[ranges.mask], expected.mask);
                assert_eq!(&target[ranges.byte_plane], expected.byte_plane);
                assert_eq!(&target[ranges.extra_plane], expected.extra_plane);
                assert_eq!(&target[ranges.low_plane], expected.low_plane);
            }
            let start = usize::try_from(first_segment).unwrap() * SEGMENT_UNIT;
            let section = &whole[stream.layout().variable.range()][start..start + layout.variable.len];
            assert_eq!(&target[layout.variable.range()], section);
            first_segment += (layout.variable.len / SEGMENT_UNIT) as u64;
        }
        assert_eq!(first_segment, stream.block(2).entry.end);
    }
}

/// An encoder writes nothing beyond the plan, and zeroes the header for whoever writes it.
#[test]
fn encoding_overwrites_the_target_and_nothing_else() {
    let mut random = Random(5);
    for (dtype, count, width) in
        [(Dtype::Bf16, TILE_ELEMENTS + 3, 3), (Dtype::F16, 3, 2), (Dtype::F32, TILE_ELEMENTS, 8)]
    {
        let elements = random.elements(dtype, count);
        let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows(dtype, width)), count).unwrap();
        let mut target = vec![0xEE; plan.target_len() + 10];
        let outcome = encode(&plan, &elements, &mut target).unwrap();
        assert_eq!(target[..HEADER_BYTES], [0; HEADER_BYTES]);
        assert_eq!(target[plan.target_len()..], [0xEE; 10]);
        let sealed = encode_plan(&plan, &elements).unwrap();
        assert_eq!(target[HEADER_BYTES..plan.written(outcome).unwrap().stream_len], sealed[HEADER_BYTES..]);
    }
}

#[test]
fn stored_unless_strictly_shorter() {
    // 8 + 7 + 1/16 bits per element leave 240 bytes a tile; one unit of 32 bytes holds 16 wide lanes of one high bit.
    let (dtype, windows) = (Dtype::Bf16, TwoWindows::new(Dtype::Bf16, 127, 7).unwrap());
    let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows), BLOCK_ELEMENTS).unwrap();
    let most = plan.variable_limit() / SEGMENT_UNIT * 16;
    for (wide, stored) in [(most - 1, false), (most, false), (most + 1, true)] {
        let mut elements = vec![0; 2 * BLOCK_ELEMENTS];
        for lane in 0..wide {
            let element = lane / LANES * TILE_ELEMENTS + lane % LANES;
            elements[2 * element..2 * element + 2].copy_from_slice(&0x7F80_u16.to_le_bytes());
        }
        let bytes = encode_plan(&plan, &elements).unwrap();
        let stream = Stream::open(&bytes).unwrap();
        assert_eq!(stream.coding() == Coding::Stored, stored, "{wide} of at most {most} wide lanes");
        let stored_len = crate::max_encoded_len(elements.len()).unwrap();
        assert!(if stored { bytes.len() == stored_len } else { bytes.len() < stored_len });
        assert_eq!(decode_stream(&stream).unwrap(), elements);
    }
}

/// Subtractions that wrap give `(base - q) mod 2^E`.
#[test]
fn hostile_bases_wrap() {
    for dtype in Dtype::FLOATS {
        let mut elements = vec![0; dtype.tile_bytes()];
        // Every lane is wide with exponents 20 and 0: q is 0 and 20.
        for (index, word) in elements.chunks_exact_mut(dtype.element_bytes()).enumerate() {
            let mut parts = split(dtype, word);
            parts.exponent = if index % 3 == 0 { 20 } else { 0 };
            join(dtype, parts, word);
        }
        let windows = TwoWindows::new(dtype, 0, 0).unwrap();
        let mut bytes = forced(dtype, windows, &elements);
        let entry = Stream::open(&bytes).unwrap().layout().table.offset;
        assert_eq!(bytes[entry], 20);
        bytes[entry] = 3;
        let decoded = decode_stream(&Stream::open(&bytes).unwrap()).unwrap();
        for (index, exponent) in exponents(dtype, &decoded).enumerate() {
            let q = if index % 3 == 0 { 0 } else { 20_u8 };
            assert_eq!(exponent, 3_u8.wrapping_sub(q) & dtype.exponent_mask());
        }
    }
}

#[test]
fn wrong_buffers_are_refused() {
    let plan = EncodePlan::new(Dtype::Bf16, Coding::Stored, 10).unwrap();
    assert!(matches!(
        encode(&plan, &[0; 19], &mut [0; 128]).unwrap_err().kind(),
        Kind::SourceLength { expected: 20, found: 19 }
    ));
    assert!(matches!(
        encode(&plan, &[0; 20], &mut [0; 127]).unwrap_err().kind(),
        Kind::TargetLength { expected: 128, found: 127 }
    ));
    let bytes = encode_plan(&plan, &[7; 20]).unwrap();
    let plan = DecodePlan::whole(&Stream::open(&bytes).unwrap());
    assert!(matches!(decode(&plan, &bytes[1..], &mut [0; 20]).unwrap_err().kind(), Kind::SourceLength { .. }));
    assert!(matches!(
        decode(&plan, &bytes, &mut [0; 19]).unwrap_err().kind(),
        Kind::TargetLength { expected: 20, found: 19 }
    ));
    assert!(matches!(
        encode_stream(Dtype::F32, Coding::Stored, &[0; 6]).unwrap_err().kind(),
        Kind::PartialElement { .. }
    ));
}
