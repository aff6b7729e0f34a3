//! The order in which the parts of a batch are handed out.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::kernels::Kernels;

/// Bytes of one part of a stored stream: it has no blocks.
pub(crate) const STORED_PART_BYTES: usize = 1 << 20;

/// Decoded bytes of a batch from which on what it writes is streamed past the caches, which it would only flush.
///
/// A tile is encoded or decoded into scratch memory that stays in the first cache, hashed there, and copied out in whole cache lines.
pub(crate) const STREAM_BYTES: usize = 8 << 20;

/// Decoded bytes of a thread's share of a batch up to which the share may well be in its own cache: from the last time, or from what wrote it.
const NEAR_BYTES: usize = 1 << 20;

/// Where the bytes of a batch are likely to lie, and how its targets are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Place {
    /// In the caches of the threads, each of which has its share.
    Near,
    /// Farther away, but within what a cache may hold.
    Cached,
    /// In memory: targets are streamed past the caches.
    Streamed,
}

impl Place {
    /// That of a batch of so many decoded bytes.
    pub(crate) fn of<K: Kernels>(bytes: usize, threads: usize) -> Self {
        if K::STREAMS && bytes >= STREAM_BYTES {
            Self::Streamed
        } else if bytes <= threads * NEAR_BYTES {
            Self::Near
        } else {
            Self::Cached
        }
    }
}

/// Bytes of a job's source that are asked for while the job before it is finished: all of a small one.
pub(crate) const HEAD_BYTES: usize = 16 << 10;

/// Blocks that a thread does one after the other where their order is free: what it asks memory for ahead of its work is then for itself.
pub(crate) const RUN_BLOCKS: usize = 8;

/// A run of parts is at most this share of those that are left.
const RUNS_LEFT: usize = 16;

/// Hands out the parts of a batch's jobs: job after job, and in each job from the first part to the last.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Index, over all jobs, of the part behind each job's last one.
    ends: Vec<usize>,
    shares: Vec<Share>,
}

/// Parts that are handed out in order, to one thread before all others.
#[derive(Debug)]
#[repr(align(64))]
struct Share {
    next: AtomicUsize,
    end: usize,
}

/// One part of one job.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Part {
    /// Index of the job.
    pub(crate) job: usize,
    /// Index among the job's parts.
    pub(crate) part: usize,
}

impl Schedule {
    /// A schedule of jobs with these numbers of parts: each part is begun after those before it.
    pub(crate) fn in_order(parts: impl IntoIterator<Item = usize>) -> Self {
        Self::shared(parts, 1)
    }

    /// A schedule for this many threads, each of which takes parts of a share of its own first. The same thread has the same share of every
    /// batch like this one, and finds in its cache what it left there.
    pub(crate) fn shared(parts: impl IntoIterator<Item = usize>, threads: usize) -> Self {
        let mut end = 0;
        let ends: Vec<usize> = parts
            .into_iter()
            .map(|parts| {
                end += parts;
                end
            })
            .collect();
        let bound = |share: usize| share * (end / threads) + share * (end % threads) / threads;
        let shares = (0..threads).map(|share| Share { next: AtomicUsize::new(bound(share)), end: bound(share + 1) });
        Self { ends, shares: shares.collect() }
    }

    /// Parts of all jobs together.
    pub(crate) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Takes parts until there are none left, those of share `own` first. Several threads may take from one schedule.
    ///
    /// A thread may take up to `run` of them at once, so that it goes on where it ended.
    pub(crate) fn take(&self, own: usize, run: usize) -> impl Iterator<Item = Part> + '_ {
        let shares = self.shares.iter().cycle().skip(own % self.shares.len()).take(self.shares.len());
        shares.flat_map(move |share| share.take(run)).scan(0, |job, index| {
            let start = |job: usize| job.checked_sub(1).map_or(0, |previous| self.ends[previous]);
            // What one thread takes only ever goes up, but for one time at most.
            if index < start(*job) {
                *job = 0;
            }
            while self.ends[*job] <= index {
                *job += 1;
            }
            Some(Part { job: *job, part: index - start(*job) })
        })
    }
}

impl Share {
    /// Takes parts, as indices over all jobs, until there are none left.
    fn take(&self, run: usize) -> impl Iterator<Item = usize> + '_ {
        let runs = std::iter::from_fn(move || {
            // Fewer towards the end, which all threads should reach together.
            let left = self.end.saturating_sub(self.next.load(Ordering::Relaxed));
            let run = run.min(left / RUNS_LEFT).max(1);
            let start = self.next.fetch_add(run, Ordering::Relaxed);
            (start < self.end).then(|| start..self.end.min(start + run))
        });
        runs.flatten()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_and_empty_jobs_have_none() {
        let schedule = Schedule::in_order([0, 2, 0, 1, 0]);
        let taken: Vec<_> = schedule.take(0, 8).map(|Part { job, part }| (job, part)).collect();
        assert_eq!(taken, [(1, 0), (1, 1), (3, 0)]);
        assert_eq!(schedule.take(0, 1).next(), None);
        assert_eq!(Schedule::in_order([]).take(0, 1).next(), None);
        assert_eq!(Schedule::shared([], 3).take(2, 1).next(), None);
    }

    #[test]
    fn runs_are_taken_by_one_thread_and_get_shorter_towards_the_end() {
        let schedule = Schedule::in_order([50, 50]);
        let (mut first, mut second) = (schedule.take(0, 4), schedule.take(1, 4));
        let parts: Vec<_> = std::iter::from_fn(|| first.next().zip(second.next())).collect();
        let index = |Part { job, part }: Part| 50 * job + part;
        assert_eq!(
            parts[..5].iter().map(|&(a, b)| (index(a), index(b))).collect::<Vec<_>>(),
            [(0, 4), (1, 5), (2, 6), (3, 7), (8, 12)]
        );
        let rest: Vec<_> = first.chain(second).collect();
        let mut all: Vec<_> = parts.iter().flat_map(|&(a, b)| [a, b]).chain(rest).map(index).collect();
        all.sort_unstable();
        assert_eq!(all, (0..100).collect::<Vec<_>>());
        let last = parts.last().unwrap();
        assert_eq!(index(last.0).abs_diff(index(last.1)), 1, "the last ones are taken one by one");
    }

    #[test]
    fn threads_begin_with_their_own_share_and_leave_nothing() {
        let schedule = Schedule::shared([3, 4, 0, 3], 3);
        let taken = |own, count| -> Vec<_> {
            schedule.take(own, 2).take(count).map(|Part { job, part }| (job, part)).collect()
        };
        assert_eq!(taken(1, 2), [(1, 0), (1, 1)]);
        assert_eq!(taken(2, 6), [(1, 3), (3, 0), (3, 1), (3, 2), (0, 0), (0, 1)]);
        assert_eq!(taken(0, 9), [(0, 2), (1, 2)], "the rest of others after the own");
        assert_eq!(taken(1, 1), []);
    }
}
