//! What every long call works with.

use super::conversion::Options;
use super::timings::Stopwatch;
use crate::Codec;

/// Who encodes and decodes, in what portions, and who is told how long it took.
#[derive(Clone, Copy)]
pub(crate) struct Work<'r> {
    pub(crate) codec: &'r Codec,
    /// Decoded bytes that are in work at a time.
    pub(crate) window_bytes: usize,
    pub(crate) stopwatch: &'r Stopwatch,
}

impl<'r> Work<'r> {
    pub(crate) fn new(codec: &'r Codec, options: &Options, stopwatch: &'r Stopwatch) -> Self {
        Self { codec, window_bytes: options.window_bytes, stopwatch }
    }
}
