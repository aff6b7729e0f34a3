//! What every long call works with.

use enec_format::Header;

use super::conversion::{Options, Streams};
use super::file::CheckpointFile;
use super::tensor::StoredForm;
use super::timings::Stopwatch;
use crate::Codec;

/// Who encodes and decodes, in what portions, and who is told how long it took.
#[derive(Clone, Copy)]
pub(crate) struct Work<'r> {
    pub(crate) codec: &'r Codec,
    /// Decoded bytes that are in work at a time.
    pub(crate) window_bytes: usize,
    pub(crate) stopwatch: &'r Stopwatch,
    /// Whether encoding also tells how the exponents are spread, which takes a look at all that was written.
    pub(crate) inspects: bool,
}

impl<'r> Work<'r> {
    /// The streams of a compressed file, by whom they are decoded. One that is damaged counts for the backend.
    pub(crate) fn streams_of(&self, file: &CheckpointFile) -> Streams {
        let mut streams = Streams::default();
        for tensor in file.tensors().filter(|tensor| tensor.form() == StoredForm::Stream) {
            let is_own = Header::parse(tensor.stored_bytes())
                .map_or(true, |header| self.codec.decodes_on_backend(header.coding));
            streams.all += 1;
            streams.by_fallback += usize::from(!is_own);
        }
        streams
    }

    pub(crate) fn new(codec: &'r Codec, options: &Options, stopwatch: &'r Stopwatch) -> Self {
        Self { codec, window_bytes: options.window_bytes, stopwatch, inspects: false }
    }
}
