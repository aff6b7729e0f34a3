//! The order in which the parts of a batch are handed out.

use std::sync::atomic::{AtomicUsize, Ordering};

/// Bytes of one part of a stored stream: it has no blocks.
pub(crate) const STORED_PART_BYTES: usize = 1 << 20;

/// Decoded bytes from which on what a job writes is streamed past the caches, which it would only flush.
///
/// A block is encoded or decoded into scratch memory that stays in the first and second cache, hashed there, and copied out in whole
/// cache lines.
pub(crate) const STREAM_BYTES: usize = 8 << 20;

/// Hands out the parts of a batch's jobs one by one: job after job, and in each job from the first part to the last.
#[derive(Debug)]
pub(crate) struct Schedule {
    /// Index, over all jobs, of the part behind each job's last one.
    ends: Vec<usize>,
    next: AtomicUsize,
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
    /// A schedule of jobs with these numbers of parts.
    pub(crate) fn new(parts: impl IntoIterator<Item = usize>) -> Self {
        let mut end = 0;
        let ends = parts.into_iter().map(|parts| {
            end += parts;
            end
        });
        Self { ends: ends.collect(), next: AtomicUsize::new(0) }
    }

    /// Parts of all jobs together.
    pub(crate) fn len(&self) -> usize {
        self.ends.last().copied().unwrap_or(0)
    }

    /// Takes parts until there are none left. Several threads may take from one schedule.
    pub(crate) fn take(&self) -> impl Iterator<Item = Part> + '_ {
        let mut job = 0;
        std::iter::from_fn(move || {
            let index = self.next.fetch_add(1, Ordering::Relaxed);
            if index >= self.len() {
                return None;
            }
            // What one thread takes only ever goes up: no need to search from the start.
            while self.ends[job] <= index {
                job += 1;
            }
            let start = job.checked_sub(1).map_or(0, |previous| self.ends[previous]);
            Some(Part { job, part: index - start })
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn parts_come_in_order_and_empty_jobs_have_none() {
        let schedule = Schedule::new([0, 2, 0, 1, 0]);
        let taken: Vec<_> = schedule.take().map(|Part { job, part }| (job, part)).collect();
        assert_eq!(taken, [(1, 0), (1, 1), (3, 0)]);
        assert_eq!(schedule.take().next(), None);
        assert_eq!(Schedule::new([]).take().next(), None);
    }
}
