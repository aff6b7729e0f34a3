//! The threads of one backend.

use std::cell::Cell;
use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
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

    /// Does every part of a schedule, and `between` once after all of them; then each thread goes on with the parts that it has done, in the
    /// same order and with the same scratch, in which it begins without segments.
    pub(crate) fn run_in_passes(
        self,
        schedule: &Schedule,
        first_work: impl Fn(&mut Scratch, Part) + Sync,
        between: impl Fn() + Sync,
        second_work: impl Fn(&mut Scratch, Part) + Sync,
    ) {
        // Not with a lock: whoever waits for one is put to sleep, and the wait is shorter than that.
        let (done, claimed, begun) = (AtomicUsize::new(0), AtomicBool::new(false), AtomicUsize::new(0));
        self.on_all_threads(schedule.len(), |own, scratch| {
            scratch.segments.clear();
            let (mut count, mut parts) = (CountOnDrop { total: &done, count: 0 }, Vec::new());
            // One by one: who panics leaves behind none that it had taken, and that the others would wait for.
            for part in schedule.take(own, 1) {
                count.count += 1;
                first_work(scratch, part);
                parts.push(part);
            }
            drop(count);
            wait_until(|| done.load(Ordering::Acquire) >= schedule.len());
            if claimed.swap(true, Ordering::Relaxed) {
                wait_until(|| begun.load(Ordering::Acquire) > 0);
            } else {
                let _count = CountOnDrop { total: &begun, count: 1 };
                between();
            }
            parts.into_iter().for_each(|part| second_work(scratch, part));
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
                // The scope sleeps until the helpers are done, and would have to be woken.
                let start = Instant::now();
                while at_work.load(Ordering::Acquire) > 0 && start.elapsed() < AWAKE {
                    std::hint::spin_loop();
                }
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

/// Counts what is done, also what ends in a panic: whoever waits for it goes on.
struct CountOnDrop<'a> {
    total: &'a AtomicUsize,
    count: usize,
}

impl Drop for CountOnDrop<'_> {
    fn drop(&mut self) {
        self.total.fetch_add(self.count, Ordering::Release);
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

/// Rounds of spinning before a waiting thread gives its core away.
const WAITING_ROUNDS: usize = 64;

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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_second_pass_begins_after_the_first_and_what_is_between() {
        let workers = Workers::new(NonZeroUsize::new(3)).unwrap();
        for parts in [0, 1, 2, 100] {
            let [first, between, second] = [(); 3].map(|()| AtomicUsize::new(0));
            let add = |count: &AtomicUsize| count.fetch_add(1, Ordering::Relaxed);
            workers.beside(0).run_in_passes(
                &Schedule::shared([parts], workers.threads()),
                |_, _| _ = add(&first),
                || {
                    assert_eq!(first.load(Ordering::Relaxed), parts);
                    add(&between);
                },
                |_, _| {
                    assert_eq!(between.load(Ordering::Relaxed), 1);
                    add(&second);
                },
            );
            assert_eq!(second.into_inner(), parts);
        }
    }

    #[test]
    fn a_panic_in_either_pass_or_between_them_comes_out() {
        let workers = Workers::new(NonZeroUsize::new(3)).unwrap();
        for at in 0..3 {
            let panic_at = |step: usize| assert!(step != at, "of the test");
            let run = || {
                workers.beside(0).run_in_passes(
                    &Schedule::shared([1000], workers.threads()),
                    |_, part| {
                        if at == 0 {
                            panic_at(part.part);
                        }
                    },
                    || panic_at(1),
                    |_, _| panic_at(2),
                );
            };
            std::panic::catch_unwind(std::panic::AssertUnwindSafe(run)).unwrap_err();
        }
    }
}
