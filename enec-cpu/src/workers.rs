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

    /// The threads for a batch whose caller keeps so many cores busy: at least the caller's own.
    pub(crate) fn beside(&self, busy_cores: usize) -> Team<'_> {
        Team { workers: self, threads: self.threads.saturating_sub(busy_cores).max(1) }
    }
}

/// The threads that do one batch.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Team<'w> {
    workers: &'w Workers,
    threads: usize,
}

impl Team<'_> {
    /// Number of threads.
    pub(crate) fn threads(self) -> usize {
        self.threads
    }

    /// Does every part of a schedule, each thread with a scratch of its own, and waits for the last. A thread takes up to `run` parts
    /// at once and ends with `finish`.
    pub(crate) fn run(
        self,
        schedule: &Schedule,
        run: usize,
        work: impl Fn(&mut Scratch, Part) + Sync,
        finish: impl Fn() + Sync,
    ) {
        self.on_all_threads(schedule.len(), |own, scratch| {
            schedule.take(own, run).for_each(|part| work(scratch, part));
            finish();
        });
    }

    /// Does every part of a schedule, with a scratch that begins without segments, and then what each thread has left to do, with the same scratch.
    /// It is for parts whose results other threads wait for: each is taken alone.
    pub(crate) fn run_with_rest<Rest>(
        self,
        schedule: &Schedule,
        work: impl Fn(&mut Scratch, Part) -> Option<Rest> + Sync,
        finish: impl Fn(&mut Scratch, Vec<Rest>) + Sync,
    ) {
        self.on_all_threads(schedule.len(), |own, scratch| {
            scratch.segments.clear();
            let rest = schedule.take(own, 1).filter_map(|part| work(scratch, part)).collect();
            finish(scratch, rest);
        });
    }

    /// Has threads do the same, as many as there are parts of it. Each gets its number, which for the caller is 0, and a scratch of its own.
    fn on_all_threads(self, parts: usize, work: impl Fn(usize, &mut Scratch) + Sync) {
        let work = |own: usize| {
            let idle = self.idle_scratch().pop();
            let mut scratch = idle.unwrap_or_else(Scratch::new);
            work(own, &mut scratch);
            self.idle_scratch().push(scratch);
        };
        let helpers = self.threads.min(parts).saturating_sub(1);
        let (work, at_work) = (&work, &AtomicUsize::new(helpers));
        match &self.workers.pool {
            Some(pool) if helpers > 0 => pool.in_place_scope(|scope| {
                for _ in 0..helpers {
                    scope.spawn(move |_| {
                        work(rayon::current_thread_index().map_or(0, |helper| helper + 1));
                        stay_awake();
                        at_work.fetch_sub(1, Ordering::Release);
                    });
                }
                work(0);
                // The scope sleeps until the helpers are done, and would have to be woken. To look for them is faster than to look at the clock.
                let is_at_work = |_| {
                    std::hint::spin_loop();
                    at_work.load(Ordering::Acquire) > 0
                };
                let start = Instant::now();
                while (0..WAITING_ROUNDS).all(is_at_work) && start.elapsed() < AWAKE {}
                // What the scope itself does after them.
                (0..SPINS).for_each(|_| std::hint::spin_loop());
            }),
            _ if parts > 0 => work(0),
            _ => {}
        }
    }

    fn idle_scratch(&self) -> MutexGuard<'_, Vec<Box<Scratch>>> {
        self.workers.scratch.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Waits for another thread, a short time at the core and then without it.
pub(crate) fn wait_until(condition: impl Fn() -> bool) {
    let mut rounds = 0;
    while !condition() {
        rounds += 1;
        if rounds < WAITING_ROUNDS { std::hint::spin_loop() } else { std::thread::yield_now() }
    }
}

/// Rounds of spinning before a waiting thread looks at something else than what it waits for, or gives its core away.
const WAITING_ROUNDS: usize = 64;

/// Rounds of spinning that take longer than the pool's own work at the end of a task.
const SPINS: usize = 8;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_part_is_done_and_the_rest_is_given_back() {
        let workers = Workers::new(NonZeroUsize::new(3)).unwrap();
        for parts in [0, 1, 2, 100] {
            let (done, finished) = (AtomicUsize::new(0), Mutex::new(Vec::new()));
            workers.beside(0).run_with_rest(
                &Schedule::shared([parts], workers.threads()),
                |_, part| {
                    done.fetch_add(1, Ordering::Relaxed);
                    part.part.is_multiple_of(3).then_some(part.part)
                },
                |_, rest| finished.lock().unwrap().extend(rest),
            );
            let mut finished = finished.into_inner().unwrap();
            finished.sort_unstable();
            assert_eq!(done.into_inner(), parts);
            assert_eq!(finished, Vec::from_iter((0..parts).step_by(3)));
        }
    }
}
