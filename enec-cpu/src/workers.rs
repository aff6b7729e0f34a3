//! The threads of one backend.

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use enec_core::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::kernels::Scratch;
use crate::schedule::{Part, Schedule};

/// The caller's thread and a pool of helpers. The caller begins at once and does everything itself if the helpers are late: waking a
/// thread takes as long as some hundred kilobytes take to decode.
#[derive(Debug)]
pub(crate) struct Workers {
    pool: Option<ThreadPool>,
    threads: usize,
    /// What threads reuse, while none of them has it.
    scratch: Mutex<Vec<Box<Scratch>>>,
}

impl Workers {
    /// This many threads; by default one per core.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the system refuses to start them.
    pub(crate) fn new(threads: Option<NonZeroUsize>) -> Result<Self> {
        let available = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN);
        let threads = threads.unwrap_or_else(available).get();
        let build =
            || ThreadPoolBuilder::new().num_threads(threads - 1).thread_name(|i| format!("enec-cpu-{i}")).build();
        let pool = (threads > 1).then(build).transpose().map_err(|error| Error::Unavailable {
            backend: "cpu".into(),
            reason: format!("cannot start {threads} threads: {error}"),
        })?;
        Ok(Self { pool, threads, scratch: Mutex::new(Vec::new()) })
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Does every part of a schedule, each thread with a scratch of its own, and waits for the last. A thread takes up to `run` parts
    /// at once and ends with `finish`.
    pub(crate) fn run(
        &self,
        schedule: &Schedule,
        run: usize,
        work: impl Fn(&mut Scratch, Part) + Sync,
        finish: impl Fn() + Sync,
    ) {
        let take_all = || {
            let idle = self.idle_scratch().pop();
            let mut scratch = idle.unwrap_or_else(Scratch::new);
            schedule.take(run).for_each(|part| work(&mut scratch, part));
            finish();
            self.idle_scratch().push(scratch);
        };
        match &self.pool {
            Some(pool) if schedule.len() > 1 => pool.in_place_scope(|scope| {
                for _ in 1..self.threads.min(schedule.len()) {
                    scope.spawn(|_| take_all());
                }
                take_all();
            }),
            _ if schedule.len() > 0 => take_all(),
            _ => {}
        }
    }

    fn idle_scratch(&self) -> MutexGuard<'_, Vec<Box<Scratch>>> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
