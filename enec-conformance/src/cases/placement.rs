//! Placement: host and device memory in all pairs, at any offset, with nothing around them touched.

use enec_core::{CodecChoice, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, Source, Target};
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{DecodePlan, Dtype, EncodePlan, Stream, reference};

use crate::codecs::{CODECS, Needs, searched};
use crate::guarded::Place;
use crate::inputs::Input;
use crate::jobs::{Decoding, Encoding, check_decodings, check_encodings, same};
use crate::{Case, Result, Subject, ensure};

/// Offsets from an alignment of 64, by what they are a multiple of.
const ALIGNMENTS: [(&str, [usize; 2]); 3] = [("aligned", [0, 0]), ("words", [4, 36]), ("odd", [1, 43])];

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for ((choice, prefix), (alignment, offsets)) in CODECS.into_iter().flat_map(|codec| ALIGNMENTS.map(|a| (codec, a)))
    {
        let needs = Needs::of(choice, Needs::Both);
        for (from, from_device) in [("host", false), ("device", true)] {
            for (to, to_device) in [("host", false), ("device", true)] {
                let place = |device, offset| if device { Place::Device(offset) } else { Place::Host(offset) };
                let (source, target) = (place(from_device, offsets[0]), place(to_device, offsets[1]));
                let name = format!("{prefix}placement/{alignment}/{from}_to_{to}");
                cases.push(Case::new(name, move |subject| placed(subject, choice, source, target)).needing(needs));
            }
        }
        let name = format!("{prefix}placement/{alignment}/neighbours");
        cases.push(Case::new(name, move |subject| neighbours(subject, choice, offsets)).needing(needs));
    }
    cases
}

/// Tensors that end as coded with every kind of section, and as stored, with odd tails.
fn tensors() -> Vec<(Dtype, Vec<u8>)> {
    let mut tensors = Vec::new();
    for dtype in Dtype::FLOATS {
        let weights = Input::Weights { seed: 40, top: u64::from(dtype.exponent_mask() / 2), zeros: 1 };
        for count in [TILE_ELEMENTS, BLOCK_ELEMENTS + TILE_ELEMENTS + 35] {
            tensors.push((dtype, weights.bytes(dtype, count)));
        }
        tensors.push((dtype, Input::Uniform { seed: 41 }.bytes(dtype, TILE_ELEMENTS + 1)));
        tensors.push((dtype, weights.bytes(dtype, 21)));
        tensors.push((dtype, Vec::new()));
    }
    tensors.push((Dtype::Opaque, Input::Uniform { seed: 42 }.bytes(Dtype::Opaque, 77)));
    tensors
}

fn placed(subject: &Subject, choice: CodecChoice, from: Place, to: Place) -> Result {
    let tensors = tensors();
    let (mut encodings, mut streams) = (Vec::new(), Vec::new());
    for (index, (dtype, elements)) in tensors.iter().enumerate() {
        let name = format!("{} bytes of {}", elements.len(), dtype.name());
        let mut encoding = Encoding::of(name, *dtype, searched(choice, *dtype, elements), elements)?.placed(from, to);
        encoding.spare = index % 3 * 29;
        streams.push(reference::encode_plan(&encoding.plan, elements)?);
        encodings.push(encoding);
    }
    check_encodings(subject, &encodings)?;
    let decodings = encodings.iter().zip(&streams).map(|(encoding, stream)| {
        let mut decoding = Decoding::of(&encoding.name, stream)?.expecting(encoding.elements);
        (decoding.from, decoding.to, decoding.spare) = (from, to, encoding.spare);
        Ok(decoding)
    });
    check_decodings(subject, &decodings.collect::<Result<Vec<_>>>()?)
}

/// Jobs of one batch whose sources and targets lie one behind the other in the same two buffers, with a byte or a few between: a
/// job that writes whole words, and not its bytes only, breaks its neighbour.
fn neighbours(subject: &Subject, choice: CodecChoice, offsets: [usize; 2]) -> Result {
    let backend = subject.backend();
    let gap = if offsets == [0, 0] { 64 } else { offsets[0] };
    let tensors = tensors();
    let coded = tensors.iter().map(|(dtype, elements)| {
        let plan = EncodePlan::new(*dtype, searched(choice, *dtype, elements), elements.len() / dtype.element_bytes())?;
        let stream = reference::encode_plan(&plan, elements)?;
        Ok((plan, stream))
    });
    let coded: Vec<(EncodePlan, Vec<u8>)> = coded.collect::<Result<_>>()?;

    let layout = |lengths: &mut dyn Iterator<Item = usize>| {
        let mut end = offsets[1];
        let starts = lengths.map(|len| {
            let start = end;
            end = start + len + gap;
            if gap == 64 {
                end = end.next_multiple_of(64);
            }
            start..start + len
        });
        let ranges: Vec<_> = starts.collect();
        (ranges, end)
    };
    let (sources, sources_len) = layout(&mut tensors.iter().map(|(_, elements)| elements.len()));
    let (targets, targets_len) = layout(&mut coded.iter().map(|(plan, _)| plan.target_len()));

    let (from, to) = (backend.alloc(sources_len)?, backend.alloc(targets_len)?);
    let mut expected_targets = vec![0xEE; targets_len];
    backend.upload(&expected_targets, &to.full())?;
    let mut batch = EncodeBatch::new(backend.info());
    for index in 0..tensors.len() {
        let (source, target) = (from.slice(sources[index].clone())?, to.slice(targets[index].clone())?);
        backend.upload(&tensors[index].1, &source)?;
        batch.push(EncodeJob::new(coded[index].0.clone(), Source::Device(source), Target::Device(target)))?;
    }
    backend.encode(&mut batch)?;
    batch.into_results().try_for_each(|result| result.map(|_| ()))?;
    let mut written = vec![0; targets_len];
    backend.download(&to.full(), &mut written)?;
    for (range, (_, stream)) in targets.iter().zip(&coded) {
        let front = Stream::open(stream)?.header().front_len();
        let body = range.start + front..range.start + stream.len();
        expected_targets[body.clone()].copy_from_slice(&stream[front..]);
        // Between the stream's end and the plan's an encoder may leave what it likes.
        let unused = body.end..range.end;
        expected_targets[unused.clone()].copy_from_slice(&written[unused]);
    }
    same(&written, &expected_targets, |at| format!("encoded neighbours, byte {at} of the buffer"))?;

    for (range, (_, stream)) in targets.iter().zip(&coded) {
        backend.upload(stream, &to.slice(range.start..range.start + stream.len())?)?;
    }
    let mut expected_sources = vec![0xEE; sources_len];
    backend.upload(&expected_sources, &from.full())?;
    let mut batch = DecodeBatch::new(backend.info());
    for (index, (_, stream)) in coded.iter().enumerate() {
        let plan = DecodePlan::whole(&Stream::open(stream)?);
        let source = to.slice(targets[index].start..targets[index].start + stream.len())?;
        let target = from.slice(sources[index].clone())?;
        batch.push(DecodeJob::new(plan, Source::Device(source), Target::Device(target)))?;
        expected_sources[sources[index].clone()].copy_from_slice(&tensors[index].1);
    }
    backend.decode(&mut batch)?;
    batch.into_results().collect::<enec_core::Result<Vec<()>>>()?;
    let mut written = vec![0; sources_len];
    backend.download(&from.full(), &mut written)?;
    ensure!(sources.len() == tensors.len(), "one range per tensor");
    same(&written, &expected_sources, |at| format!("decoded neighbours, byte {at} of the buffer"))
}
