//! Who runs a job: the backend, or, for codecs that it lacks, the fallback.

use std::borrow::Cow;

use enec_format::{DecodePlan, EncodeOutcome, EncodePlan, reference};

use crate::{
    Backend, Codec, DecodeBatch, DecodeJob, DeviceSlice, EncodeBatch, EncodeJob, PieceSink, Result, Source, Target,
};

impl Codec {
    /// Runs encode jobs and gives each one's result, in their order. Those of a codec that the backend lacks pass through host memory.
    ///
    /// # Errors
    ///
    /// As [`EncodeBatch::push`] and [`Backend::encode`].
    pub(crate) fn encode_jobs(
        &self,
        jobs: Vec<EncodeJob<'_>>,
        busy_cores: usize,
    ) -> Result<Vec<Result<EncodeOutcome>>> {
        let codecs = self.backend().info().codecs;
        let is_own = |job: &EncodeJob<'_>| codecs.encodes(job.plan().coding());
        if jobs.iter().all(is_own) {
            return encode_on(self.backend().as_ref(), jobs, busy_cores);
        }
        let (own, others) = split(jobs, is_own);
        let (indices, own): (Vec<_>, Vec<_>) = own.into_iter().unzip();
        let mut results: Vec<_> =
            indices.into_iter().zip(encode_on(self.backend().as_ref(), own, busy_cores)?).collect();
        let mut staged = stage(self.backend().as_ref(), others, EncodeJob::into_parts)?;
        let outcomes = match self.fallback() {
            Some(fallback) => {
                let jobs = staged.iter_mut().map(|job| {
                    let (source, target) = (Source::Host(&job.source), Target::Host(job.target.bytes()));
                    let host = EncodeJob::new(job.plan.clone(), source, target);
                    if let Some(pieces) = job.pieces { host.with_pieces(pieces) } else { host }
                });
                encode_on(fallback.as_ref(), jobs.collect(), busy_cores)?
            }
            None => staged.iter_mut().map(Staged::encode_by_reference).collect(),
        };
        for (outcome, job) in outcomes.into_iter().zip(staged) {
            let written = outcome.and_then(|outcome| {
                let layout = job.plan.written(outcome)?;
                job.target.upload(self.backend().as_ref(), layout.front_len()..layout.stream_len)?;
                Ok(outcome)
            });
            results.push((job.index, written));
        }
        Ok(in_order(results))
    }

    /// Runs decode jobs and gives each one's result, in their order. Those of a codec that the backend lacks pass through host memory.
    ///
    /// # Errors
    ///
    /// As [`DecodeBatch::push`] and [`Backend::decode`].
    pub(crate) fn decode_jobs(&self, jobs: Vec<DecodeJob<'_>>, busy_cores: usize) -> Result<Vec<Result<()>>> {
        let codecs = self.backend().info().codecs;
        let is_own = |job: &DecodeJob<'_>| codecs.decodes(job.plan().layout().coding);
        if jobs.iter().all(is_own) {
            return decode_on(self.backend().as_ref(), jobs, busy_cores);
        }
        let (own, others) = split(jobs, is_own);
        let (indices, own): (Vec<_>, Vec<_>) = own.into_iter().unzip();
        let mut results: Vec<_> =
            indices.into_iter().zip(decode_on(self.backend().as_ref(), own, busy_cores)?).collect();
        let mut staged = stage(self.backend().as_ref(), others, DecodeJob::into_parts)?;
        let decoded = match self.fallback() {
            Some(fallback) => {
                let jobs = staged.iter_mut().map(|job| {
                    let (source, target) = (Source::Host(&job.source), Target::Host(job.target.bytes()));
                    let host = DecodeJob::new(job.plan.clone(), source, target);
                    if let Some(pieces) = job.pieces { host.with_pieces(pieces) } else { host }
                });
                decode_on(fallback.as_ref(), jobs.collect(), busy_cores)?
            }
            None => {
                let decode = |job: &mut Staged<'_, DecodePlan>| {
                    reference::decode(&job.plan, &job.source, job.target.bytes()).map_err(Into::into)
                };
                staged.iter_mut().map(decode).collect()
            }
        };
        for (decoded, job) in decoded.into_iter().zip(staged) {
            let len = job.plan.target_len();
            results.push((job.index, decoded.and_then(|()| job.target.upload(self.backend().as_ref(), 0..len))));
        }
        Ok(in_order(results))
    }
}

/// Something with the index of its job.
type Indexed<T> = (usize, T);

fn split<J>(jobs: Vec<J>, is_own: impl Fn(&J) -> bool) -> (Vec<Indexed<J>>, Vec<Indexed<J>>) {
    jobs.into_iter().enumerate().partition(|(_, job)| is_own(job))
}

fn in_order<T>(mut results: Vec<Indexed<T>>) -> Vec<T> {
    results.sort_by_key(|&(index, _)| index);
    results.into_iter().map(|(_, result)| result).collect()
}

fn encode_on(backend: &dyn Backend, jobs: Vec<EncodeJob<'_>>, busy_cores: usize) -> Result<Vec<Result<EncodeOutcome>>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut batch = EncodeBatch::of(backend.info(), jobs)?.with_busy_cores(busy_cores);
    backend.encode(&mut batch)?;
    Ok(batch.into_results().collect())
}

fn decode_on(backend: &dyn Backend, jobs: Vec<DecodeJob<'_>>, busy_cores: usize) -> Result<Vec<Result<()>>> {
    if jobs.is_empty() {
        return Ok(Vec::new());
    }
    let mut batch = DecodeBatch::of(backend.info(), jobs)?.with_busy_cores(busy_cores);
    backend.decode(&mut batch)?;
    Ok(batch.into_results().collect())
}

/// A job whose places are in host memory, whatever they were.
struct Staged<'a, Plan> {
    index: usize,
    plan: Plan,
    source: Cow<'a, [u8]>,
    target: StagedTarget<'a>,
    pieces: Option<&'a dyn PieceSink>,
}

/// What a job is taken apart into.
type Parts<'a, Plan> = (Plan, Source<'a>, Target<'a>, Option<&'a dyn PieceSink>);

/// Brings the jobs' sources to host memory.
fn stage<'a, J, Plan>(
    backend: &dyn Backend,
    jobs: Vec<Indexed<J>>,
    parts: impl Fn(J) -> Parts<'a, Plan>,
) -> Result<Vec<Staged<'a, Plan>>> {
    jobs.into_iter().map(|(index, job)| Staged::new(backend, index, parts(job))).collect()
}

enum StagedTarget<'a> {
    Host(&'a mut [u8]),
    /// Host memory, and where its bytes belong.
    Device(Vec<u8>, DeviceSlice),
}

impl<'a, Plan> Staged<'a, Plan> {
    fn new(backend: &dyn Backend, index: usize, parts: Parts<'a, Plan>) -> Result<Self> {
        let (plan, source, target, pieces) = parts;
        let source = match source {
            Source::Host(bytes) => Cow::Borrowed(bytes),
            Source::Device(slice) => {
                let mut bytes = vec![0; slice.len()];
                backend.download(&slice, &mut bytes)?;
                Cow::Owned(bytes)
            }
        };
        let target = match target {
            Target::Host(bytes) => StagedTarget::Host(bytes),
            Target::Device(slice) => StagedTarget::Device(vec![0; slice.len()], slice),
        };
        Ok(Self { index, plan, source, target, pieces })
    }
}

impl Staged<'_, EncodePlan> {
    /// As a backend does it: what lies before the block table is not touched.
    fn encode_by_reference(&mut self) -> Result<EncodeOutcome> {
        let target = self.target.bytes();
        let front = target.get(..self.plan.layout().front_len()).unwrap_or(&[]).to_vec();
        let outcome = reference::encode(&self.plan, &self.source, target)?;
        let written = self.plan.written(outcome)?.front_len();
        target[..written].copy_from_slice(&front[..written]);
        Ok(outcome)
    }
}

impl StagedTarget<'_> {
    fn bytes(&mut self) -> &mut [u8] {
        match self {
            StagedTarget::Host(bytes) => bytes,
            StagedTarget::Device(bytes, _) => bytes,
        }
    }

    /// Brings a range to where it belongs.
    fn upload(self, backend: &dyn Backend, range: std::ops::Range<usize>) -> Result<()> {
        match self {
            StagedTarget::Host(_) => Ok(()),
            StagedTarget::Device(bytes, slice) => backend.upload(&bytes[range.clone()], &slice.slice(range)?),
        }
    }
}
