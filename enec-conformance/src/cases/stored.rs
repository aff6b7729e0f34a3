//! The stored rule at its exact boundary: the longest variable section that is still worth it, and the next one.

use enec_format::geometry::{BLOCK_ELEMENTS, SEGMENT_ROW_LANES, SEGMENT_UNIT, TILE_ELEMENTS};
use enec_format::{Cascade, Coding, Dtype, EncodeOutcome, EncodePlan, TwoWindows, reference};

use crate::codecs::Needs;
use crate::inputs::Input;
use crate::jobs::{Encoding, check_encodings};
use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for dtype in Dtype::FLOATS {
        let family = format!("stored/{}", dtype.name().to_lowercase());
        cases.push(Case::new(format!("{family}/boundary"), move |subject| boundary(subject, dtype)));
        cases.push(Case::new(format!("{family}/fixed_sections"), move |subject| fixed_sections(subject, dtype)));
        cases.push(Case::new(format!("{family}/late"), move |subject| late(subject, dtype)));
        let check = move |subject: &Subject| cascade_boundary(subject, dtype);
        cases.push(Case::new(format!("cascade/{family}/boundary"), check).needing(Needs::Encoding));
    }
    cases
}

/// The widest common window that leaves something to gain, and wide lanes of one high bit: one unit of the variable section per 16.
fn windows(dtype: Dtype) -> Result<(TwoWindows, impl Fn(usize, usize) -> Vec<u8>)> {
    let width = dtype.exponent_bits() - 1;
    let windows = TwoWindows::new(dtype, (1 << width) - 1, width)?;
    let elements = move |wide: usize, count: usize| {
        let (base, width) = (u64::from(windows.common_base()), u32::from(width));
        let wide_base = u64::from(dtype.exponent_mask());
        Input::Lanes { seed: 30, wide, base, width, wide_base, wide_width: width + 1 }.bytes(dtype, count)
    };
    Ok((windows, elements))
}

fn boundary(subject: &Subject, dtype: Dtype) -> Result {
    let (windows, elements) = windows(dtype)?;
    let mut tensors = Vec::new();
    for count in [TILE_ELEMENTS, 3 * TILE_ELEMENTS + 1, BLOCK_ELEMENTS] {
        let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows), count)?;
        let most = plan.variable_limit() / SEGMENT_UNIT * SEGMENT_ROW_LANES;
        for (wide, stored) in
            [(most - 16, false), (most - 15, false), (most, false), (most + 1, true), (most + 17, true)]
        {
            let elements = elements(wide, count);
            let outcome = reference::encode(&plan, &elements, &mut vec![0; plan.target_len()])?;
            ensure!((outcome == EncodeOutcome::Stored) == stored, "{wide} wide lanes give {outcome:?}");
            tensors.push((format!("{count} elements, {wide} wide lanes of at most {most}"), plan.clone(), elements));
        }
    }
    let encodings: Vec<_> =
        tensors.iter().map(|(name, plan, elements)| Encoding::by_plan(name, plan.clone(), elements)).collect();
    check_encodings(subject, &encodings)
}

/// Full width leaves no gain: the plan itself is a stored one.
fn fixed_sections(subject: &Subject, dtype: Dtype) -> Result {
    let coding = Coding::TwoWindows(TwoWindows::new(dtype, dtype.exponent_mask(), dtype.exponent_bits())?);
    let elements = Input::Uniform { seed: 31 }.bytes(dtype, 2 * TILE_ELEMENTS + 1);
    let encoding = Encoding::of("full width", dtype, coding, &elements)?;
    ensure!(encoding.plan.coding() == Coding::Stored, "the plan is {:?}", encoding.plan.coding());
    check_encodings(subject, &[encoding])
}

/// The limit is exceeded by the last block, after the others have been written.
fn late(subject: &Subject, dtype: Dtype) -> Result {
    let (windows, elements) = windows(dtype)?;
    let coding = Coding::TwoWindows(windows);
    let plan = EncodePlan::new(dtype, coding, 3 * BLOCK_ELEMENTS + 7)?;
    let most = plan.variable_limit() / SEGMENT_UNIT * SEGMENT_ROW_LANES;
    // All lanes of the first two blocks are wide, so that the limit falls into the last.
    let whole = elements(1024, BLOCK_ELEMENTS);
    let tail = &whole[..7 * dtype.element_bytes()];
    let mut tensors = Vec::new();
    for (wide, stored) in [(most - 2048, false), (most - 2047, true)] {
        let tensor = [&whole[..], &whole, &elements(wide, BLOCK_ELEMENTS), tail].concat();
        let outcome = reference::encode(&plan, &tensor, &mut vec![0; plan.target_len()])?;
        ensure!((outcome == EncodeOutcome::Stored) == stored, "{wide} wide lanes in the last block give {outcome:?}");
        tensors.push((format!("{wide} wide lanes in the last block"), tensor));
    }
    let encodings: Vec<_> =
        tensors.iter().map(|(name, tensor)| Encoding::by_plan(name, plan.clone(), tensor)).collect();
    check_encodings(subject, &encodings)
}

/// One level whose symbols all elements have but some that are zero: each takes a byte of the variable section. All but the last block have
/// equal shares of them, so that the last one exceeds the limit.
fn cascade_boundary(subject: &Subject, dtype: Dtype) -> Result {
    let middle = dtype.exponent_mask() / 2;
    let coding = Coding::from(Cascade::new(dtype, &[middle, 1, 2])?);
    let mut tensors = Vec::new();
    for count in [TILE_ELEMENTS, 3 * TILE_ELEMENTS + 1, BLOCK_ELEMENTS, 3 * BLOCK_ELEMENTS + 7] {
        let plan = EncodePlan::new(dtype, coding, count)?;
        let (most, blocks) = (plan.variable_limit(), plan.layout().blocks());
        let share = most / blocks / SEGMENT_UNIT * SEGMENT_UNIT;
        for (raw, stored) in [(most - SEGMENT_UNIT, false), (most - 5, false), (most, false), (most + 1, true)] {
            let weight = Input::Exponents { seed: 32, low: u64::from(middle), size: 1 };
            let mut elements = weight.bytes(dtype, count);
            for block in 0..blocks {
                let raw = if block + 1 == blocks { raw - share * (blocks - 1) } else { share };
                let start = block * BLOCK_ELEMENTS;
                elements[start * dtype.element_bytes()..(start + raw) * dtype.element_bytes()].fill(0);
            }
            let outcome = reference::encode(&plan, &elements, &mut vec![0; plan.target_len()])?;
            ensure!((outcome == EncodeOutcome::Stored) == stored, "{raw} raw exponents give {outcome:?}");
            tensors.push((format!("{count} elements, {raw} raw exponents of at most {most}"), plan.clone(), elements));
        }
    }
    let encodings: Vec<_> =
        tensors.iter().map(|(name, plan, elements)| Encoding::by_plan(name, plan.clone(), elements)).collect();
    check_encodings(subject, &encodings)
}
