//! The threads of one backend.

use std::num::NonZeroUsize;

use enec_core::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::schedule::{Part, Schedule};

/// A pool of threads; with one thread there is no pool and the caller works alone.
#[derive(Debug)]
pub(crate) struct Workers {
    pool: Option<ThreadPool>,
    threads: usize,
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
        let build = || ThreadPoolBuilder::new().num_threads(threads).thread_name(|i| format!("enec-cpu-{i}")).build();
        let pool = (threads > 1).then(build).transpose().map_err(|error| Error::Unavailable {
            backend: "cpu".into(),
            reason: format!("cannot start {threads} threads: {error}"),
        })?;
        Ok(Self { pool, threads })
    }

    /// Number of threads.
    pub(crate) fn threads(&self) -> usize {
        self.threads
    }

    /// Does every part of a schedule, each thread with a scratch of its own, and waits for the last.
    pub(crate) fn run<S>(
        &self,
        schedule: &Schedule,
        scratch: impl Fn() -> S + Sync,
        work: impl Fn(&mut S, Part) + Sync,
    ) {
        let take_all = || {
            let mut scratch = scratch();
            schedule.take().for_each(|part| work(&mut scratch, part));
        };
        match &self.pool {
            Some(pool) if schedule.len() > 1 => pool.scope(|scope| {
                for _ in 0..self.threads.min(schedule.len()) {
                    scope.spawn(|_| take_all());
                }
            }),
            _ if schedule.len() > 0 => take_all(),
            _ => {}
        }
    }
}
