//! The running end of the high segments of one job, handed from each block to the next.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use crate::workers::wait_until;

/// Gives every block the place of its segment, in the order of the blocks, whichever threads work on them.
///
/// Blocks are handed out in order, so the block that a thread waits for has a thread of its own already: waiting always ends.
#[derive(Debug)]
pub(crate) struct Chain {
    limit: usize,
    /// The block whose turn it is. Its store publishes `end`.
    turn: AtomicUsize,
    end: AtomicUsize,
    stopped: AtomicBool,
}

impl Chain {
    /// A chain for a variable section of at most `limit` bytes.
    pub(crate) fn new(limit: usize) -> Self {
        Self { limit, turn: AtomicUsize::new(0), end: AtomicUsize::new(0), stopped: AtomicBool::new(false) }
    }

    /// Whether all blocks before `block` have taken theirs, so that it need not wait.
    pub(crate) fn is_turn(&self, block: usize) -> bool {
        self.turn.load(Ordering::Acquire) == block
    }

    /// Waits for the blocks before `block` and takes `len` bytes behind their segments. Returns where they start, or `None` if the
    /// section would exceed its limit: then the job is over for all its blocks.
    pub(crate) fn take(&self, block: usize, len: usize) -> Option<usize> {
        wait_until(|| self.is_turn(block) || self.is_stopped());
        if !self.is_turn(block) {
            return None;
        }
        let start = self.end.load(Ordering::Relaxed);
        let end = start + len;
        if end > self.limit {
            self.stop();
            return None;
        }
        self.end.store(end, Ordering::Relaxed);
        self.turn.store(block + 1, Ordering::Release);
        Some(start)
    }

    /// Ends the job for all its blocks.
    pub(crate) fn stop(&self) {
        self.stopped.store(true, Ordering::Relaxed);
    }

    /// Whether the job is over before its end.
    pub(crate) fn is_stopped(&self) -> bool {
        self.stopped.load(Ordering::Relaxed)
    }

    /// Length of the variable section once all blocks are done, or `None` if it exceeded the limit.
    pub(crate) fn finish(&self) -> Option<usize> {
        (!self.is_stopped()).then(|| self.end.load(Ordering::Relaxed))
    }
}

/// Stops chains if the caller panics, so that nobody waits for its blocks for ever.
pub(crate) struct StopOnPanic<'a> {
    stop: &'a dyn Fn(),
    /// Whether the caller is itself called by a destructor during a panic, which is no panic of his.
    unwinds_already: bool,
}

impl<'a> StopOnPanic<'a> {
    /// Calls `stop` if a panic begins before this ends.
    pub(crate) fn new(stop: &'a dyn Fn()) -> Self {
        Self { stop, unwinds_already: std::thread::panicking() }
    }
}

impl Drop for StopOnPanic<'_> {
    fn drop(&mut self) {
        if std::thread::panicking() && !self.unwinds_already {
            (self.stop)();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn segments_follow_each_other_in_block_order() {
        let chain = Chain::new(usize::MAX);
        let starts = std::thread::scope(|scope| {
            let threads: Vec<_> = (0..8)
                .rev()
                .map(|block| {
                    scope.spawn({
                        let chain = &chain;
                        move || (block, chain.take(block, 32 * block))
                    })
                })
                .collect();
            threads.into_iter().map(|thread| thread.join().unwrap()).collect::<Vec<_>>()
        });
        for (block, start) in starts {
            assert_eq!(start, Some(32 * (0..block).sum::<usize>()));
        }
        assert_eq!(chain.finish(), Some(32 * 28));
    }

    #[test]
    fn the_limit_itself_is_allowed() {
        let chain = Chain::new(64);
        assert_eq!(chain.take(0, 64), Some(0));
        assert_eq!(chain.finish(), Some(64));
        assert_eq!(chain.take(1, 32), None);
        assert_eq!(chain.take(7, 0), None, "a block behind the one that stopped must not wait");
        assert_eq!(chain.finish(), None);
    }

    #[test]
    fn a_panic_releases_the_blocks_behind_it() {
        let chain = Chain::new(64);
        let taken = std::thread::scope(|scope| {
            let waiting = scope.spawn(|| chain.take(1, 0));
            let panicking = scope.spawn(|| {
                let stop = || chain.stop();
                let _guard = StopOnPanic::new(&stop);
                panic!("of the test");
            });
            panicking.join().unwrap_err();
            waiting.join().unwrap()
        });
        assert_eq!(taken, None);
    }

    #[test]
    fn a_panic_under_way_is_none_of_the_blocks() {
        struct InDestructor<'a>(&'a Chain);
        impl Drop for InDestructor<'_> {
            fn drop(&mut self) {
                drop(StopOnPanic::new(&|| self.0.stop()));
            }
        }
        let chain = Chain::new(64);
        std::thread::scope(|scope| {
            let panicking = scope.spawn(|| {
                let _encodes = InDestructor(&chain);
                panic!("of the test");
            });
            panicking.join().unwrap_err();
        });
        assert!(!chain.is_stopped());
    }
}
