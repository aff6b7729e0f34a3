//! Runs jobs and compares what they wrote with the reference codec.

use enec_core::{DecodeBatch, DecodeJob, EncodeBatch, EncodeJob};
use enec_format::{Coding, DecodePlan, Dtype, EncodePlan, Layout, Stream, reference};

use crate::codecs::Needs;
use crate::guarded::{Guarded, Place};
use crate::{Result, Subject, ensure};

/// One encode job with its places.
#[derive(Debug, Clone)]
pub struct Encoding<'a> {
    /// For messages.
    pub name: String,
    /// The plan.
    pub plan: EncodePlan,
    /// The elements.
    pub elements: &'a [u8],
    /// Where the elements lie.
    pub from: Place,
    /// Where the stream goes.
    pub to: Place,
    /// Bytes by which the target is longer than planned.
    pub spare: usize,
}

impl<'a> Encoding<'a> {
    /// By the stored rule, in aligned host memory.
    ///
    /// # Errors
    ///
    /// Of the plan.
    pub fn of(name: impl Into<String>, dtype: Dtype, coding: Coding, elements: &'a [u8]) -> Result<Self> {
        let plan = EncodePlan::new(dtype, coding, elements.len() / dtype.element_bytes())?;
        Ok(Self::by_plan(name, plan, elements))
    }

    /// Without the stored rule, in aligned host memory.
    ///
    /// # Errors
    ///
    /// Of the plan.
    pub fn forced(
        name: impl Into<String>,
        dtype: Dtype,
        coding: impl Into<Coding>,
        elements: &'a [u8],
    ) -> Result<Self> {
        let plan = EncodePlan::window(dtype, coding, elements.len() / dtype.element_bytes(), 0)?;
        Ok(Self::by_plan(name, plan, elements))
    }

    /// By a plan, in aligned host memory.
    pub fn by_plan(name: impl Into<String>, plan: EncodePlan, elements: &'a [u8]) -> Self {
        Self { name: name.into(), plan, elements, from: Place::HOST, to: Place::HOST, spare: 0 }
    }

    /// The same job elsewhere.
    #[must_use]
    pub fn placed(mut self, from: Place, to: Place) -> Self {
        (self.from, self.to) = (from, to);
        self.name += &format!(", {from:?} to {to:?}");
        self
    }
}

/// Runs encode jobs as one batch and compares every byte.
///
/// # Errors
///
/// The first difference, or the device's error.
pub fn check_encodings(subject: &Subject, encodings: &[Encoding<'_>]) -> Result {
    let backend = subject.backend();
    let sources = encodings.iter().map(|encoding| Guarded::holding(subject, encoding.from, encoding.elements));
    let sources: Vec<Guarded> = sources.collect::<Result<_>>()?;
    let targets = encodings
        .iter()
        .map(|encoding| Guarded::poisoned(subject, encoding.to, encoding.plan.target_len() + encoding.spare));
    let mut targets: Vec<Guarded> = targets.collect::<Result<_>>()?;
    let mut batch = EncodeBatch::new(backend.info());
    for ((encoding, source), target) in encodings.iter().zip(&sources).zip(&mut targets) {
        batch.push(EncodeJob::new(encoding.plan.clone(), source.source()?, target.target()?))?;
    }
    backend.encode(&mut batch)?;
    let outcomes: Vec<_> = batch.into_results().collect();
    for (((encoding, source), target), outcome) in encodings.iter().zip(&sources).zip(&targets).zip(outcomes) {
        let check = || -> Result {
            let outcome = outcome?;
            let mut expected = vec![0; encoding.plan.target_len()];
            let expected_outcome = reference::encode(&encoding.plan, encoding.elements, &mut expected)?;
            ensure!(outcome == expected_outcome, "outcome {outcome:?}, expected {expected_outcome:?}");
            let layout = encoding.plan.written(outcome)?;
            let written = target.checked(subject)?;
            let front = layout.front_len();
            same(&written[..front], &target.before()[..front], |at| format!("header byte {at} was touched"))?;
            let stream = front..layout.stream_len;
            same(&written[stream.clone()], &expected[stream], |at| place_in_stream(&layout, front + at))?;
            let beyond = encoding.plan.target_len()..;
            same(&written[beyond.clone()], &target.before()[beyond], |at| format!("byte {at} beyond the plan"))?;
            same(&source.checked(subject)?, encoding.elements, |at| format!("byte {at} of the source was touched"))
        };
        check().map_err(|error| format!("encode {}: {error}", encoding.name))?;
    }
    Ok(())
}

/// One decode job with its places.
#[derive(Debug, Clone)]
pub struct Decoding<'a> {
    /// For messages.
    pub name: String,
    /// The plan.
    pub plan: DecodePlan,
    /// The whole stream.
    pub stream: &'a [u8],
    /// The expected elements; by default what the reference decodes.
    pub expected: Option<&'a [u8]>,
    /// Where the stream lies.
    pub from: Place,
    /// Where the elements go.
    pub to: Place,
    /// Bytes by which the target is longer than planned.
    pub spare: usize,
}

impl<'a> Decoding<'a> {
    /// The whole of a stream, in aligned host memory.
    ///
    /// # Errors
    ///
    /// If the stream is not valid.
    pub fn of(name: impl Into<String>, stream: &'a [u8]) -> Result<Self> {
        Ok(Self::by_plan(name, DecodePlan::whole(&Stream::open(stream)?), stream))
    }

    /// By a plan, in aligned host memory.
    pub fn by_plan(name: impl Into<String>, plan: DecodePlan, stream: &'a [u8]) -> Self {
        Self { name: name.into(), plan, stream, expected: None, from: Place::HOST, to: Place::HOST, spare: 0 }
    }

    /// The same job with its result known.
    #[must_use]
    pub fn expecting(mut self, expected: &'a [u8]) -> Self {
        self.expected = Some(expected);
        self
    }

    /// The same job elsewhere.
    #[must_use]
    pub fn placed(mut self, from: Place, to: Place) -> Self {
        (self.from, self.to) = (from, to);
        self.name += &format!(", {from:?} to {to:?}");
        self
    }
}

/// Decode jobs that have run, with their buffers.
pub struct Decoded {
    /// Each job's own result.
    pub results: Vec<enec_core::Result<()>>,
    sources: Vec<Guarded>,
    targets: Vec<Guarded>,
}

impl Decoded {
    /// Runs decode jobs as one batch.
    ///
    /// # Errors
    ///
    /// The device's.
    pub fn run(subject: &Subject, decodings: &[Decoding<'_>]) -> Result<Self> {
        let backend = subject.backend();
        let sources = decodings.iter().map(|decoding| Guarded::holding(subject, decoding.from, decoding.stream));
        let sources: Vec<Guarded> = sources.collect::<Result<_>>()?;
        let targets = decodings
            .iter()
            .map(|decoding| Guarded::poisoned(subject, decoding.to, decoding.plan.target_len() + decoding.spare));
        let mut targets: Vec<Guarded> = targets.collect::<Result<_>>()?;
        let mut batch = DecodeBatch::new(backend.info());
        for ((decoding, source), target) in decodings.iter().zip(&sources).zip(&mut targets) {
            batch.push(DecodeJob::new(decoding.plan.clone(), source.source()?, target.target()?))?;
        }
        backend.decode(&mut batch)?;
        let results = batch.into_results().collect();
        Ok(Self { results, sources, targets })
    }

    /// Checks that nothing but the planned target of job `index` was written, and returns the target.
    ///
    /// # Errors
    ///
    /// The first stray write.
    pub fn target(&self, subject: &Subject, decodings: &[Decoding<'_>], index: usize) -> Result<Vec<u8>> {
        let (decoding, target) = (&decodings[index], &self.targets[index]);
        let mut written = target.checked(subject)?;
        let beyond = decoding.plan.target_len()..;
        same(&written[beyond.clone()], &target.before()[beyond], |at| format!("byte {at} beyond the plan"))?;
        let source = self.sources[index].checked(subject)?;
        same(&source, decoding.stream, |at| format!("byte {at} of the source was touched"))?;
        written.truncate(decoding.plan.target_len());
        Ok(written)
    }

    /// Checks that job `index` is done and wrote what the reference writes.
    ///
    /// # Errors
    ///
    /// The first difference.
    pub fn check(&self, subject: &Subject, decodings: &[Decoding<'_>], index: usize) -> Result {
        let decoding = &decodings[index];
        let check = || -> Result {
            if let Err(error) = &self.results[index] {
                return Err(error.to_string().into());
            }
            let written = self.target(subject, decodings, index)?;
            let layout = decoding.plan.layout();
            let describe = |at: usize| {
                let element = at / layout.dtype.element_bytes();
                let element = decoding.plan.tiles().start * enec_format::geometry::TILE_ELEMENTS + element;
                format!("byte {at}, {}", place_of_element(element))
            };
            match decoding.expected {
                Some(expected) => same(&written, expected, describe),
                None => {
                    let mut expected = vec![0; decoding.plan.target_len()];
                    reference::decode(&decoding.plan, decoding.stream, &mut expected)?;
                    same(&written, &expected, describe)
                }
            }
        };
        check().map_err(|error| format!("decode {}: {error}", decoding.name).into())
    }
}

/// Runs decode jobs as one batch and compares every byte.
///
/// # Errors
///
/// The first difference, or the device's error.
pub fn check_decodings(subject: &Subject, decodings: &[Decoding<'_>]) -> Result {
    let decoded = Decoded::run(subject, decodings)?;
    (0..decodings.len()).try_for_each(|index| decoded.check(subject, decodings, index))
}

/// Encodes and decodes every pair of coding and elements, in host memory, with and without the stored rule.
///
/// # Errors
///
/// The first difference, or the device's error.
pub fn check_parity(subject: &Subject, dtype: Dtype, cases: &[(String, Coding, &[u8])]) -> Result {
    check_parity_of(subject, dtype, cases, Needs::Both)
}

/// As [`check_parity`], one way or both.
pub(crate) fn check_parity_of(
    subject: &Subject,
    dtype: Dtype,
    cases: &[(String, Coding, &[u8])],
    ways: Needs,
) -> Result {
    let (mut encodings, mut streams) = (Vec::new(), Vec::new());
    for (name, coding, elements) in cases {
        let encoding = Encoding::of(name, dtype, *coding, elements)?;
        streams.push(reference::encode_plan(&encoding.plan, elements)?);
        encodings.push(encoding);
        if *coding != Coding::Stored && elements.len() >= dtype.tile_bytes() {
            let encoding = Encoding::forced(format!("{name}, forced"), dtype, *coding, elements)?;
            streams.push(reference::encode_plan(&encoding.plan, elements)?);
            encodings.push(encoding);
        }
    }
    if ways != Needs::Decoding {
        check_encodings(subject, &encodings)?;
    }
    if ways == Needs::Encoding {
        return Ok(());
    }
    let decodings = encodings.iter().zip(&streams);
    let decodings =
        decodings.map(|(encoding, stream)| Ok(Decoding::of(&encoding.name, stream)?.expecting(encoding.elements)));
    check_decodings(subject, &decodings.collect::<Result<Vec<_>>>()?)
}

/// Compares bytes; the message says where they differ first, how often, and how.
///
/// # Errors
///
/// The first difference.
pub fn same(found: &[u8], expected: &[u8], describe: impl Fn(usize) -> String) -> Result {
    ensure!(found.len() == expected.len(), "{} bytes, expected {}", found.len(), expected.len());
    if found == expected {
        return Ok(());
    }
    let differing: Vec<usize> = (0..found.len()).filter(|&at| found[at] != expected[at]).collect();
    let at = differing[0];
    let message = format!("found {:#04x}, expected {:#04x}; {} bytes differ", found[at], expected[at], differing.len());
    Err(format!("{}: {message}", describe(at)).into())
}

fn place_in_stream(layout: &Layout, at: usize) -> String {
    let section = layout.sections().into_iter().rfind(|(_, section)| section.len > 0 && section.offset <= at);
    match section {
        Some((name, section)) if section.range().contains(&at) => format!("byte {} of the {name}", at - section.offset),
        Some((name, section)) => format!("byte {} of the padding after the {name}", at - section.range().end),
        None => format!("header byte {at}"),
    }
}

fn place_of_element(element: usize) -> String {
    use enec_format::geometry::{LANES, TILE_ELEMENTS};
    let (tile, within) = (element / TILE_ELEMENTS, element % TILE_ELEMENTS);
    format!("element {element} (tile {tile}, row {}, lane {})", within / LANES, within % LANES)
}
