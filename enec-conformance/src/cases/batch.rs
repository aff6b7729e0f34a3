//! Batches: many jobs of all kinds at once, none at all, and several at a time.

use enec_core::search::search;
use enec_core::{CodecChoice, DecodeBatch, EncodeBatch, JobStatus};
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Coding, Dtype, Stream, reference};

use crate::codecs::{CODECS, Needs, searched};
use crate::guarded::Place;
use crate::inputs::{Input, distributions};
use crate::jobs::{Decoded, Decoding, Encoding, check_decodings, check_encodings};
use crate::random::SplitMix64;
use crate::{Case, Result, Subject, ensure};

pub(super) fn cases() -> Vec<Case> {
    let of_codecs = CODECS.into_iter().flat_map(|(choice, prefix)| {
        let needs = Needs::of(choice, Needs::Both);
        [
            Case::new(format!("{prefix}batch/mixed"), move |subject| mixed(subject, choice, 1)).needing(needs),
            Case::new(format!("{prefix}batch/small"), move |subject| small(subject, choice)).needing(needs),
        ]
    });
    let others = [
        Case::new("batch/empty", empty),
        Case::new("batch/every_job_has_a_status", every_job_has_a_status),
        Case::new("batch/one_bad_job", one_bad_job),
        Case::new("batch/several_threads", several_threads),
    ];
    of_codecs.chain(others).collect()
}

const PLACES: [Place; 4] = [Place::HOST, Place::DEVICE, Place::Host(3), Place::Device(8)];

/// Also with jobs of other codecs in between.
fn mixed(subject: &Subject, choice: CodecChoice, seed: u64) -> Result {
    let mut random = SplitMix64::new(seed);
    let counts =
        [0, 1, 100, TILE_ELEMENTS, 2 * TILE_ELEMENTS + 1, BLOCK_ELEMENTS, BLOCK_ELEMENTS + 5 * TILE_ELEMENTS + 9];
    let mut tensors = Vec::new();
    for index in 0..40 {
        let dtype = Dtype::FLOATS[random.below(3)];
        let distributions = distributions(dtype);
        let (name, input) = &distributions[random.below(distributions.len())];
        let elements = input.bytes(dtype, counts[random.below(counts.len())]);
        tensors.push((format!("job {index}: {} bytes of {name} as {}", elements.len(), dtype.name()), dtype, elements));
    }
    let encodings = tensors.iter().map(|(name, dtype, elements)| {
        let choice = if random.below(4) == 0 { CodecChoice::Enec } else { choice };
        let coding = searched(choice, *dtype, elements);
        let encoding = Encoding::of(name, *dtype, coding, elements)?;
        Ok(encoding.placed(PLACES[random.below(4)], PLACES[random.below(4)]))
    });
    let encodings: Vec<Encoding<'_>> = encodings.collect::<Result<_>>()?;
    check_encodings(subject, &encodings)?;
    let streams = encodings.iter().map(|encoding| reference::encode_plan(&encoding.plan, encoding.elements));
    let streams: Vec<Vec<u8>> = streams.collect::<Result<_, _>>()?;
    let decodings = encodings.iter().zip(&streams).map(|(encoding, stream)| {
        let decoding = Decoding::of(&encoding.name, stream)?.expecting(encoding.elements);
        Ok(decoding.placed(encoding.to, encoding.from))
    });
    check_decodings(subject, &decodings.collect::<Result<Vec<_>>>()?)
}

/// More jobs than a device has workers, of one tile each.
fn small(subject: &Subject, choice: CodecChoice) -> Result {
    let tensors: Vec<Vec<u8>> = (0..300)
        .map(|seed| Input::Weights { seed, top: 100 + seed % 28, zeros: 0 }.bytes(Dtype::Bf16, TILE_ELEMENTS))
        .collect();
    let encodings = tensors.iter().enumerate().map(|(index, elements)| {
        let coding = searched(choice, Dtype::Bf16, elements);
        Encoding::of(format!("job {index}"), Dtype::Bf16, coding, elements)
    });
    let encodings: Vec<Encoding<'_>> = encodings.collect::<Result<_>>()?;
    check_encodings(subject, &encodings)?;
    let streams = encodings.iter().map(|encoding| reference::encode_plan(&encoding.plan, encoding.elements));
    let streams: Vec<Vec<u8>> = streams.collect::<Result<_, _>>()?;
    let decodings = streams
        .iter()
        .zip(&tensors)
        .enumerate()
        .map(|(index, (stream, elements))| Ok(Decoding::of(format!("job {index}"), stream)?.expecting(elements)));
    check_decodings(subject, &decodings.collect::<Result<Vec<_>>>()?)
}

fn empty(subject: &Subject) -> Result {
    let backend = subject.backend();
    backend.encode(&mut EncodeBatch::new(backend.info()))?;
    backend.decode(&mut DecodeBatch::new(backend.info()))?;
    Ok(())
}

/// Jobs without any work have a status too.
fn every_job_has_a_status(subject: &Subject) -> Result {
    let elements = Input::Weights { seed: 71, top: 15, zeros: 0 }.bytes(Dtype::F16, TILE_ELEMENTS + 1);
    let stream = reference::encode_stream(Dtype::F16, Coding::TwoWindows(search(Dtype::F16, &elements)), &elements)?;
    let (backend, opened) = (subject.backend(), Stream::open(&stream)?);
    let plan = enec_format::DecodePlan::whole(&opened);
    let mut targets: Vec<Vec<u8>> = vec![vec![0; plan.target_len()]; 5];
    let mut batch = DecodeBatch::new(backend.info());
    for (index, target) in targets.iter_mut().enumerate() {
        let plan = if index % 2 == 0 { plan.clone() } else { plan.clone().with_tiles(1..1, false)? };
        let source = enec_core::Source::Host(&stream);
        batch.push(enec_core::DecodeJob::new(plan, source, enec_core::Target::Host(target)))?;
    }
    backend.decode(&mut batch)?;
    for (index, job) in batch.jobs().iter().enumerate() {
        ensure!(matches!(job.status(), JobStatus::Done(())), "job {index} is {:?}", job.status());
    }
    Ok(())
}

/// A stream that was rewritten after its validation, first, in the middle and last among good ones.
fn one_bad_job(subject: &Subject) -> Result {
    let elements = Input::Weights { seed: 70, top: 120, zeros: 3 }.bytes(Dtype::Bf16, BLOCK_ELEMENTS + 3);
    let coding = Coding::TwoWindows(search(Dtype::Bf16, &elements));
    let intact = reference::encode_stream(Dtype::Bf16, coding, &elements)?;
    let good = Decoding::of("good job", &intact)?.expecting(&elements);
    let mut changed = intact.clone();
    changed[good.plan.layout().table.offset..good.plan.layout().mask.range().end].fill(0xFF);
    let bad = Decoding::by_plan("bad job", good.plan.clone(), &changed);
    for position in [0, 2, 4] {
        let mut decodings = vec![good.clone(); 4];
        decodings.insert(position, bad.clone());
        let decoded = Decoded::run(subject, &decodings)?;
        for index in (0..decodings.len()).filter(|&index| index != position) {
            decoded.check(subject, &decodings, index)?;
        }
    }
    Ok(())
}

/// One backend value is one queue, but any thread may use it.
fn several_threads(subject: &Subject) -> Result {
    std::thread::scope(|scope| {
        let threads: Vec<_> = (2..5).map(|seed| scope.spawn(move || mixed(subject, CodecChoice::Enec, seed))).collect();
        threads.into_iter().try_for_each(|thread| thread.join().unwrap_or_else(|_| Err("a thread panicked".into())))
    })
}
