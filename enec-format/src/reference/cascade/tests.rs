//! Tests of codec 2 against the sentences of the format, computed another way.

use alloc::vec;
use alloc::vec::Vec;

use super::super::value::{join, split};
use super::super::{decode, decode_stream, encode, encode_plan, exponents};
use super::*;
use crate::geometry::{BLOCK_ELEMENTS, HEADER_BYTES};
use crate::{Coding, DecodePlan, Dtype, EncodeOutcome, Stream};

struct Random(u64);

impl Random {
    fn byte(&mut self) -> u8 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 ^ self.0 >> 29).to_be_bytes()[0]
    }

    /// Elements of `top` and less, each half as frequent as the one above it; one in 64 may have any exponent.
    fn elements(&mut self, dtype: Dtype, count: usize, top: u8) -> Vec<u8> {
        let mut bytes: Vec<u8> = (0..count * dtype.element_bytes()).map(|_| self.byte()).collect();
        for word in bytes.chunks_exact_mut(dtype.element_bytes()) {
            let mut parts = split(dtype, word);
            let below = (u16::from_le_bytes([self.byte(), self.byte()]) | 1 << 15).trailing_zeros().to_le_bytes()[0];
            let anything = self.byte() & dtype.exponent_mask();
            parts.exponent = if self.byte() < 4 { anything } else { top.saturating_sub(below) };
            join(dtype, parts, word);
        }
        bytes
    }
}

/// Symbols that descend from `top`.
fn cascade(dtype: Dtype, levels: u8, top: u8) -> Cascade {
    let symbols: Vec<u8> = (0..3 * levels).map(|rank| top - rank).collect();
    Cascade::new(dtype, &symbols).unwrap()
}

fn forced(dtype: Dtype, cascade: Cascade, elements: &[u8]) -> Vec<u8> {
    let plan = EncodePlan::window(dtype, cascade, elements.len() / dtype.element_bytes(), 0).unwrap();
    encode_plan(&plan, elements).unwrap()
}

/// Codes, four a byte, padded to a multiple of 32 bits.
fn packed(codes: &[u8]) -> Vec<u8> {
    let mut bytes = vec![0; codes.len().div_ceil(16) * 4];
    for (index, code) in codes.iter().enumerate() {
        bytes[index / 4] |= code << (2 * (index % 4));
    }
    bytes
}

#[test]
fn streams_are_canonical() {
    let mut random = Random(1);
    for dtype in Dtype::FLOATS {
        for levels in 1..=5 {
            let count = BLOCK_ELEMENTS + 2 * TILE_ELEMENTS + 5;
            let (cascade, elements) = (cascade(dtype, levels, 20), random.elements(dtype, count, 20));
            let bytes = forced(dtype, cascade, &elements);
            let stream = Stream::open(&bytes).unwrap();
            assert_eq!(stream.coding(), Coding::Cascade(cascade));
            assert_eq!(stream.symbol_section()[..3 * usize::from(levels)], *cascade.symbols());
            let exponents: Vec<u8> = exponents(dtype, &elements).collect();
            let mut end = 0;
            for (index, block) in stream.blocks().enumerate() {
                // Exponents in the order of the codes: tile, lane, row.
                let mut reached = Vec::new();
                for tile in stream.layout().block(index).tiles {
                    for lane in 0..LANES {
                        reached.extend((0..ROWS).map(|row| exponents[tile * TILE_ELEMENTS + row * LANES + lane]));
                    }
                }
                let mut segment = Vec::new();
                for (level, symbols) in cascade.symbols().chunks(3).enumerate() {
                    let code = |exponent: &u8| symbols.iter().position(|symbol| symbol == exponent).unwrap_or(3);
                    let codes: Vec<u8> = reached.iter().map(|exponent| code(exponent).to_le_bytes()[0]).collect();
                    if level == 0 {
                        for (lane, codes) in codes.chunks(ROWS).enumerate() {
                            let plane = &block.low_plane[lane / LANES * 512..][..512];
                            let at = |word: usize| 2 * (word * LANES + lane % LANES);
                            let words = [&plane[at(0)..at(0) + 2], &plane[at(1)..at(1) + 2]].concat();
                            assert_eq!(words, packed(codes), "lane {lane}");
                        }
                    } else {
                        segment.extend(packed(&codes));
                    }
                    reached.retain(|exponent| !symbols.contains(exponent));
                }
                segment.extend(&reached);
                segment.resize(segment.len().next_multiple_of(32), 0);
                assert_eq!(block.segment, segment, "{dtype:?}, {levels} levels, block {index}");
                end += (segment.len() / 32) as u64;
                assert_eq!(block.entry, BlockEntry { wide_base: 0, wide_width: 0, end });
                assert!(block.mask.is_empty());
            }
            assert_eq!(decode_stream(&stream).unwrap(), elements);
        }
    }
}

#[test]
fn tiles_decode_alone() {
    let mut random = Random(2);
    for dtype in Dtype::FLOATS {
        let elements = random.elements(dtype, 11 * TILE_ELEMENTS + 3, 18);
        let bytes = forced(dtype, cascade(dtype, 3, 18), &elements);
        let stream = Stream::open(&bytes).unwrap();
        for (tiles, tail) in
            [(0..1, false), (7..8, false), (8..9, false), (5..10, false), (10..11, true), (11..11, true)]
        {
            let plan = DecodePlan::whole(&stream).with_tiles(tiles.clone(), tail).unwrap();
            let mut target = vec![0xEE; plan.target_len() + 10];
            decode(&plan, &bytes, &mut target).unwrap();
            let end = if tail { elements.len() } else { tiles.end * dtype.tile_bytes() };
            assert_eq!(target[..plan.target_len()], elements[tiles.start * dtype.tile_bytes()..end]);
            assert_eq!(target[plan.target_len()..], [0xEE; 10]);
        }
    }
}

#[test]
fn windows_add_up_to_the_tensor() {
    let mut random = Random(3);
    for dtype in Dtype::FLOATS {
        let (count, cascade) = (2 * BLOCK_ELEMENTS + TILE_ELEMENTS + 9, cascade(dtype, 2, 14));
        let elements = random.elements(dtype, count, 14);
        let whole = forced(dtype, cascade, &elements);
        let stream = Stream::open(&whole).unwrap();
        let (split, mut first_segment) = (BLOCK_ELEMENTS * dtype.element_bytes(), 0);
        for (part, blocks) in [(&elements[..split], 0..1), (&elements[split..], 1..3)] {
            let plan = EncodePlan::window(dtype, cascade, part.len() / dtype.element_bytes(), first_segment).unwrap();
            let mut target = vec![0xEE; plan.target_len()];
            let outcome = encode(&plan, part, &mut target).unwrap();
            let layout = plan.written(outcome).unwrap();
            for (own, block) in blocks.enumerate() {
                let (ranges, expected) = (layout.block(own), stream.block(block));
                assert_eq!(&target[ranges.entry], expected.entry_bytes, "{dtype:?}, block {block}");
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

/// The encoder leaves the header and the symbols to whoever made the plan, and stores what would not shrink.
#[test]
fn encoding_overwrites_the_target_and_nothing_else() {
    let mut random = Random(4);
    let dtype = Dtype::Bf16;
    for (cascade, stored) in [(cascade(dtype, 2, 20), false), (cascade(dtype, 1, 200), true)] {
        let elements = random.elements(dtype, TILE_ELEMENTS + 3, 20);
        let plan = EncodePlan::new(dtype, cascade.into(), TILE_ELEMENTS + 3).unwrap();
        let mut target = vec![0xEE; plan.target_len() + 10];
        let outcome = encode(&plan, &elements, &mut target).unwrap();
        assert_eq!(outcome == EncodeOutcome::Stored, stored);
        let layout = plan.written(outcome).unwrap();
        let front = if stored { HEADER_BYTES } else { 2 * HEADER_BYTES };
        assert_eq!(layout.front_len(), front);
        assert!(target[..front].iter().all(|&byte| byte == 0));
        assert_eq!(target[plan.target_len()..], [0xEE; 10]);
        let sealed = encode_plan(&plan, &elements).unwrap();
        assert_eq!(target[front..layout.stream_len], sealed[front..]);
        assert_eq!(decode_stream(&Stream::open(&sealed).unwrap()).unwrap(), elements);
    }
}

/// A file under a memory map can be rewritten after it was validated: wrong elements, and nothing worse.
#[test]
fn changed_bytes_lead_to_no_stray_read() {
    let mut random = Random(5);
    for dtype in Dtype::FLOATS {
        let elements = random.elements(dtype, BLOCK_ELEMENTS + TILE_ELEMENTS, 16);
        let bytes = forced(dtype, cascade(dtype, 4, 16), &elements);
        let stream = Stream::open(&bytes).unwrap();
        let (plan, layout) = (DecodePlan::whole(&stream), stream.layout());
        for section in [layout.table, layout.low_plane, layout.variable] {
            for byte in [0x00, 0xFF, 0x3F, 0x80] {
                let mut changed = bytes.clone();
                changed[section.range()].fill(byte);
                let mut target = vec![0; plan.target_len()];
                decode(&plan, &changed, &mut target).unwrap();
                assert!(exponents(dtype, &target).all(|exponent| exponent <= dtype.exponent_mask()));
            }
        }
    }
}
