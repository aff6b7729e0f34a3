//! The threads of one backend.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use enec_core::{Error, Result};
use rayon::{ThreadPool, ThreadPoolBuilder, Yield};

use crate::kernels::Scratch;
use crate::schedule::{Part, Schedule};

/// How long a thread looks for more to do before it sleeps. Waking one takes tens of microseconds, as long as half a megabyte takes to
/// decode, and whoever decodes one tensor decodes the next as well.
const AWAKE: Duration = Duration::from_micros(100);

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

    /// Does every part of a schedule, each thread with a scratch of its own, and waits for the last. The caller is the first thread. A thread
    /// takes up to `run` parts at once and ends with `finish`.
    pub(crate) fn run(
        &self,
        schedule: &Schedule,
        run: usize,
        work: impl Fn(&mut Scratch, Part) + Sync,
        finish: impl Fn() + Sync,
    ) {
        let take_all = |own: usize| {
            let idle = self.idle_scratch().pop();
            let mut scratch = idle.unwrap_or_else(Scratch::new);
            schedule.take(own, run).for_each(|part| work(&mut scratch, part));
            finish();
            self.idle_scratch().push(scratch);
        };
        let helpers = self.threads.min(schedule.len()).saturating_sub(1);
        let (take_all, at_work) = (&take_all, &AtomicUsize::new(helpers));
        match &self.pool {
            Some(pool) if schedule.len() > 1 => pool.in_place_scope(|scope| {
                for _ in 0..helpers {
                    scope.spawn(move |_| {
                        take_all(rayon::current_thread_index().map_or(0, |helper| helper + 1));
                        stay_awake();
                        at_work.fetch_sub(1, Ordering::Release);
                    });
                }
                take_all(0);
                // The scope sleeps until the helpers are done, and would have to be woken.
                let start = Instant::now();
                while at_work.load(Ordering::Acquire) > 0 && start.elapsed() < AWAKE {
                    std::hint::spin_loop();
                }
                // What the scope itself does after them.
                (0..SPINS).for_each(|_| std::hint::spin_loop());
            }),
            _ if schedule.len() > 0 => take_all(0),
            _ => {}
        }
    }

    fn idle_scratch(&self) -> MutexGuard<'_, Vec<Box<Scratch>>> {
        self.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Rounds of spinning that take longer than the pool's own work at the end of a task.
const SPINS: usize = 32;

thread_local! {
    /// Whether this helper looks for work, or does some that it has found by looking.
    static LOOKS: Cell<bool> = const { Cell::new(false) };
}

/// Has the helper that calls it look for more work for a while, once it has done what it is at.
fn stay_awake() {
    if LOOKS.get() {
        return;
    }
    rayon::spawn(|| {
        LOOKS.set(true);
        let mut start = Instant::now();
        while start.elapsed() < AWAKE {
            match rayon::yield_now() {
                Some(Yield::Executed) => start = Instant::now(),
                // Anybody else's work goes first.
                _ => std::thread::yield_now(),
            }
        }
        LOOKS.set(false);
    });
}
