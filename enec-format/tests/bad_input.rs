//! Bad input: cuts, bit flips, random changes and absurd sizes give an error, never a panic, and never wrong elements.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

mod common;

use common::{Random, golden, goldens, repair, with_header};
use enec_format::{
    Cascade, Coding, DecodePlan, Dtype, EncodePlan, FormatError, FormatErrorKind as Kind, Header, Layout, Section,
    Stream, TwoWindows, max_encoded_len, reference,
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
        "bf16_cascade_two_levels",
        "f16_cascade_five_levels",
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
    for name in
        ["bf16_seventeen_wide_lanes", "f16_seventeen_wide_lanes", "bf16_cascade_five_levels", "f16_cascade_one_level"]
    {
        let intact = golden(name);
        let original = reference::decode_stream(&Stream::open(&intact).unwrap()).unwrap();
        for bit in (8 * 64..8 * intact.len()).step_by(7) {
            let mut bytes = intact.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            if let Ok(stream) = Stream::open(&bytes) {
                let decoded = reference::decode_stream(&stream).unwrap();
                if decoded == original {
                    // Only a symbol that no element has changes nothing.
                    assert!(stream.layout().symbols.range().contains(&(bit / 8)), "{name}: bit {bit}");
                    continue;
                }
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
    for name in
        ["bf16_blocks", "f16_special", "f32_special", "bf16_cascade_blocks", "bf16_incompressible", "opaque_bytes"]
    {
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
            (Coding::Cascade(Cascade::new(dtype, &[3, 2, 1]).unwrap()), 1 << 59, 1 << 50),
        ] {
            let layout = Layout::new(dtype, coding, elements, variable_len).unwrap();
            let mut bytes = vec![0; layout.front_len()];
            layout.header(None).write(&mut bytes);
            let kind = Kind::Truncated { expected: layout.stream_len as u64, found: bytes.len() as u64 };
            assert_eq!(open_error(&bytes).kind(), kind);
            let part = |_: Section| -> Result<Vec<u8>, FormatError> { panic!("parts of an absent stream") };
            assert_eq!(Stream::open_parts(&bytes, bytes.len(), part).unwrap_err().kind(), kind);
        }
    }
}

#[test]
fn plans_beyond_the_address_space_are_refused() {
    let windows = Coding::from(TwoWindows::new(Dtype::F32, 10, 0).unwrap());
    let cascade = Coding::from(Cascade::new(Dtype::F32, &[3, 2, 1]).unwrap());
    for elements in [usize::MAX, usize::MAX / 4, usize::MAX / 2, usize::MAX / 4 - 15] {
        for coding in [Coding::Stored, windows, cascade] {
            let error = EncodePlan::new(Dtype::F32, coding, elements).unwrap_err();
            assert_eq!(error.kind(), Kind::Count { count: elements as u64 });
            let error = EncodePlan::window(Dtype::F32, coding, elements, 0).unwrap_err();
            assert_eq!(error.kind(), Kind::Count { count: elements as u64 });
        }
    }
    assert!(max_encoded_len(usize::MAX - 126).is_err());
    assert_eq!(max_encoded_len(usize::MAX - 127).unwrap(), usize::MAX - 63);
}

/// Parameters are made for a dtype and can be given to another: no stream may come of that.
#[test]
fn plans_with_the_parameters_of_another_dtype_are_refused() {
    let (wide, high) = (TwoWindows::new(Dtype::Bf16, 3, 8).unwrap(), TwoWindows::new(Dtype::Bf16, 200, 3).unwrap());
    let symbols = Cascade::new(Dtype::Bf16, &[3, 32, 1]).unwrap();
    for (dtype, coding, kind) in [
        (Dtype::F16, Coding::from(wide), Kind::CommonWidth { found: 8, largest: 5 }),
        (Dtype::F16, Coding::from(high), Kind::CommonBase { found: 200, largest: 31 }),
        (Dtype::F16, Coding::from(symbols), Kind::SymbolRange { found: 32, largest: 31 }),
        (Dtype::Opaque, Coding::from(high), Kind::OpaqueCoded),
        (Dtype::Opaque, Coding::from(symbols), Kind::OpaqueCoded),
    ] {
        assert_eq!(EncodePlan::new(dtype, coding, 4096).unwrap_err().kind(), kind);
        assert_eq!(EncodePlan::window(dtype, coding, 4096, 0).unwrap_err().kind(), kind);
        assert_eq!(reference::encode_stream(dtype, coding, &[0; 8192]).unwrap_err().kind(), kind);
    }
}

/// Padding is found wherever it lies in a segment, and the first fault of a stream is told, in the order of its blocks.
#[test]
fn padding_of_segments_is_zero() {
    const BLOCKS: usize = 70;
    let coding = Coding::TwoWindows(TwoWindows::new(Dtype::Bf16, 127, 1).unwrap());
    // 1 to 70 wide lanes, each with one exponent that wants 1 to 3 bits more than the common width.
    let mut words = vec![0x3F80_u16; BLOCKS * 16_384];
    for (block, words) in words.chunks_mut(16_384).enumerate() {
        words[..=block].fill((127 - [2, 4, 8][block % 3]) << 7);
    }
    let elements: Vec<u8> = words.into_iter().flat_map(u16::to_le_bytes).collect();
    let intact = reference::encode_stream(Dtype::Bf16, coding, &elements).unwrap();
    let stream = Stream::open(&intact).unwrap();
    let (table, variable) = (stream.layout().table, stream.layout().variable);
    let segments: Vec<_> =
        stream.blocks().map(|block| block.segment.as_ptr().addr() - intact.as_ptr().addr()).collect();
    let padding = |block: usize| {
        let row = 32 * (block + 1).div_ceil(16);
        let len = stream.blocks().nth(block).unwrap().segment.len();
        let used = 2 * (block + 1);
        (0..len).filter(move |at| at % row >= used).map({
            let start = segments[block];
            move |at| start + at
        })
    };
    let told = |changes: &[usize]| {
        let mut bytes = intact.clone();
        changes.iter().for_each(|&at| bytes[at] ^= 0x80);
        let error = open_error(&bytes);
        (error.kind(), error.offset())
    };
    let kind = Kind::Padding { section: "row of a high segment" };
    let mut found = 0;
    for block in 0..BLOCKS {
        for at in padding(block) {
            assert_eq!(told(&[at]), (kind, at as u64), "block {block}");
            found += 1;
        }
    }
    assert!(found > 1500 && found % 2 == 0 && variable.len > found, "{found}");
    let first = |block| padding(block).next().unwrap();
    let entry = |block: usize| table.offset + 8 * block;
    for (early, late) in [(0, 1), (3, 5), (30, 32), (3, 40), (62, 64), (64, 68)] {
        assert_eq!(told(&[first(early), first(late)]), (kind, first(early) as u64));
        assert_eq!(told(&[first(early), entry(late) + 1]), (kind, first(early) as u64), "an entry behind it");
        let (told, at) = told(&[entry(early) + 1, first(late)]);
        assert!(matches!(told, Kind::WideWidth { .. }) && at == entry(early) as u64 + 1, "{told:?}");
    }
}

/// A stream in device memory is validated from its parts as it would be from its bytes.
#[test]
fn parts_are_validated_like_bytes() {
    fn open(bytes: &[u8]) -> Result<(Header, Layout), FormatError> {
        let front = &bytes[..bytes.len().min(Header::FRONT_BYTES)];
        Stream::open_parts(front, bytes.len(), |section| Ok(bytes[section.range()].to_vec()))
    }
    for golden in goldens() {
        let (bytes, stream) = (&golden.bytes, Stream::open(&golden.bytes).unwrap());
        assert_eq!(open(bytes).unwrap(), (*stream.header(), stream.layout().clone()), "{}", golden.name);
    }
    for name in ["bf16_blocks", "f16_cascade_two_levels"] {
        let intact = golden(name);
        let layout = Stream::open(&intact).unwrap().layout().clone();
        let downloaded: Vec<Section> = match layout.coding {
            Coding::Cascade(_) => vec![layout.symbols, layout.table, layout.low_plane, layout.variable],
            _ => vec![layout.table, layout.mask],
        };
        let mut refused = 0;
        for at in downloaded.iter().flat_map(|section| section.range()) {
            let mut bytes = intact.clone();
            bytes[at] ^= 0x10;
            match Stream::open(&bytes).map(|_| ()) {
                // Codec 1's segments are not downloaded.
                Err(error) if layout.symbols.len == 0 && matches!(error.kind(), Kind::Padding { .. }) => {}
                by_bytes => {
                    refused += usize::from(by_bytes.is_err());
                    assert_eq!(open(&bytes).map(|_| ()), by_bytes, "{name}, byte {at}");
                }
            }
        }
        assert!(refused > 10, "{name}: {refused}");
        for wrong in downloaded.into_iter().filter(|&section| section != layout.symbols) {
            for len in [0, wrong.len - 1, wrong.len + 8] {
                let part = |section: Section| {
                    let mut bytes = intact[section.range()].to_vec();
                    bytes.resize(if section == wrong { len } else { section.len }, 0);
                    Ok::<_, FormatError>(bytes)
                };
                let error = Stream::open_parts(&intact[..Header::FRONT_BYTES], intact.len(), part).unwrap_err();
                let kind = Kind::SourceLength { expected: wrong.len as u64, found: len as u64 };
                assert_eq!(error.kind(), kind, "{name}");
            }
        }
        let front = &intact[..Header::FRONT_BYTES];
        let failing = |_: Section| -> Result<Vec<u8>, FormatError> { Err(FormatError::new(Kind::Magic, 99)) };
        assert_eq!(Stream::open_parts(front, intact.len(), failing).unwrap_err().offset(), 99);
    }
    let cascade = golden("f16_cascade_two_levels");
    let part = |_: Section| -> Result<Vec<u8>, FormatError> { panic!("a part of a stream without its symbols") };
    let error = Stream::open_parts(&cascade[..100], cascade.len(), part).unwrap_err();
    assert_eq!(error.kind(), Kind::Truncated { expected: 128, found: 100 });
}
