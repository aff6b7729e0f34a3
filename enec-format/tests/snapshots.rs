//! Snapshots: headers and layouts of the golden streams, and the text of every kind of error.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use std::fmt::Write;

use common::{golden, goldens, repair, with_header};
use enec_format::{
    Cascade, Coding, DecodePlan, Dtype, EncodePlan, FormatError, FormatErrorKind as Kind, Header, Layout, Levels,
    Stream, TwoWindows, reference,
};

#[test]
fn golden_headers() {
    for dtype in [Dtype::Opaque, Dtype::Bf16, Dtype::F16, Dtype::F32] {
        let mut dump = String::new();
        for golden in goldens() {
            let stream = Stream::open(&golden.bytes).unwrap();
            if stream.dtype() == dtype {
                write!(dump, "{}\n{:#?}\n", golden.name, stream.header()).unwrap();
                for (name, section) in stream.layout().sections().into_iter().filter(|(_, section)| section.len > 0) {
                    writeln!(dump, "    {name}: {:?}, padding to {}", section.range(), section.padding().end).unwrap();
                }
                for (index, block) in stream.blocks().enumerate() {
                    writeln!(dump, "    block {index}: {:?}", block.entry).unwrap();
                }
                dump.push('\n');
            }
        }
        insta::assert_snapshot!(format!("headers_{}", dtype.name().to_lowercase()), dump);
    }
}

/// A sealed BF16 stream of one tile with 17 wide lanes and without a tail: b = 127, m = 2, B = 130, n = 4.
fn bf16() -> Vec<u8> {
    golden("bf16_seventeen_wide_lanes")
}

fn f16() -> Vec<u8> {
    golden("f16_seventeen_wide_lanes")
}

fn layout(bytes: &[u8]) -> Layout {
    Stream::open(bytes).unwrap().layout().clone()
}

fn opened(bytes: &[u8]) -> FormatError {
    Stream::open(bytes).map(|_| ()).expect_err("a bad stream was accepted")
}

/// A copy with some bytes behind the header replaced.
fn patched(bytes: &[u8], at: usize, patch: &[u8]) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes[at..at + patch.len()].copy_from_slice(patch);
    bytes
}

/// Faults of the header's fields.
fn header_faults() -> Vec<FormatError> {
    let (bf16, f16, stored) = (bf16(), f16(), golden("opaque_bytes"));
    let unsealed = {
        let header = Header { content_hash: None, payload_hash: None, ..Header::parse(&bf16).unwrap() };
        patched(&bf16, 0, &header.to_bytes())
    };
    vec![
        opened(b"PK\x03\x04"),
        opened(&bf16[..63]),
        opened(&bf16[..bf16.len() - 64]),
        opened(&[&bf16[..], &[0; 64]].concat()),
        opened(&patched(&bf16, 56, &[0])),
        opened(&with_header(&bf16, 8, &[0, 0])),
        opened(&with_header(&bf16, 8, &[2, 0])),
        opened(&with_header(&bf16, 10, &[9])),
        opened(&with_header(&bf16, 11, &[4])),
        opened(&with_header(&bf16, 14, &[7, 1])),
        opened(&with_header(&unsealed, 40, &[1])),
        opened(&with_header(&stored, 12, &[5])),
        opened(&with_header(&bf16, 11, &[0])),
        opened(&with_header(&f16, 12, &[44])),
        opened(&with_header(&bf16, 13, &[9])),
        opened(&with_header(&bf16, 16, &(1_u64 << 63).to_le_bytes())),
        opened(&with_header(&bf16, 24, &128_u64.to_le_bytes())),
        Stream::open(&unsealed).unwrap().check_payload().unwrap_err(),
        Stream::open(&unsealed).unwrap().check_content(&[]).unwrap_err(),
    ]
}

/// Faults of lengths that agree with each other.
fn length_faults() -> Vec<FormatError> {
    let windows = Coding::TwoWindows(TwoWindows::new(Dtype::Bf16, 127, 2).unwrap());
    let consistent = |elements: u64, variable_len: u64| {
        let layout = Layout::new(Dtype::Bf16, windows, elements, variable_len).unwrap();
        let mut bytes = vec![0; layout.stream_len];
        bytes[..64].copy_from_slice(&layout.header(None).to_bytes());
        opened(&bytes)
    };
    vec![consistent(2047, 0), consistent(2048, 48)]
}

/// Faults of sections, table and segments.
fn section_faults() -> Vec<FormatError> {
    let (bf16, f16, no_wide_lane, blocks) = (bf16(), f16(), golden("bf16_no_wide_lane"), golden("bf16_blocks"));
    let (table, blocks_table) = (layout(&bf16).table.offset, layout(&blocks).table.offset);
    let row = layout(&bf16).variable.offset + 2 * 17;
    // A variable section that is 32 bytes longer than the table says.
    let unused_end = {
        let stream = Stream::open(&bf16).unwrap();
        let longer = Layout::new(Dtype::Bf16, stream.coding(), 2048, stream.layout().variable.len as u64 + 32).unwrap();
        let mut bytes = bf16.clone();
        bytes.resize(longer.stream_len, 0);
        patched(&bytes, 0, &longer.header(None).to_bytes())
    };
    vec![
        opened(&patched(&bf16, layout(&bf16).table.padding().start, &[1])),
        opened(&patched(&no_wide_lane, no_wide_lane.len() - 1, &[1])),
        opened(&patched(&bf16, row, &[1])),
        opened(&patched(&f16, layout(&f16).table.offset, &[32])),
        opened(&patched(&bf16, table + 1, &[1])),
        opened(&patched(&no_wide_lane, layout(&no_wide_lane).table.offset, &[1])),
        opened(&patched(&no_wide_lane, layout(&no_wide_lane).table.offset + 1, &[3])),
        opened(&patched(&blocks, blocks_table + 8 + 2, &[0; 6])),
        opened(&patched(&bf16, table + 2, &[0xFF; 6])),
        opened(&patched(&bf16, table + 1, &[5])),
        opened(&unused_end),
    ]
}

/// Faults of codec 2's symbols, table and segments.
fn cascade_faults() -> Vec<FormatError> {
    let (bf16, f16) = (golden("bf16_cascade_two_levels"), golden("f16_cascade_one_level"));
    let places = layout(&bf16);
    let stream = Stream::open(&bf16).unwrap();
    let block = stream.block(0);
    let levels = Levels::count(2, block.low_plane, block.segment);
    let (table, segment) = (places.table.offset, places.variable.offset);
    assert!(!levels.codes(2).is_multiple_of(4), "a byte with codes and padding");
    vec![
        Cascade::new(Dtype::Bf16, &[1, 2]).unwrap_err(),
        opened(&with_header(&bf16, 12, &[0])),
        opened(&with_header(&bf16, 12, &[6])),
        opened(&with_header(&bf16, 13, &[1])),
        opened(&patched(&bf16, 65, &[bf16[64]])),
        opened(&patched(&f16, 66, &[32])),
        opened(&patched(&bf16, 64 + 6, &[1])),
        opened(&patched(&bf16, table, &[7])),
        opened(&patched(&bf16, table + 1, &[7])),
        opened(&patched(&bf16, table + 2, &[0xFF; 6])),
        opened(&patched(&bf16, table + 4, &[1, 0, 0, 0])),
        opened(&patched(&f16, layout(&f16).low_plane.offset, &[0xFF; 64])),
        opened(&patched(&bf16, segment + levels.codes(2) / 4, &[0xC0])),
        opened(&patched(&f16, layout(&f16).variable.offset, &[32])),
        opened(&patched(&bf16, segment + levels.raw().end, &[1])),
    ]
}

/// Faults of hashes and of requests.
fn request_faults() -> Vec<FormatError> {
    let bf16 = bf16();
    let damaged = patched(&bf16, layout(&bf16).byte_plane.offset, &[0xFF]);
    let stream = Stream::open(&bf16).unwrap();
    let elements = reference::decode_stream(&stream).unwrap();
    let (plan, coding) = (DecodePlan::whole(&stream), stream.coding());
    let encode_plan = EncodePlan::new(Dtype::Bf16, coding, 2048).unwrap();
    vec![
        Stream::open(&damaged).unwrap().check_payload().unwrap_err(),
        stream.check_content(&elements[1..]).unwrap_err(),
        reference::decode(&plan, &bf16[1..], &mut vec![0; 4096]).unwrap_err(),
        reference::decode(&plan, &bf16, &mut [0; 100]).unwrap_err(),
        reference::encode(&encode_plan, &elements[1..], &mut vec![0; 5000]).unwrap_err(),
        reference::encode(&encode_plan, &elements, &mut [0; 100]).unwrap_err(),
        reference::encode_stream(Dtype::Bf16, coding, &elements[1..]).unwrap_err(),
        plan.clone().with_tiles(0..2, false).unwrap_err(),
    ]
}

#[test]
fn error_texts() {
    let faults = [header_faults(), length_faults(), section_faults(), cascade_faults(), request_faults()].concat();
    let texts: Vec<String> = faults.iter().map(|fault| format!("{:?}\n    {fault}", fault.kind())).collect();
    insta::assert_snapshot!("error_texts", texts.join("\n"));

    let name = |fault: &FormatError| format!("{:?}", fault.kind()).split(' ').next().unwrap().to_owned();
    let provoked: std::collections::BTreeSet<String> = faults.iter().map(name).collect();
    let kinds = include_str!("../src/error.rs").matches("#[error(").count();
    assert_eq!(provoked.len(), kinds, "kinds provoked here, and kinds of the enum: {provoked:?}");
    for text in faults.iter().map(ToString::to_string) {
        assert!(!text.ends_with('.') && !text.starts_with(char::is_uppercase), "{text}");
    }
}

/// What a newer version wrote is told apart from damage.
#[test]
fn newer_is_not_damaged() {
    let newer: Vec<Kind> = header_faults().iter().filter(|fault| fault.is_newer()).map(FormatError::kind).collect();
    let expected = [
        Kind::Version { version: 2 },
        Kind::Codec { codec: 9 },
        Kind::Dtype { dtype: 4 },
        Kind::Flags { flags: 0x107 },
    ];
    assert_eq!(newer, expected);
    let mut bytes = bf16();
    bytes[8] = 2;
    assert!(!opened(&bytes).is_newer(), "a header that fails its checksum says nothing about versions");
    repair(&mut bytes);
    assert!(opened(&bytes).is_newer());
}
