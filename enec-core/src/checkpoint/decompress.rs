//! Decompressing: the original, byte for byte.

use std::fs::File;
use std::path::Path;

use super::conversion::{self, Conversion, Options, Report};
use super::decode::{Check, Receiver, decode_tensors};
use super::file::CheckpointFile;
use super::header::LENGTH_BYTES;
use super::progress::{Progress, Step, advance};
use super::tensor::{StoredForm, TensorRef};
use super::write::{Destination, FileDestination};
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
    conversion::run(&Decompress { codec, window_bytes: options.window_bytes }, input, output, options, progress)
}

struct Decompress<'a> {
    codec: &'a Codec,
    window_bytes: usize,
}

impl Conversion for Decompress<'_> {
    const STEP: Step = Step::Decompress;

    fn check(&self, file: &CheckpointFile) -> Result<()> {
        file.require_compressed()
    }

    fn output_bound(&self, file: &CheckpointFile) -> Result<u64> {
        Ok(file.original_len())
    }

    fn convert(&self, file: &CheckpointFile, output: &File, path: &Path, progress: &mut dyn Progress) -> Result<usize> {
        let mut output = FileDestination::new(output, path);
        let text = file.original().text();
        output.write_at(0, &(text.len() as u64).to_le_bytes())?;
        output.write_at(LENGTH_BYTES, text.as_bytes())?;
        advance(progress, file.original().data_start())?;
        let mut restoration =
            Restoration { data_start: file.original().data_start(), output: &mut output, progress, streams: 0 };
        let tensors = file.in_data_order();
        decode_tensors(self.codec, tensors, self.window_bytes, Check::Content, &mut restoration)?;
        let streams = restoration.streams;
        output.finish(file.original_len())?;
        Ok(streams)
    }

    fn verifies(&self) -> bool {
        false
    }

    fn verify(&self, _file: &CheckpointFile, _path: &Path, _progress: &mut dyn Progress) -> Result<()> {
        Ok(())
    }
}

/// Writes decoded bytes to where they lie in the original.
struct Restoration<'a> {
    data_start: u64,
    output: &'a mut dyn Destination,
    progress: &'a mut dyn Progress,
    streams: usize,
}

impl<'w> Receiver<'w> for Restoration<'_> {
    fn bytes(&mut self, tensor: TensorRef<'w>, offset: u64, bytes: &[u8]) -> Result<()> {
        self.output.write_at(self.data_start + tensor.data_offset() + offset, bytes)?;
        advance(self.progress, bytes.len() as u64)
    }

    fn end(&mut self, tensor: TensorRef<'w>, result: Result<()>) -> Result<()> {
        self.streams += usize::from(tensor.form() == StoredForm::Stream);
        result
    }
}
