//! Ranges: every range of tiles of a tensor of three blocks, with and without its tail.

use enec_core::CodecChoice;
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, Stream, reference};

use crate::codecs::{CODECS, Needs, searched};
use crate::guarded::Place;
use crate::inputs::Input;
use crate::jobs::{Decoding, check_decodings};
use crate::{Case, Result, Subject};

const COUNT: usize = 2 * BLOCK_ELEMENTS + 3 * TILE_ELEMENTS + 101;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (choice, prefix) in CODECS {
        let needs = Needs::of(choice, Needs::Decoding);
        for dtype in Dtype::FLOATS {
            let family = format!("{prefix}ranges/{}", dtype.name().to_lowercase());
            let all = move |subject: &Subject| all(subject, choice, dtype);
            cases.push(Case::new(format!("{family}/all"), all).needing(needs));
            let device = move |subject: &Subject| device(subject, choice, dtype);
            cases.push(Case::new(format!("{family}/device"), device).needing(needs));
        }
    }
    cases.push(Case::new("ranges/stored", stored));
    cases
}

/// Wide lanes in every tile, so that each needs a rank; and a few, so that most tiles need none.
fn tensors(dtype: Dtype) -> [Vec<u8>; 2] {
    let top = u64::from(dtype.exponent_mask() / 2);
    let wide = Input::Lanes { seed: 50, wide: 300, base: top, width: 2, wide_base: top + 5, wide_width: 4 };
    [wide.bytes(dtype, COUNT), Input::Weights { seed: 51, top, zeros: 0 }.bytes(dtype, COUNT)]
}

fn range<'a>(
    dtype: Dtype,
    stream: &'a [u8],
    elements: &'a [u8],
    tiles: std::ops::Range<usize>,
    tail: bool,
) -> Result<Decoding<'a>> {
    let plan = DecodePlan::whole(&Stream::open(stream)?).with_tiles(tiles.clone(), tail)?;
    let end = if tail { elements.len() } else { tiles.end * dtype.tile_bytes() };
    let name = format!("tiles {tiles:?}{}", if tail { " and tail" } else { "" });
    Ok(Decoding::by_plan(name, plan, stream).expecting(&elements[tiles.start * dtype.tile_bytes()..end]))
}

fn all(subject: &Subject, choice: CodecChoice, dtype: Dtype) -> Result {
    for elements in tensors(dtype) {
        let stream = reference::encode_stream(dtype, searched(choice, dtype, &elements), &elements)?;
        let tiles = Stream::open(&stream)?.layout().tiles;
        let mut decodings = Vec::new();
        for start in 0..=tiles {
            for end in start..=tiles {
                decodings.push(range(dtype, &stream, &elements, start..end, false)?);
            }
            decodings.push(range(dtype, &stream, &elements, start..tiles, true)?);
        }
        check_decodings(subject, &decodings)?;
    }
    Ok(())
}

/// Some ranges again, from and to device memory at odd offsets.
fn device(subject: &Subject, choice: CodecChoice, dtype: Dtype) -> Result {
    let [elements, _] = tensors(dtype);
    let stream = reference::encode_stream(dtype, searched(choice, dtype, &elements), &elements)?;
    let mut decodings = Vec::new();
    for (tiles, tail) in [(0..1, false), (3..9, false), (7..8, false), (8..16, false), (18..19, true), (19..19, true)] {
        for (from, to) in
            [(Place::DEVICE, Place::DEVICE), (Place::HOST, Place::Device(5)), (Place::Device(2), Place::HOST)]
        {
            decodings.push(range(dtype, &stream, &elements, tiles.clone(), tail)?.placed(from, to));
        }
    }
    check_decodings(subject, &decodings)
}

/// A stored stream has no tiles: all of it is tail.
fn stored(subject: &Subject) -> Result {
    let elements = Input::Uniform { seed: 52 }.bytes(Dtype::Bf16, 5000);
    let stream = reference::encode_stream(Dtype::Bf16, Coding::Stored, &elements)?;
    let (with, without) =
        (range(Dtype::Bf16, &stream, &elements, 0..0, true)?, range(Dtype::Bf16, &stream, &elements, 0..0, false)?);
    check_decodings(subject, &[with, without])
}
