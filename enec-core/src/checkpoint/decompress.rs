//! Decompressing: the original, byte for byte.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use super::conversion::{self, Conversion, Options, Report, Streams};
use super::decode::{Check, decode_tensors};
use super::file::CheckpointFile;
use super::header::LENGTH_BYTES;
use super::output::reserve;
use super::progress::{Progress, Step, advance};
use super::restore::Restoration;
use super::tensor::TensorRef;
use super::timings::Stopwatch;
use super::work::Work;
use super::write::{Destination, write_behind};
use crate::{Codec, Result};

/// Restores the original of a compressed safetensors file, or of all of them in a folder, whose other files are copied.
///
/// Every tensor's hash is checked before the output gets its name. [`Options::verify`] changes nothing.
///
/// # Errors
///
/// [`Error::File`](crate::Error::File) or [`Error::Tensor`](crate::Error::Tensor) if the input is not compressed or is damaged; otherwise
/// as [`compress`](super::compress).
pub fn decompress(
    codec: &Codec,
    input: &Path,
    output: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Report> {
    let stopwatch = options.stopwatch();
    let work = Work::new(codec, options, &stopwatch);
    conversion::run(&Decompress { work }, input, output, options, progress)
}

struct Decompress<'a> {
    work: Work<'a>,
}

impl Conversion for Decompress<'_> {
    const STEP: Step = Step::Decompress;

    fn check(&self, file: &CheckpointFile) -> Result<()> {
        file.require_compressed()
    }

    fn output_bound(&self, file: &CheckpointFile) -> Result<u64> {
        Ok(file.original_len())
    }

    fn convert(
        &self,
        file: &CheckpointFile,
        output: &File,
        path: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Streams> {
        let tensors = file.in_data_order();
        reserve(output, file.original_len());
        write_behind(output, path, self.work.stopwatch, |output| {
            let (text, data_start) = (file.original().text(), file.original().data_start());
            output.write_at(0, Cow::Owned((text.len() as u64).to_le_bytes().to_vec()))?;
            output.write_at(LENGTH_BYTES, Cow::Borrowed(text.as_bytes()))?;
            advance(progress, data_start)?;
            let start = |tensor: TensorRef<'_>| data_start + tensor.data_offset();
            let mut restoration = Restoration { start: &start, output, progress };
            decode_tensors(self.work, tensors, Check::Content, &mut restoration)
        })?;
        Ok(self.work.streams_of(file))
    }

    fn stopwatch(&self) -> &Stopwatch {
        self.work.stopwatch
    }

    fn verifies(&self) -> bool {
        false
    }

    fn verify(&self, _file: &CheckpointFile, _path: &Path, _progress: &mut dyn Progress) -> Result<()> {
        Ok(())
    }
}
