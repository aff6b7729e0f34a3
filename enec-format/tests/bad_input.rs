//! Bad input: cuts, bit flips, random changes and absurd sizes give an error, never a panic, and never wrong elements.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Random, golden, goldens, repair, with_header};
use enec_format::{
    Coding, DecodePlan, Dtype, EncodePlan, FormatError, FormatErrorKind as Kind, Layout, Stream, TwoWindows,
    max_encoded_len, reference,
};

fn open_error(bytes: &[u8]) -> FormatError {
    Stream::open(bytes).expect_err("a bad stream was accepted")
}

#[test]
fn every_cut_is_told_as_a_cut() {
    for golden in goldens() {
        let len = golden.bytes.len();
        for cut in 0..len {
            let error = open_error(&golden.bytes[..cut]);
            let expected = if cut < 64 { 64 } else { len as u64 };
            let kind = Kind::Truncated { expected, found: cut as u64 };
            assert_eq!((error.kind(), error.offset()), (kind, cut as u64), "{} cut at {cut}", golden.name);
        }
    }
}

/// Of a file that is no stream, even a short one says so.
#[test]
fn short_and_foreign_is_told_as_foreign() {
    for bytes in [&b"P"[..], b"\x89PNG\r\n\x1a\n", &[0; 7], &[0; 100], &b"{\"a\":0}".repeat(30)] {
        let error = open_error(bytes);
        assert_eq!((error.kind(), error.offset()), (Kind::Magic, 0), "{bytes:?}");
    }
}

#[test]
fn nothing_may_follow_a_stream() {
    for golden in goldens() {
        for extra in [1, 63, 64, 4096] {
            let mut bytes = golden.bytes.clone();
            bytes.resize(golden.bytes.len() + extra, 0);
            let error = open_error(&bytes);
            let kind = Kind::Trailing { expected: golden.bytes.len() as u64, found: bytes.len() as u64 };
            assert_eq!((error.kind(), error.offset()), (kind, golden.bytes.len() as u64), "{}", golden.name);
        }
    }
}

#[test]
fn every_bit_flip_is_refused() {
    for name in [
        "bf16_seventeen_wide_lanes",
        "f16_seventeen_wide_lanes",
        "f32_no_wide_lane",
        "bf16_incompressible",
        "opaque_bytes",
    ] {
        let intact = golden(name);
        let mut by_structure = 0;
        for bit in 0..8 * intact.len() {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            match Stream::open(&bytes) {
                Err(_) => by_structure += 1,
                Ok(stream) => {
                    assert!(bit >= 8 * 64, "{name}: bit {bit} of the header was accepted");
                    let error = stream.check_payload().expect_err("a flipped bit passed the payload hash");
                    assert!(matches!(error.kind(), Kind::PayloadHash { .. }), "{name}: bit {bit}: {error}");
                }
            }
        }
        assert!(by_structure >= 8 * 64, "{name}: {by_structure}");
    }
}

/// The payload hash catches the flips above; here it does not look, so that the decoder and the content hash have to cope.
#[test]
fn flips_decode_to_something_that_the_content_hash_refuses() {
    for name in ["bf16_seventeen_wide_lanes", "f16_seventeen_wide_lanes"] {
        let intact = golden(name);
        for bit in (8 * 64..8 * intact.len()).step_by(7) {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(stream) = Stream::open(&bytes) {
                let decoded = reference::decode_stream(&stream).unwrap();
                let error = stream.check_content(&decoded).expect_err("a flipped bit passed the content hash");
                assert!(matches!(error.kind(), Kind::ContentHash { .. }), "{name}: bit {bit}: {error}");
            }
        }
    }
}

#[test]
fn random_changes_behind_a_repaired_checksum() {
    let mut random = Random(7);
    let (mut opened, mut hashes_agreed) = (0, 0);
    for golden in goldens().into_iter().filter(|golden| golden.bytes.len() < 10_000) {
        let original = reference::decode_stream(&Stream::open(&golden.bytes).unwrap()).unwrap();
        for _ in 0..150 {
            let mut bytes = golden.bytes.clone();
            for _ in 0..1 + random.below(4) {
                // Half of the changes go where the structure is.
                let end = if random.below(2) == 0 { bytes.len() } else { bytes.len().min(64 + 64 + 16) };
                let at = 8 + random.below(end - 8);
                bytes[at] = if random.below(2) == 0 { random.byte() } else { bytes[at] ^ 1 << random.below(8) };
            }
            repair(&mut bytes);
            let Ok(stream) = Stream::open(&bytes) else { continue };
            opened += 1;
            let decoded = reference::decode_stream(&stream).unwrap();
            assert_eq!(decoded.len() as u64, stream.header().decoded_len());
            let tiles = stream.layout().tiles;
            for tile in 0..tiles {
                let plan = DecodePlan::whole(&stream).with_tiles(tile..tile + 1, false).unwrap();
                let mut target = vec![0; plan.target_len()];
                reference::decode(&plan, stream.bytes(), &mut target).unwrap();
                assert_eq!(target, decoded[stream.layout().decoded_range(tile..tile + 1)]);
            }
            if stream.check_payload().is_ok() && stream.check_content(&decoded).is_ok() {
                // Such as another common base where no lane is common.
                assert!(decoded == original, "{}: wrong elements under right hashes", golden.name);
                hashes_agreed += 1;
            }
        }
    }
    assert!(opened > 500 && hashes_agreed < opened / 10, "{opened} opened, {hashes_agreed} with right hashes");
}

#[test]
fn absurd_counts_and_lengths() {
    let sizes = [u64::MAX, u64::MAX - 63, u64::MAX / 2, 1 << 63, (1 << 63) - 64, 1 << 62, 1 << 61, 1 << 48, 1 << 40];
    for name in ["bf16_blocks", "f16_special", "f32_special", "bf16_incompressible", "opaque_bytes"] {
        let intact = golden(name);
        let header = *Stream::open(&intact).unwrap().header();
        for size in sizes {
            let error = open_error(&with_header(&intact, 16, &size.to_le_bytes()));
            let expected = match size.checked_mul(header.dtype.element_bytes() as u64) {
                None => (Kind::Count { count: size }, 16),
                Some(_) => (Kind::StreamLength { stored: header.stream_len }, 24),
            };
            assert_eq!((error.kind(), error.offset()), expected, "{name}: count {size}");
            let error = open_error(&with_header(&intact, 24, &size.to_le_bytes()));
            assert_eq!(
                (error.kind(), error.offset()),
                (Kind::StreamLength { stored: size }, 24),
                "{name}: length {size}"
            );
            let error = open_error(&with_header(&intact, 32, &size.to_le_bytes()));
            match header.coding {
                Coding::Stored => assert!(matches!(error.kind(), Kind::Unused { codec: 0, .. }), "{name}: {error}"),
                _ => assert_eq!(
                    error.kind(),
                    Kind::StreamLength { stored: header.stream_len },
                    "{name}: variable {size}"
                ),
            }
        }
    }
}

/// A header that agrees with itself about a stream far beyond memory: only the bytes present disagree.
#[test]
fn consistent_but_absent() {
    for dtype in Dtype::FLOATS {
        for (coding, elements, variable_len) in [
            (Coding::Stored, 1 << 59, 0),
            (Coding::TwoWindows(TwoWindows::new(dtype, 10, 3).unwrap()), 1 << 59, 1 << 50),
            (Coding::TwoWindows(TwoWindows::new(dtype, 10, 0).unwrap()), 1 << 40, 0),
        ] {
            let layout = Layout::new(dtype, coding, elements, variable_len).unwrap();
            let bytes = layout.header(None).to_bytes();
            let kind = Kind::Truncated { expected: layout.stream_len as u64, found: 64 };
            assert_eq!(open_error(&bytes).kind(), kind);
            let parts = |_: &Layout| -> Result<(Vec<u8>, Vec<u8>), FormatError> { panic!("parts of an absent stream") };
            assert_eq!(Stream::open_parts(&bytes, 64, parts).unwrap_err().kind(), kind);
        }
    }
}

#[test]
fn plans_beyond_the_address_space_are_refused() {
    let windows = TwoWindows::new(Dtype::F32, 10, 0).unwrap();
    for elements in [usize::MAX, usize::MAX / 4, usize::MAX / 2, usize::MAX / 4 - 15] {
        for coding in [Coding::Stored, Coding::TwoWindows(windows)] {
            let error = EncodePlan::new(Dtype::F32, coding, elements).unwrap_err();
            assert_eq!(error.kind(), Kind::Count { count: elements as u64 });
        }
        let error = EncodePlan::window(Dtype::F32, windows, elements, 0).unwrap_err();
        assert_eq!(error.kind(), Kind::Count { count: elements as u64 });
    }
    assert!(max_encoded_len(usize::MAX - 126).is_err());
    assert_eq!(max_encoded_len(usize::MAX - 127).unwrap(), usize::MAX - 63);
}

/// Parameters are made for a dtype and can be given to another: no stream may come of that.
#[test]
fn plans_with_the_parameters_of_another_dtype_are_refused() {
    let (wide, high) = (TwoWindows::new(Dtype::Bf16, 3, 8).unwrap(), TwoWindows::new(Dtype::Bf16, 200, 3).unwrap());
    for (dtype, windows, kind) in [
        (Dtype::F16, wide, Kind::CommonWidth { found: 8, largest: 5 }),
        (Dtype::F16, high, Kind::CommonBase { found: 200, largest: 31 }),
        (Dtype::Opaque, high, Kind::OpaqueCoded),
    ] {
        let coding = Coding::TwoWindows(windows);
        assert_eq!(EncodePlan::new(dtype, coding, 4096).unwrap_err().kind(), kind);
        assert_eq!(EncodePlan::window(dtype, windows, 4096, 0).unwrap_err().kind(), kind);
        assert_eq!(reference::encode_stream(dtype, coding, &[0; 8192]).unwrap_err().kind(), kind);
    }
}

/// A stream in device memory is validated from its parts as it would be from its bytes.
#[test]
fn parts_are_validated_like_bytes() {
    let part =
        |bytes: &[u8], layout: &Layout| (bytes[layout.table.range()].to_vec(), bytes[layout.mask.range()].to_vec());
    for golden in goldens() {
        let (bytes, stream) = (&golden.bytes, Stream::open(&golden.bytes).unwrap());
        let opened = Stream::open_parts(&bytes[..64], bytes.len(), |layout| Ok::<_, FormatError>(part(bytes, layout)));
        assert_eq!(opened.unwrap(), (*stream.header(), stream.layout().clone()), "{}", golden.name);
    }
    let intact = golden("bf16_blocks");
    let layout = Stream::open(&intact).unwrap().layout().clone();
    for at in layout.table.range().chain(layout.mask.range()) {
        let mut bytes = intact.clone();
        bytes[at] ^= 0x10;
        let by_parts = Stream::open_parts(&bytes[..64], bytes.len(), |layout| Ok(part(&bytes, layout)));
        match Stream::open(&bytes).map(|_| ()) {
            // Padding lies in parts that are not downloaded.
            Err(error) if matches!(error.kind(), Kind::Padding { .. }) => {}
            by_bytes => assert_eq!(by_parts.map(|_| ()), by_bytes, "byte {at}"),
        }
    }
    let short = |table: usize, mask: usize| {
        Stream::open_parts(&intact[..64], intact.len(), |layout| {
            let (mut first, mut second) = part(&intact, layout);
            first.resize(table, 0);
            second.resize(mask, 0);
            Ok::<_, FormatError>((first, second))
        })
    };
    for (table, mask) in [(0, layout.mask.len), (layout.table.len, 0), (layout.table.len + 8, layout.mask.len)] {
        assert!(matches!(short(table, mask).unwrap_err().kind(), Kind::SourceLength { .. }), "{table}, {mask}");
    }
    let failing = |_: &Layout| -> Result<(Vec<u8>, Vec<u8>), FormatError> { Err(FormatError::new(Kind::Magic, 99)) };
    assert_eq!(Stream::open_parts(&intact[..64], intact.len(), failing).unwrap_err().offset(), 99);
}
