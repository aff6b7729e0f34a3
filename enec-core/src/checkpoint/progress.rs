//! How far a long call has come, and the wish to end it.

use std::path::Path;

use crate::{Error, Result};

/// What a long call does at the moment.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Step {
    /// Encoding a file.
    Compress,
    /// Restoring a file.
    Decompress,
    /// Comparing what was written with what it was made from, or with its hashes.
    Verify,
    /// Copying a file as it is.
    Copy,
    /// Encoding or decoding a file to see what it is made of.
    Inspect,
}

/// Told how far a long call has come. All methods may be left as they are.
pub trait Progress {
    /// The call will pass this many bytes in all; called once, first.
    fn total(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// A file is begun.
    fn file(&mut self, step: Step, path: &Path) {
        let _ = (step, path);
    }

    /// So many bytes more are done. Bytes of originals are counted, not those of compressed files.
    fn advance(&mut self, bytes: u64) {
        let _ = bytes;
    }

    /// Whether the call is to end now, with [`Error::Cancelled`]. Asked after every window, and every 32 MiB of a file that is copied.
    fn is_cancelled(&self) -> bool {
        false
    }
}

/// Tells nobody and never ends a call.
impl Progress for () {}

/// Advances, unless the call is to end.
pub(crate) fn advance(progress: &mut dyn Progress, bytes: u64) -> Result<()> {
    progress.advance(bytes);
    if progress.is_cancelled() { Err(Error::Cancelled) } else { Ok(()) }
}
