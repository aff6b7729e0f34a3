//! Arbitrary bytes as a stream.

use enec_core::Backend;
use enec_format::hash::xxh3_64;
use enec_format::{Coding, DecodePlan, EncodePlan, FormatError, Header, Stream, reference};

use super::{Verdict, decode};
use crate::golden::Manifest;
use crate::random::SplitMix64;
use crate::{Result, hostile};

const HEADER_BYTES: usize = enec_format::geometry::HEADER_BYTES;

/// Opens the bytes as a stream, as they are and with the header's checksum repaired, and decodes what opens in several ways, which
/// must agree.
///
/// # Panics
///
/// Over a fault.
pub fn stream(data: &[u8], backends: &[&dyn Backend]) -> Verdict {
    let as_given = open(data, backends);
    let mut repaired = data.to_vec();
    if let Some(header) = repaired.first_chunk_mut::<HEADER_BYTES>() {
        let checksum = xxh3_64(&header[..56]);
        header[56..].copy_from_slice(&checksum.to_le_bytes());
    }
    let opens = open(&repaired, backends);
    // Past the magic, every refusal is worth going on from.
    if as_given || opens || data.len() >= HEADER_BYTES { Verdict::Keep } else { Verdict::Reject }
}

fn open(bytes: &[u8], backends: &[&dyn Backend]) -> bool {
    match Stream::open(bytes) {
        Ok(stream) => {
            check(&stream, backends);
            true
        }
        Err(error) => {
            let furthest = bytes.len().max(HEADER_BYTES) as u64;
            assert!(error.offset() <= furthest, "{error} in {} bytes", bytes.len());
            assert!(!error.to_string().is_empty());
            false
        }
    }
}

fn check(stream: &Stream<'_>, backends: &[&dyn Backend]) {
    let (bytes, layout) = (stream.bytes(), stream.layout());
    assert_eq!(stream.header().to_bytes(), bytes[..HEADER_BYTES], "a header that was read is written the same");
    assert_eq!(layout.stream_len, bytes.len());
    let front = &bytes[..bytes.len().min(Header::FRONT_BYTES)];
    let parts = Stream::open_parts(front, bytes.len(), |section| Ok::<_, FormatError>(bytes[section.range()].to_vec()));
    assert_eq!(parts.expect("a stream opens from its parts"), (*stream.header(), layout.clone()));

    let plan = DecodePlan::whole(stream);
    let elements = reference::decode_stream(stream).expect("a validated stream decodes");
    assert_eq!(elements.len() as u64, stream.header().decoded_len());
    for backend in backends.iter().filter(|backend| backend.info().codecs.decodes(stream.coding())) {
        let variant = backend.info().variant;
        assert!(decode(*backend, &plan, bytes, 0xA5) == elements, "{variant}: whole");
        assert!(decode(*backend, &plan, bytes, 0x5A) == elements, "{variant}: over other poison");
        for tile in 0..layout.tiles {
            let range = plan.clone().with_tiles(tile..tile + 1, false).expect("a tile of the stream");
            let expected = &elements[layout.decoded_range(tile..tile + 1)];
            assert!(decode(*backend, &range, bytes, 0xA5) == expected, "{variant}: tile {tile} alone");
        }
    }

    // What decodes can be encoded, and the canonical stream of the same elements decodes to them.
    if stream.coding() != Coding::Stored {
        let again =
            EncodePlan::window(stream.dtype(), stream.coding(), layout.elements, 0).expect("a stream's parameters");
        let again = reference::encode_plan(&again, &elements).expect("elements of the planned length");
        let again = Stream::open(&again).expect("the reference writes valid streams");
        assert!(reference::decode_stream(&again).expect("a validated stream decodes") == elements, "encoded again");
    }
    // A right hash means right bytes; random changes that leave both right do not exist in practice.
    let sealed = stream.check_payload().and_then(|()| stream.check_content(&elements));
    assert_eq!(
        sealed.is_ok(),
        stream.header().seal().is_some_and(|seal| {
            seal.payload == stream.payload_hash() && seal.content == enec_format::hash::content_hash(&elements)
        })
    );
}

/// The small golden streams and some hostile ones.
///
/// # Errors
///
/// If the golden streams cannot be read.
pub fn stream_seeds() -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for golden in Manifest::read()?.streams {
        let bytes = golden.frozen()?;
        if bytes.len() < 5000 {
            seeds.push((golden.name, bytes));
        }
    }
    let mut random = SplitMix64::new(1);
    for dtype in [enec_format::Dtype::Bf16, enec_format::Dtype::F16] {
        for levels in [1, 3, 5] {
            let symbols: Vec<u8> = (0..3 * levels).map(|rank| 20 - rank).collect();
            let cascade = enec_format::Cascade::new(dtype, &symbols)?;
            let bytes = hostile::stream(&mut random, dtype, cascade, enec_format::geometry::TILE_ELEMENTS)?;
            seeds.push((format!("hostile_cascade_{}_{levels}", dtype.name().to_lowercase()), bytes));
        }
        for width in [0, 2, dtype.exponent_bits()] {
            let windows = enec_format::TwoWindows::new(dtype, 9, width)?;
            let bytes = hostile::stream(&mut random, dtype, windows, enec_format::geometry::TILE_ELEMENTS)?;
            seeds.push((format!("hostile_{}_{width}", dtype.name().to_lowercase()), bytes));
        }
    }
    Ok(seeds)
}
