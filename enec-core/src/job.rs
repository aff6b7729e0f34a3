//! Jobs: one conversion each, with a validated plan and places whose sizes have been checked.

use enec_format::{DecodePlan, EncodeOutcome, EncodePlan, FormatError, FormatErrorKind};

use crate::codecs::codec_name;
use crate::{DeviceInfo, DeviceSlice, Error, Result};

/// Where a job reads.
#[derive(Debug)]
pub enum Source<'a> {
    /// Host memory.
    Host(&'a [u8]),
    /// Device memory.
    Device(DeviceSlice),
}

impl Source<'_> {
    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Source::Host(bytes) => bytes.len(),
            Source::Device(slice) => slice.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn device(&self) -> Option<&DeviceSlice> {
        match self {
            Source::Host(_) => None,
            Source::Device(slice) => Some(slice),
        }
    }
}

/// Where a job writes.
#[derive(Debug)]
pub enum Target<'a> {
    /// Host memory.
    Host(&'a mut [u8]),
    /// Device memory.
    Device(DeviceSlice),
}

impl Target<'_> {
    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        match self {
            Target::Host(bytes) => bytes.len(),
            Target::Device(slice) => slice.len(),
        }
    }

    /// Whether there are none.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    fn device(&self) -> Option<&DeviceSlice> {
        match self {
            Target::Host(_) => None,
            Target::Device(slice) => Some(slice),
        }
    }

    fn as_mut(&mut self) -> TargetMut<'_> {
        match self {
            Target::Host(bytes) => TargetMut::Host(bytes),
            Target::Device(slice) => TargetMut::Device(slice),
        }
    }
}

/// A [`Target`] as a backend sees it: it can be written, not exchanged for another.
#[derive(Debug)]
pub enum TargetMut<'t> {
    /// Host memory.
    Host(&'t mut [u8]),
    /// Device memory.
    Device(&'t DeviceSlice),
}

/// Hands bytes, piece by piece, to what it is called with.
pub type Feed<'a> = dyn FnMut(&mut dyn FnMut(&[u8])) + 'a;

/// Takes the pieces of a job while they are in cache, so that core can hash them there.
///
/// A backend that has the bytes in host memory calls it, from any thread, at most once for each block that the job covers whole, with
/// the tail behind it if there is one. It need not: what it leaves out core hashes afterwards. Stored streams have no blocks to report.
/// What was reported of a job that ends as stored counts for its content only: core discards the payload.
pub trait PieceSink: Sync {
    /// The decoded bytes of block `block` of the plan's layout; those of the last block go on through the tail.
    fn content(&self, block: usize, decoded: &[u8]);

    /// The stored parts of block `block`, in stream order: entry, mask, byte plane, extra plane, low plane, segment.
    fn payload(&self, block: usize, parts: &[&[u8]; 6]);

    /// Whether the payload is wanted. If not, a backend need not report it.
    fn wants_payload(&self) -> bool {
        true
    }

    /// As [`content`](Self::content), from a backend that hands the bytes over piece by piece while they are in the cache: `feed` is
    /// called once and calls what it is given with each of them in order.
    fn content_in_parts(&self, block: usize, feed: &mut Feed<'_>) {
        let mut decoded = Vec::new();
        feed(&mut |bytes| decoded.extend_from_slice(bytes));
        self.content(block, &decoded);
    }
}

/// What became of a job.
#[derive(Debug, Default)]
pub enum JobStatus<T> {
    /// Not run yet.
    #[default]
    Pending,
    /// Done.
    Done(T),
    /// Something is wrong with this job; the others are not affected.
    Failed(Error),
}

impl<T> JobStatus<T> {
    /// The result of a job that has run.
    ///
    /// # Errors
    ///
    /// The job's own error, or [`Error::Device`] if a backend forgot it.
    pub fn into_result(self) -> Result<T> {
        match self {
            JobStatus::Done(value) => Ok(value),
            JobStatus::Failed(error) => Err(error),
            JobStatus::Pending => {
                Err(Error::Device { device: "backend".into(), message: "returned without running a job".into() })
            }
        }
    }
}

macro_rules! job_and_batch {
    ($job:ident, $checked:ident, $batch:ident, $plan:ty, $outcome:ty, $verb:literal, $has:ident, $coding:expr) => {
        #[doc = concat!("One tensor, window or range to ", $verb, ".")]
        pub struct $job<'a> {
            plan: $plan,
            source: Source<'a>,
            target: Target<'a>,
            pieces: Option<&'a dyn PieceSink>,
            status: JobStatus<$outcome>,
        }

        impl<'a> $job<'a> {
            /// A job; its buffers are checked when it joins a batch.
            #[must_use]
            pub fn new(plan: $plan, source: Source<'a>, target: Target<'a>) -> Self {
                Self { plan, source, target, pieces: None, status: JobStatus::Pending }
            }

            /// The same job, reporting its pieces.
            #[must_use]
            pub fn with_pieces(mut self, pieces: &'a dyn PieceSink) -> Self {
                self.pieces = Some(pieces);
                self
            }

            /// The plan.
            #[must_use]
            pub fn plan(&self) -> &$plan {
                &self.plan
            }

            /// What became of the job.
            #[must_use]
            pub fn status(&self) -> &JobStatus<$outcome> {
                &self.status
            }

            pub(crate) fn into_parts(self) -> ($plan, Source<'a>, Target<'a>, Option<&'a dyn PieceSink>) {
                (self.plan, self.source, self.target, self.pieces)
            }

            /// Takes the result out of a job that has run.
            ///
            /// # Errors
            ///
            /// The job's own.
            pub fn into_result(self) -> Result<$outcome> {
                self.status.into_result()
            }
        }

        /// A job of a batch as the backend that runs it sees it. Neither the job nor its places can be exchanged for others, so that what the batch
        /// has checked stays true.
        pub struct $checked<'j, 'a>(&'j mut $job<'a>);

        impl<'a> $checked<'_, 'a> {
            /// The plan.
            #[must_use]
            pub fn plan(&self) -> &$plan {
                &self.0.plan
            }

            /// All that is needed to run the job.
            #[must_use]
            pub fn split(&mut self) -> (&$plan, &Source<'a>, TargetMut<'_>, Option<&'a dyn PieceSink>) {
                (&self.0.plan, &self.0.source, self.0.target.as_mut(), self.0.pieces)
            }

            /// Says what became of the job.
            pub fn finish(&mut self, result: Result<$outcome>) {
                self.0.status = match result {
                    Ok(value) => JobStatus::Done(value),
                    Err(error) => JobStatus::Failed(error),
                };
            }
        }

        #[doc = concat!("Checked jobs that a backend may ", $verb, " in any order.")]
        pub struct $batch<'a> {
            device: &'a DeviceInfo,
            jobs: Vec<$job<'a>>,
            busy_cores: usize,
        }

        impl<'a> $batch<'a> {
            /// An empty batch for a device.
            #[must_use]
            pub fn new(device: &'a DeviceInfo) -> Self {
                Self { device, jobs: Vec::new(), busy_cores: 0 }
            }

            /// A batch of these jobs, which stay where they are.
            ///
            /// # Errors
            ///
            /// As [`push`](Self::push).
            pub fn of(device: &'a DeviceInfo, jobs: Vec<$job<'a>>) -> Result<Self> {
                jobs.iter().enumerate().try_for_each(|(index, job)| Self::check(device, &jobs[..index], job))?;
                Ok(Self { device, jobs, busy_cores: 0 })
            }

            /// Adds a job.
            ///
            /// # Errors
            ///
            /// [`Error::Format`] if source or target have not the planned size, [`Error::Argument`] if the device lacks the codec, if device
            /// memory is another backend's, or if a target overlaps memory that this batch uses.
            pub fn push(&mut self, job: $job<'a>) -> Result<()> {
                Self::check(self.device, &self.jobs, &job)?;
                self.jobs.push(job);
                Ok(())
            }

            /// Checks a job that joins those before it.
            fn check(device: &DeviceInfo, before: &[$job<'_>], job: &$job<'_>) -> Result<()> {
                let coding = $coding(&job.plan);
                if !device.codecs.$has(coding) {
                    let (backend, codec) = (device.backend, codec_name(coding));
                    return Err(Error::Argument(format!(
                        concat!("`{}` does not ", $verb, " codec `{}`"),
                        backend, codec
                    )));
                }
                check_lengths(job.plan.source_len(), job.plan.target_len(), &job.source, &job.target)?;
                for slice in job.source.device().into_iter().chain(job.target.device()) {
                    device.check_owner(slice)?;
                }
                let others = || before.iter().chain(std::iter::once(job));
                let sources = || others().filter_map(|other| other.source.device());
                let targets = || before.iter().filter_map(|other| other.target.device());
                let overlaps = |a: &DeviceSlice, b: &DeviceSlice| a.overlaps(b);
                let written_twice = job.target.device().is_some_and(|target| targets().any(|t| overlaps(t, target)));
                let read_and_written = job.target.device().is_some_and(|target| sources().any(|s| overlaps(s, target)))
                    || job.source.device().is_some_and(|source| targets().any(|t| overlaps(t, source)));
                if written_twice || read_and_written {
                    return Err(Error::Argument("a job's target overlaps memory that its batch uses".into()));
                }
                Ok(())
            }

            /// The same batch, while its caller keeps so many of the host's cores busy with something else that should not have to wait.
            #[must_use]
            pub fn with_busy_cores(mut self, busy_cores: usize) -> Self {
                self.busy_cores = busy_cores;
                self
            }

            /// Cores of the host that a backend leaves to its caller's other work, but for one that it has in any case.
            #[must_use]
            pub fn busy_cores(&self) -> usize {
                self.busy_cores
            }

            /// The device that the jobs are for. A backend refuses those of another.
            #[must_use]
            pub fn device(&self) -> &DeviceInfo {
                self.device
            }

            /// The jobs.
            #[must_use]
            pub fn jobs(&self) -> &[$job<'a>] {
                &self.jobs
            }

            /// The jobs, for the backend that runs them.
            pub fn checked_jobs(&mut self) -> impl ExactSizeIterator<Item = $checked<'_, 'a>> {
                self.jobs.iter_mut().map($checked)
            }

            /// The jobs' results, in the order in which they were added.
            ///
            /// # Errors
            ///
            /// Each job's own.
            pub fn into_results(self) -> impl Iterator<Item = Result<$outcome>> {
                self.jobs.into_iter().map($job::into_result)
            }
        }
    };
}

job_and_batch!(
    EncodeJob,
    CheckedEncodeJob,
    EncodeBatch,
    EncodePlan,
    EncodeOutcome,
    "encode",
    encodes,
    |plan: &EncodePlan| plan.coding()
);
job_and_batch!(DecodeJob, CheckedDecodeJob, DecodeBatch, DecodePlan, (), "decode", decodes, |plan: &DecodePlan| plan
    .layout()
    .coding);

/// Sources must be as long as planned; targets may be longer, and what lies beyond the plan is left alone.
fn check_lengths(source_len: usize, target_len: usize, source: &Source<'_>, target: &Target<'_>) -> Result<()> {
    if source.len() != source_len {
        let kind = FormatErrorKind::SourceLength { expected: source_len as u64, found: source.len() as u64 };
        return Err(FormatError::new(kind, 0).into());
    }
    if target.len() < target_len {
        let kind = FormatErrorKind::TargetLength { expected: target_len as u64, found: target.len() as u64 };
        return Err(FormatError::new(kind, 0).into());
    }
    Ok(())
}
