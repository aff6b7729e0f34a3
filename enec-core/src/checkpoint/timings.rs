//! Where the time of a long call goes.

use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Instant;

use serde::Serialize;

use crate::{Feed, PieceSink};

/// Seconds that the parts of a call took. They overlap: writing goes on beside encoding, and hashing is part of it on every thread.
///
/// Reading has no figure of its own: inputs are mapped, so it happens inside the search, encoding, decoding and comparing.
#[derive(Debug, Clone, Copy, Default, PartialEq, Serialize)]
pub struct Timings {
    /// The parameter search.
    pub search_seconds: f64,
    /// Encoding or decoding by the backend, with what it hashes on the way.
    pub code_seconds: f64,
    /// Hashing, summed over threads; zero unless [`Options::time_hashing`](super::Options::time_hashing) asked for it.
    pub hash_seconds: f64,
    /// Writing, by a thread of its own.
    pub write_seconds: f64,
    /// Waiting until the disk has it all.
    pub sync_seconds: f64,
}

/// Adds up the time of each part, from any thread, in nanoseconds.
#[derive(Debug, Default)]
pub(crate) struct Stopwatch {
    pub(crate) search: Lap,
    pub(crate) code: Lap,
    pub(crate) hash: Lap,
    pub(crate) write: Lap,
    pub(crate) sync: Lap,
    /// Whether hashing is timed, which takes the clock's time for every piece.
    pub(crate) times_hashing: bool,
}

impl Stopwatch {
    pub(crate) fn timings(&self) -> Timings {
        Timings {
            search_seconds: self.search.seconds(),
            code_seconds: self.code.seconds(),
            hash_seconds: self.hash.seconds(),
            write_seconds: self.write.seconds(),
            sync_seconds: self.sync.seconds(),
        }
    }
}

/// The time of one part.
#[derive(Debug, Default)]
pub(crate) struct Lap(AtomicU64);

impl Lap {
    /// Runs `work` on this part's time.
    pub(crate) fn time<T>(&self, work: impl FnOnce() -> T) -> T {
        let start = Instant::now();
        let result = work();
        let nanoseconds = u64::try_from(start.elapsed().as_nanos()).unwrap_or(u64::MAX);
        self.0.fetch_add(nanoseconds, Ordering::Relaxed);
        result
    }

    #[expect(clippy::cast_precision_loss, reason = "for people")]
    fn seconds(&self) -> f64 {
        self.0.load(Ordering::Relaxed) as f64 / 1e9
    }
}

/// A sink whose work is timed if that is wanted.
pub(crate) struct TimedSink<'a, Sink> {
    pub(crate) sink: Sink,
    pub(crate) stopwatch: &'a Stopwatch,
}

impl<Sink: PieceSink> PieceSink for TimedSink<'_, Sink> {
    fn content(&self, block: usize, decoded: &[u8]) {
        if self.stopwatch.times_hashing {
            self.stopwatch.hash.time(|| self.sink.content(block, decoded));
        } else {
            self.sink.content(block, decoded);
        }
    }

    fn payload(&self, block: usize, parts: &[&[u8]; 6]) {
        if self.stopwatch.times_hashing {
            self.stopwatch.hash.time(|| self.sink.payload(block, parts));
        } else {
            self.sink.payload(block, parts);
        }
    }

    fn wants_payload(&self) -> bool {
        self.sink.wants_payload()
    }

    fn content_in_parts(&self, block: usize, feed: &mut Feed<'_>) {
        self.sink.content_in_parts(block, &mut |hash| self.timed(hash, feed));
    }
}

impl<Sink> TimedSink<'_, Sink> {
    /// Feeds `hash`, whose time alone is counted if that is wanted.
    fn timed(&self, hash: &mut dyn FnMut(&[u8]), feed: &mut Feed<'_>) {
        if self.stopwatch.times_hashing {
            feed(&mut |bytes| self.stopwatch.hash.time(|| hash(bytes)));
        } else {
            feed(hash);
        }
    }
}
