//! Arbitrary elements, dtype and parameters: all encoders write the same, and it decodes to the elements.

use enec_core::search::{search, search_cascade};
use enec_core::{Backend, EncodeBatch, EncodeJob, Source, Target};
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{
    Cascade, Coding, DecodePlan, Dtype, EncodeOutcome, EncodePlan, FormatError, Stream, TwoWindows, reference,
};

use super::{Verdict, decode};
use crate::Result;
use crate::inputs::distributions;
use crate::random::SplitMix64;

/// Bytes before the elements: dtype; common base and common width, or first symbol and levels; flags; length.
const PREFIX: usize = 6;
const FORCED: u8 = 1;
const SEARCHED: u8 = 2;
const RANDOM_MANTISSAS: u8 = 4;
const CASCADE: u8 = 8;
/// Most elements of one input: more than a block, and no more than that, since the reference is slow.
const MOST_ELEMENTS: usize = BLOCK_ELEMENTS + 2 * TILE_ELEMENTS;

/// Encodes and decodes with the reference and all backends.
///
/// The bytes behind the prefix are repeated up to the length that the prefix asks for, so that few bytes make several blocks.
///
/// # Panics
///
/// Over a fault.
pub fn roundtrip(data: &[u8], backends: &[&dyn Backend]) -> Verdict {
    let Some((&[dtype, base, width, flags, length_low, length_high], pattern)) = data.split_first_chunk::<PREFIX>()
    else {
        return Verdict::Reject;
    };
    let dtype = Dtype::FLOATS[usize::from(dtype % 3)];
    let elements = elements(dtype, pattern, flags, usize::from(u16::from_le_bytes([length_low, length_high])));
    let coding = coding(dtype, base, width, flags, &elements).expect("parameters within their limits");
    let count = elements.len() / dtype.element_bytes();
    let forced = flags & FORCED != 0 && count >= TILE_ELEMENTS;
    let plan = match forced {
        true => EncodePlan::window(dtype, coding, count, 0),
        false => EncodePlan::new(dtype, coding, count),
    };
    check(&plan.expect("a small tensor"), &elements, backends);
    Verdict::Keep
}

fn coding(dtype: Dtype, base: u8, width: u8, flags: u8, elements: &[u8]) -> Result<Coding, FormatError> {
    match (flags & CASCADE != 0, flags & SEARCHED != 0) {
        (false, true) => Ok(search(dtype, elements).into()),
        (true, true) => Ok(search_cascade(dtype, elements).into()),
        (false, false) => {
            let (base, width) = (base & dtype.exponent_mask(), width % (dtype.exponent_bits() + 1));
            Ok(TwoWindows::new(dtype, base, width)?.into())
        }
        (true, false) => {
            // An odd step makes them distinct.
            let (levels, step) = (1 + width % 5, (width / 5) | 1);
            let symbol = |rank: u8| base.wrapping_add(rank.wrapping_mul(step)) & dtype.exponent_mask();
            Ok(Cascade::new(dtype, &(0..3 * levels).map(symbol).collect::<Vec<_>>())?.into())
        }
    }
}

fn elements(dtype: Dtype, pattern: &[u8], flags: u8, wanted: usize) -> Vec<u8> {
    let wanted = wanted % (MOST_ELEMENTS + 1) * dtype.element_bytes();
    if pattern.is_empty() {
        return vec![0; wanted];
    }
    let mut elements: Vec<u8> = pattern.iter().copied().cycle().take(wanted).collect();
    if flags & RANDOM_MANTISSAS != 0 {
        let mut random = SplitMix64::new(wanted as u64);
        elements.chunks_exact_mut(dtype.element_bytes()).for_each(|word| word[0] ^= random.next_u8() & 0x7F);
    }
    elements
}

fn check(plan: &EncodePlan, elements: &[u8], backends: &[&dyn Backend]) {
    let sealed = reference::encode_plan(plan, elements).expect("a source of the planned length");
    let stream = Stream::open(&sealed).expect("the reference writes valid streams");
    stream.check_payload().expect("a seal of its own");
    assert!(reference::decode_stream(&stream).expect("a validated stream decodes") == elements, "reference");
    stream.check_content(elements).expect("a seal of its own");
    let decode_plan = DecodePlan::whole(&stream);
    let outcome = match stream.coding() {
        Coding::Stored => EncodeOutcome::Stored,
        _ => EncodeOutcome::Coded { variable_len: stream.layout().variable.len },
    };
    let has = |backend: &&&dyn Backend| {
        let codecs = backend.info().codecs;
        codecs.encodes(plan.coding()) && codecs.decodes(plan.coding())
    };
    for backend in backends.iter().filter(has) {
        let variant = backend.info().variant;
        let mut target = vec![0xA5; plan.target_len()];
        let mut batch = EncodeBatch::new(backend.info());
        let job = EncodeJob::new(plan.clone(), Source::Host(elements), Target::Host(&mut target));
        batch.push(job).expect("a planned job");
        backend.encode(&mut batch).expect("the device works");
        let found = batch.into_results().next().expect("the job").expect("encoding cannot fail");
        assert_eq!(found, outcome, "{variant}");
        let front = stream.header().front_len();
        assert!(target[front..sealed.len()] == sealed[front..], "{variant}: encoded bytes");
        assert!(target[..front].iter().all(|&byte| byte == 0xA5), "{variant}: header touched");
        assert!(decode(*backend, &decode_plan, &sealed, 0xA5) == elements, "{variant}: decoded bytes");
    }
}

/// Short patterns of every distribution.
///
/// # Errors
///
/// None so far.
pub fn roundtrip_seeds() -> Result<Vec<(String, Vec<u8>)>> {
    let mut seeds = Vec::new();
    for (index, dtype) in Dtype::FLOATS.into_iter().enumerate() {
        for (number, (name, input)) in distributions(dtype).into_iter().enumerate() {
            let [index, number, ..] = (index | number << 8).to_le_bytes();
            let [low, high, ..] =
                [TILE_ELEMENTS, BLOCK_ELEMENTS + 1, 2000, 3 * TILE_ELEMENTS + 7][usize::from(number % 4)].to_le_bytes();
            let prefix = [index, dtype.exponent_mask() / 2, number % 9, number % 8, low, high];
            let pattern = input.bytes(dtype, 300 + usize::from(number));
            seeds.push((format!("{}_{name}", dtype.name().to_lowercase()), [&prefix[..], &pattern].concat()));
            if number % 3 == 0 {
                let prefix = [index, dtype.exponent_mask() / 2, number, (number % 8) | CASCADE, low, high];
                let name = format!("{}_cascade_{name}", dtype.name().to_lowercase());
                seeds.push((name, [&prefix[..], &pattern].concat()));
            }
        }
    }
    Ok(seeds)
}
