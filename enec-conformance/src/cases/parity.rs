//! Parity: the bytes of the reference codec, for every dtype, every distribution that hurts, and sizes around every edge.

use enec_core::search::search;
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Coding, Dtype, TwoWindows};

use crate::inputs::{Input, distributions};
use crate::jobs::check_parity;
use crate::{Case, Result, Subject};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in Dtype::FLOATS {
        let family = format!("parity/{}", dtype.name().to_lowercase());
        for (name, input) in distributions(dtype) {
            cases.push(Case::new(format!("{family}/{name}"), move |subject| distribution(subject, dtype, &input)));
        }
        for (name, step) in [("patterns", 1), ("scattered_patterns", 40_503)] {
            cases.push(Case::new(format!("{family}/{name}"), move |subject| patterns(subject, dtype, step)));
        }
        cases.push(Case::new(format!("{family}/sizes"), move |subject| sizes(subject, dtype)));
        cases.push(Case::new(format!("{family}/tails"), move |subject| tails(subject, dtype)));
    }
    cases.push(Case::new("parity/opaque", opaque));
    cases
}

/// The searched parameters, and some that do not suit the tensor at all.
fn codings(dtype: Dtype, elements: &[u8]) -> Result<Vec<Coding>> {
    let mask = dtype.exponent_mask();
    let mut codings = vec![Coding::TwoWindows(search(dtype, elements))];
    for (base, width) in [(0, 0), (mask, 1), (mask / 2, 3), (mask, dtype.exponent_bits() - 1)] {
        codings.push(Coding::TwoWindows(TwoWindows::new(dtype, base, width)?));
    }
    Ok(codings)
}

fn distribution(subject: &Subject, dtype: Dtype, input: &Input) -> Result {
    let tensors = [TILE_ELEMENTS, BLOCK_ELEMENTS + 2 * TILE_ELEMENTS + 37].map(|count| input.bytes(dtype, count));
    let mut cases = Vec::new();
    for elements in &tensors {
        for coding in codings(dtype, elements)? {
            cases.push((format!("{} bytes as {coding:?}", elements.len()), coding, &elements[..]));
        }
    }
    check_parity(subject, dtype, &cases)
}

fn patterns(subject: &Subject, dtype: Dtype, step: u64) -> Result {
    let elements = Input::Patterns { step }.bytes(dtype, 65_536);
    let coding = Coding::TwoWindows(search(dtype, &elements));
    check_parity(subject, dtype, &[(format!("step {step} as {coding:?}"), coding, &elements)])
}

fn sizes(subject: &Subject, dtype: Dtype) -> Result {
    let edges =
        [0, TILE_ELEMENTS, 2 * TILE_ELEMENTS, BLOCK_ELEMENTS, BLOCK_ELEMENTS + TILE_ELEMENTS, 2 * BLOCK_ELEMENTS];
    let sizes = edges.into_iter().flat_map(|edge| [edge.saturating_sub(1), edge, edge + 1]);
    let input = Input::Weights { seed: 20, top: u64::from(dtype.exponent_mask() / 2), zeros: 1 };
    let tensors: Vec<Vec<u8>> = sizes.skip(1).map(|count| input.bytes(dtype, count)).collect();
    let coding = Coding::TwoWindows(search(dtype, &tensors[tensors.len() - 1]));
    let cases: Vec<_> =
        tensors.iter().map(|elements| (format!("{} bytes", elements.len()), coding, &elements[..])).collect();
    check_parity(subject, dtype, &cases)
}

/// Tails of every length modulo a few words, behind one tile and alone.
fn tails(subject: &Subject, dtype: Dtype) -> Result {
    let input = Input::Weights { seed: 21, top: u64::from(dtype.exponent_mask() / 2), zeros: 0 };
    let counts = (1..=33).chain([127, 128, 129, 1023, 1025]).flat_map(|tail| [tail, TILE_ELEMENTS + tail]);
    let tensors: Vec<Vec<u8>> = counts.map(|count| input.bytes(dtype, count)).collect();
    let coding = Coding::TwoWindows(search(dtype, &tensors[tensors.len() - 1]));
    let cases: Vec<_> =
        tensors.iter().map(|elements| (format!("{} bytes", elements.len()), coding, &elements[..])).collect();
    check_parity(subject, dtype, &cases)
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
