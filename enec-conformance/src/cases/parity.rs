//! Parity: the bytes of the reference codec, for every dtype, every distribution that hurts, and sizes around every edge.

use enec_core::CodecChoice;
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Cascade, Coding, Dtype, TwoWindows};

use crate::codecs::{Needs, searched};
use crate::inputs::{Input, distributions};
use crate::jobs::{check_parity, check_parity_of};
use crate::{Case, Result, Subject};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in Dtype::FLOATS {
        cases.extend(family(format!("parity/{}", dtype.name().to_lowercase()), CodecChoice::Enec, dtype, Needs::Both));
        // A backend may have one direction of codec 2 only.
        for (direction, name) in [(Needs::Encoding, "encode"), (Needs::Decoding, "decode")] {
            let family_name = format!("cascade/parity/{}/{name}", dtype.name().to_lowercase());
            let of_codec = family(family_name, CodecChoice::Cascade, dtype, direction);
            cases.extend(of_codec.into_iter().map(|case| case.needing(direction)));
        }
    }
    cases.push(Case::new("parity/opaque", opaque));
    cases
}

fn family(name: String, choice: CodecChoice, dtype: Dtype, ways: Needs) -> Vec<Case> {
    let mut cases = Vec::new();
    let mut add = |case: &str, tensors: Box<dyn Fn() -> Vec<Vec<u8>> + Send + Sync>, codings: Codings| {
        let check = move |subject: &Subject| {
            let tensors = tensors();
            let codings = codings(choice, dtype, &tensors)?;
            let mut cases = Vec::new();
            for elements in &tensors {
                for coding in &codings {
                    cases.push((format!("{} bytes as {coding:?}", elements.len()), *coding, &elements[..]));
                }
            }
            check_parity_of(subject, dtype, &cases, ways)
        };
        cases.push(Case::new(format!("{name}/{case}"), check));
    };
    for (case, input) in distributions(dtype) {
        let counts = [TILE_ELEMENTS, BLOCK_ELEMENTS + 2 * TILE_ELEMENTS + 37];
        add(case, Box::new(move || counts.map(|count| input.bytes(dtype, count)).into()), several_codings);
    }
    for (case, step) in [("patterns", 1), ("scattered_patterns", 40_503)] {
        let tensors = move || vec![Input::Patterns { step }.bytes(dtype, 65_536)];
        add(case, Box::new(tensors), searched_coding);
    }
    add("sizes", Box::new(move || sizes(dtype)), searched_coding);
    add("tails", Box::new(move || tails(dtype)), searched_coding);
    cases
}

/// The codings for some tensors.
type Codings = fn(CodecChoice, Dtype, &[Vec<u8>]) -> Result<Vec<Coding>>;

fn searched_coding(choice: CodecChoice, dtype: Dtype, tensors: &[Vec<u8>]) -> Result<Vec<Coding>> {
    Ok(vec![searched(choice, dtype, tensors.last().map_or(&[], Vec::as_slice))])
}

/// The searched parameters of each tensor, and some that do not suit it at all.
fn several_codings(choice: CodecChoice, dtype: Dtype, tensors: &[Vec<u8>]) -> Result<Vec<Coding>> {
    let mask = dtype.exponent_mask();
    let mut codings: Vec<Coding> = tensors.iter().map(|elements| searched(choice, dtype, elements)).collect();
    codings.dedup();
    if choice == CodecChoice::Cascade {
        for levels in 1..=5 {
            // An odd step makes them distinct; each number of levels has other symbols, in no order.
            let symbols: Vec<u8> = (0..3 * levels).map(|rank| (11 * rank + 5 * levels) & mask).collect();
            codings.push(Cascade::new(dtype, &symbols)?.into());
        }
        return Ok(codings);
    }
    for (base, width) in [(0, 0), (mask, 1), (mask / 2, 3), (mask, dtype.exponent_bits() - 1)] {
        codings.push(TwoWindows::new(dtype, base, width)?.into());
    }
    Ok(codings)
}

fn sizes(dtype: Dtype) -> Vec<Vec<u8>> {
    let edges =
        [0, TILE_ELEMENTS, 2 * TILE_ELEMENTS, BLOCK_ELEMENTS, BLOCK_ELEMENTS + TILE_ELEMENTS, 2 * BLOCK_ELEMENTS];
    let sizes = edges.into_iter().flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1]);
    let input = Input::Weights { seed: 20, top: u64::from(dtype.exponent_mask() / 2), zeros: 1 };
    sizes.skip(1).map(|count| input.bytes(dtype, count)).collect()
}

/// Tails of every length modulo a few words, behind one tile and alone.
fn tails(dtype: Dtype) -> Vec<Vec<u8>> {
    let input = Input::Weights { seed: 21, top: u64::from(dtype.exponent_mask() / 2), zeros: 0 };
    let counts = (1..=33).chain([127, 128, 129, 1023, 1025]).flat_map(|tail| [tail, TILE_ELEMENTS + tail]);
    counts.map(|count| input.bytes(dtype, count)).collect()
}

fn opaque(subject: &Subject) -> Result {
    let counts = [0, 1, 2, 3, 63, 64, 65, 2048, 4097, 40_000];
    let tensors = counts.map(|count| Input::Uniform { seed: 22 }.bytes(Dtype::Opaque, count));
    let cases = tensors.each_ref().map(|bytes| (format!("{} bytes", bytes.len()), Coding::Stored, &bytes[..]));
    check_parity(subject, Dtype::Opaque, &cases)?;
    for dtype in Dtype::FLOATS {
        let cases = tensors.each_ref().map(|bytes| {
            let whole = &bytes[..bytes.len() / dtype.element_bytes() * dtype.element_bytes()];
            (format!("{} bytes, {}", whole.len(), dtype.name()), Coding::Stored, whole)
        });
        check_parity(subject, dtype, &cases)?;
    }
    Ok(())
}
