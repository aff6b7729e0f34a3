//! Windows: every pair of widths, every number of wide lanes that matters, and segments that start far into a section.

use enec_core::CodecChoice;
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Coding, Dtype, EncodePlan, Stream, TwoWindows, reference};

use crate::codecs::{Needs, searched};
use crate::inputs::Input;
use crate::jobs::{Encoding, check_encodings, check_parity};
use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in Dtype::FLOATS {
        let family = format!("windows/{}", dtype.name().to_lowercase());
        for width in 0..=dtype.exponent_bits() {
            cases.push(Case::new(format!("{family}/widths/{width}"), move |subject| widths(subject, dtype, width)));
        }
        cases.push(Case::new(format!("{family}/wide_lanes"), move |subject| wide_lanes(subject, dtype)));
        cases.push(Case::new(format!("{family}/first_segment"), move |subject| first_segment(subject, dtype)));
        let name = format!("cascade/{family}/first_segment");
        let check = move |subject: &Subject| cascade_first_segment(subject, dtype);
        cases.push(Case::new(name, check).needing(Needs::Encoding));
    }
    cases
}

/// Lanes whose wide width comes to exactly `wide_width`, with common lanes that fill the common window.
fn lanes(dtype: Dtype, wide: usize, width: u8, wide_width: u8) -> (Input, Result<TwoWindows>) {
    let mask = dtype.exponent_mask();
    let base = if width == dtype.exponent_bits() { mask } else { (1 << width) - 1 };
    let input = Input::Lanes {
        seed: u64::from(width) << 8 | u64::from(wide_width),
        wide,
        base: u64::from(base),
        width: u32::from(width),
        wide_base: u64::from(mask),
        wide_width: u32::from(wide_width),
    };
    (input, TwoWindows::new(dtype, base, width).map_err(Into::into))
}

fn widths(subject: &Subject, dtype: Dtype, width: u8) -> Result {
    let (mut tensors, mut found) = (Vec::new(), Vec::new());
    for wide_width in 0..=dtype.exponent_bits() {
        let (input, windows) = lanes(dtype, 37, width, wide_width);
        let (windows, elements) = (windows?, input.bytes(dtype, 3 * TILE_ELEMENTS + 9));
        let plan = EncodePlan::window(dtype, windows, 3 * TILE_ELEMENTS + 9, 0)?;
        let stream = reference::encode_plan(&plan, &elements)?;
        found.push(Stream::open(&stream)?.block(0).entry.wide_width);
        tensors.push((format!("widths {width} and {wide_width}"), Coding::TwoWindows(windows), elements));
    }
    let expected: Vec<u8> = (0..=dtype.exponent_bits()).map(|wide_width| wide_width.max(width)).collect();
    ensure!(found == expected, "the inputs give wide widths {found:?}, not {expected:?}");
    let cases: Vec<_> = tensors.iter().map(|(name, coding, elements)| (name.clone(), *coding, &elements[..])).collect();
    check_parity(subject, dtype, &cases)
}

fn wide_lanes(subject: &Subject, dtype: Dtype) -> Result {
    let mut tensors = Vec::new();
    for wide in [0, 1, 2, 15, 16, 17, 31, 32, 33, 127, 128, 129, 500, 1008, 1023, 1024] {
        let (input, windows) = lanes(dtype, wide, 2, 5);
        let elements = input.bytes(dtype, BLOCK_ELEMENTS + TILE_ELEMENTS);
        tensors.push((format!("{wide} wide lanes"), Coding::TwoWindows(windows?), elements));
    }
    let cases: Vec<_> = tensors.iter().map(|(name, coding, elements)| (name.clone(), *coding, &elements[..])).collect();
    check_parity(subject, dtype, &cases)
}

/// Windows of a tensor whose segments lie behind those of earlier windows; the table has 48 bits for that.
fn first_segment(subject: &Subject, dtype: Dtype) -> Result {
    let (input, windows) = lanes(dtype, 40, 2, 4);
    let elements = input.bytes(dtype, BLOCK_ELEMENTS + TILE_ELEMENTS + 3);
    from_units(subject, dtype, windows?.into(), &elements)
}

fn cascade_first_segment(subject: &Subject, dtype: Dtype) -> Result {
    let input = Input::Weights { seed: 36, top: u64::from(dtype.exponent_mask() / 2), zeros: 9 };
    let elements = input.bytes(dtype, BLOCK_ELEMENTS + TILE_ELEMENTS + 3);
    from_units(subject, dtype, searched(CodecChoice::Cascade, dtype, &elements), &elements)
}

fn from_units(subject: &Subject, dtype: Dtype, coding: Coding, elements: &[u8]) -> Result {
    let mut encodings = Vec::new();
    for first in [1, 1000, u64::from(u32::MAX) - 2, 1 << 32, (1 << 48) - 1000] {
        let plan = EncodePlan::window(dtype, coding, elements.len() / dtype.element_bytes(), first)?;
        encodings.push(Encoding::by_plan(format!("from unit {first}"), plan, elements));
    }
    check_encodings(subject, &encodings)
}
