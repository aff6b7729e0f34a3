//! Corrupt: streams that no encoder writes but validation accepts, and streams that change after they were validated.

use enec_core::CodecChoice;
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Cascade, Coding, DecodePlan, Dtype, Layout, Stream, TwoWindows, reference};

use crate::codecs::{CODECS, Needs};
use crate::guarded::Place;
use crate::inputs::Input;
use crate::jobs::{Decoded, Decoding, check_decodings};
use crate::random::SplitMix64;
use crate::{Case, Result, Subject, hostile};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (choice, prefix) in CODECS {
        let needs = Needs::of(choice, Needs::Decoding);
        for dtype in Dtype::FLOATS {
            let family = format!("{prefix}corrupt/{}", dtype.name().to_lowercase());
            for (name, place) in [("host", Place::HOST), ("device", Place::DEVICE)] {
                let hostile = move |subject: &Subject| hostile(subject, choice, dtype, place);
                cases.push(Case::new(format!("{family}/hostile/{name}"), hostile).needing(needs));
                let changed = move |subject: &Subject| changed(subject, choice, dtype, place);
                cases.push(Case::new(format!("{family}/changed/{name}"), changed).needing(needs));
            }
        }
    }
    cases
}

/// Parameters all over what is valid.
fn codings(choice: CodecChoice, dtype: Dtype) -> Result<Vec<Coding>> {
    let mut codings = Vec::new();
    if choice == CodecChoice::Cascade {
        for levels in 1..=5 {
            for step in [1, 7] {
                let symbols: Vec<u8> =
                    (0..3 * levels).map(|rank| (step * rank + levels) & dtype.exponent_mask()).collect();
                codings.push(Cascade::new(dtype, &symbols)?.into());
            }
        }
        return Ok(codings);
    }
    for width in 0..=dtype.exponent_bits() {
        for base in [0, 1, dtype.exponent_mask() / 2, dtype.exponent_mask()] {
            codings.push(TwoWindows::new(dtype, base, width)?.into());
        }
    }
    Ok(codings)
}

fn hostile(subject: &Subject, choice: CodecChoice, dtype: Dtype, place: Place) -> Result {
    let mut random = SplitMix64::new(60);
    let mut streams = Vec::new();
    for coding in codings(choice, dtype)? {
        for count in [TILE_ELEMENTS + 3, BLOCK_ELEMENTS + TILE_ELEMENTS] {
            let stream = hostile::stream(&mut random, dtype, coding, count)?;
            streams.push((format!("{coding:?}, {count} elements"), stream));
        }
    }
    let decodings = streams.iter().map(|(name, stream)| Ok(Decoding::of(name, stream)?.placed(place, place)));
    check_decodings(subject, &decodings.collect::<Result<Vec<_>>>()?)
}

/// What may be done to a stream behind the back of its validated plan.
type Change = (&'static str, fn(&Layout, &mut [u8]));

const CHANGES: &[Change] = &[
    ("all lanes wide", |layout, bytes| bytes[layout.mask.range()].fill(0xFF)),
    ("no lane wide", |layout, bytes| bytes[layout.mask.range()].fill(0)),
    ("mask inverted", |layout, bytes| bytes[layout.mask.range()].iter_mut().for_each(|byte| *byte ^= 0xFF)),
    ("table of ones", |layout, bytes| bytes[layout.table.range()].fill(0xFF)),
    ("table of zeros", |layout, bytes| bytes[layout.table.range()].fill(0)),
    ("widths of 255", |layout, bytes| set_entries(layout, bytes, 1, 0xFF)),
    ("widths of 0", |layout, bytes| set_entries(layout, bytes, 1, 0)),
    ("bases of 255", |layout, bytes| set_entries(layout, bytes, 0, 0xFF)),
    ("ends beyond 32 bits", |layout, bytes| set_entries(layout, bytes, 2, 0xFF)),
    ("ends behind the section", |layout, bytes| set_entries(layout, bytes, 6, 0x7F)),
    ("ends in descending order", |layout, bytes| {
        for index in 0..layout.blocks() {
            let [low, ..] = (100 - index).to_le_bytes();
            bytes[layout.table.offset + 8 * index + 2..][..6].copy_from_slice(&[0, 0, low, 0, 0, 0]);
        }
    }),
    ("mask and table of ones", |layout, bytes| {
        bytes[layout.mask.range()].fill(0xFF);
        bytes[layout.table.range()].fill(0xFF);
    }),
    ("low plane of ones", |layout, bytes| bytes[layout.low_plane.range()].fill(0xFF)),
    ("low plane of zeros", |layout, bytes| bytes[layout.low_plane.range()].fill(0)),
    ("variable section of ones", |layout, bytes| bytes[layout.variable.range()].fill(0xFF)),
    ("variable section of zeros", |layout, bytes| bytes[layout.variable.range()].fill(0)),
    ("everything ones", |_, bytes| bytes.fill(0xFF)),
    ("everything zero", |_, bytes| bytes.fill(0)),
];

fn set_entries(layout: &Layout, bytes: &mut [u8], at: usize, value: u8) {
    bytes[layout.table.range()].chunks_exact_mut(8).for_each(|entry| entry[at] = value);
}

/// The elements do not matter, nor whether the job fails; but nothing else may be written or break, nor may other jobs suffer.
fn changed(subject: &Subject, choice: CodecChoice, dtype: Dtype, place: Place) -> Result {
    let top = u64::from(dtype.exponent_mask() / 2);
    let input = Input::Lanes { seed: 61, wide: 40, base: top, width: 2, wide_base: top + 5, wide_width: 4 };
    let elements = input.bytes(dtype, BLOCK_ELEMENTS + 2 * TILE_ELEMENTS + 5);
    let coding = match choice {
        CodecChoice::Cascade => {
            let symbols = [0, 1, 2, 3, 5, 4].map(|below| dtype.exponent_mask() / 2 - below);
            Cascade::new(dtype, &symbols)?.into()
        }
        _ => Coding::from(TwoWindows::new(dtype, dtype.exponent_mask() / 2, 2)?),
    };
    let intact = reference::encode_stream(dtype, coding, &elements)?;
    let plan = DecodePlan::whole(&Stream::open(&intact)?);
    let streams = CHANGES.iter().map(|(name, change)| {
        let mut stream = intact.clone();
        change(plan.layout(), &mut stream);
        (*name, stream)
    });
    let streams: Vec<(&str, Vec<u8>)> = streams.collect();
    let mut decodings = Vec::new();
    for (name, stream) in &streams {
        decodings.push(Decoding::by_plan(format!("{name}, {dtype:?}"), plan.clone(), stream).placed(place, place));
        let last = plan.layout().tiles - 1..plan.layout().tiles;
        let range = plan.clone().with_tiles(last, true)?;
        decodings.push(Decoding::by_plan(format!("{name}, last tile"), range, stream).placed(place, place));
        decodings.push(Decoding::of(format!("after {name}"), &intact)?.expecting(&elements).placed(place, place));
    }
    let decoded = Decoded::run(subject, &decodings)?;
    for index in 0..decodings.len() {
        if decodings[index].expected.is_some() {
            decoded.check(subject, &decodings, index)?;
        } else {
            let fault = |error| format!("decode {}: {error}", decodings[index].name);
            decoded.target(subject, &decodings, index).map_err(fault)?;
        }
    }
    Ok(())
}
