//! Compressing: an original checkpoint becomes one whose tensors are streams.

use std::borrow::Cow;
use std::fs::File;
use std::path::Path;

use enec_format::hash::{combine, content_pieces};

use super::buffer::whole_pieces;
use super::container::{self, Placement};
use super::conversion::{self, Conversion, Options, Report, Streams};
use super::decode::{Check, Receiver, decode_tensors};
use super::encode::encode_tensors;
use super::file::CheckpointFile;
use super::header::LENGTH_BYTES;
use super::progress::{Progress, Step, advance};
use super::tensor::TensorRef;
use super::timings::Stopwatch;
use super::work::Work;
use super::write::{Destination, write_behind};
use super::{IoContext, fault};
use crate::{Codec, Error, Result};

/// Compresses a safetensors file, or all of them in a folder, whose other files are copied.
///
/// The output is complete or not there at all, and the same for the same input, parameters and version of this crate: byte for byte,
/// whatever the backend.
///
/// # Errors
///
/// [`Error::File`] if the input is no safetensors file, damaged, compressed already, or a folder in which something is wrong;
/// [`Error::Argument`] if the output exists and is not to be replaced, or is, lies in or holds the input; [`Error::Io`] if the system
/// refuses something or there is too little space; [`Error::Device`] if the device fails, which includes that what was written does
/// not decode to the input; [`Error::Cancelled`].
pub fn compress(
    codec: &Codec,
    input: &Path,
    output: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Report> {
    let stopwatch = options.stopwatch();
    let work = Work::new(codec, options, &stopwatch);
    conversion::run(&Compress { work, verify: options.verify }, input, output, options, progress)
}

struct Compress<'a> {
    work: Work<'a>,
    verify: bool,
}

impl Conversion for Compress<'_> {
    const STEP: Step = Step::Compress;

    fn check(&self, file: &CheckpointFile) -> Result<()> {
        file.require_original()
    }

    fn output_bound(&self, file: &CheckpointFile) -> Result<u64> {
        Ok(data_start(file)? + file.original().data_len())
    }

    fn convert(
        &self,
        file: &CheckpointFile,
        output: &File,
        path: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Streams> {
        let (streams, end) =
            write_behind(output, path, self.work.stopwatch, |output| self.write(file, output, progress))?;
        // The padding behind the last stream was never written.
        output.set_len(end).cannot("write", path)?;
        Ok(streams)
    }

    fn stopwatch(&self) -> &Stopwatch {
        self.work.stopwatch
    }

    fn verifies(&self) -> bool {
        self.verify
    }

    fn verify(&self, file: &CheckpointFile, path: &Path, progress: &mut dyn Progress) -> Result<()> {
        let unreadable = |error: Error| match error {
            Error::Cancelled | Error::Device { .. } | Error::Io { .. } => error,
            error => self.wrong(file, format_args!("what was written cannot be read: {error}")),
        };
        let written = CheckpointFile::open(path).map_err(unreadable)?;
        if written.original().text() != file.original().text() || !written.is_compressed() {
            return Err(self.wrong(file, "another header was written"));
        }
        advance(progress, file.original().data_start())?;
        let mut original = Original { compress: self, file, progress };
        let check = Check::ContentAndPayload;
        // Its time is the verification's, not the encoder's.
        let stopwatch = Stopwatch::default();
        let work = Work { stopwatch: &stopwatch, ..self.work };
        decode_tensors(work, written.in_data_order(), check, &mut original).map_err(unreadable)
    }
}

impl Compress<'_> {
    /// Writes the compressed file and gives its streams and its length.
    fn write<'a>(
        &self,
        file: &'a CheckpointFile,
        output: &mut dyn Destination<'a>,
        progress: &mut dyn Progress,
    ) -> Result<(Streams, u64)> {
        let start = data_start(file)?;
        advance(progress, file.original().data_start())?;
        let (encoded, mut end) = encode_tensors(self.work, file, output, start, progress)?;

        let mut placements = vec![Placement::Carried(0); encoded.len()];
        for (index, _) in file.original().in_data_order() {
            placements[index] = match &encoded[index] {
                Some(encoded) => Placement::Stream(encoded.layout.stream_len as u64),
                None => {
                    let tensor = file.tensor_at(index);
                    let hash = self.carry(tensor, output, end, progress)?;
                    end += tensor.byte_len();
                    Placement::Carried(hash)
                }
            };
        }
        let text =
            container::header_text(file.original(), &placements).map_err(|error| fault(file.path(), error, None))?;
        output.write_at(0, Cow::Owned((text.len() as u64).to_le_bytes().to_vec()))?;
        output.write_at(LENGTH_BYTES, Cow::Owned(text.into_bytes()))?;
        let mut streams = Streams::default();
        for encoded in encoded.iter().flatten() {
            streams.all += 1;
            streams.by_fallback += usize::from(!self.work.codec.encodes_on_backend(encoded.layout.coding));
        }
        Ok((streams, end))
    }

    /// Writes a tensor as it is and gives its hash.
    fn carry<'a>(
        &self,
        tensor: TensorRef<'a>,
        output: &mut dyn Destination<'a>,
        start: u64,
        progress: &mut dyn Progress,
    ) -> Result<u64> {
        let mut hashes = Vec::new();
        let mut end = start;
        for bytes in tensor.stored_bytes().chunks(whole_pieces(self.work.window_bytes)) {
            hashes.extend(content_pieces(bytes));
            output.write_at(end, Cow::Borrowed(bytes))?;
            end += bytes.len() as u64;
            // Those that were tried have been counted.
            let counted = if tensor.float_dtype().is_some() { 0 } else { bytes.len() as u64 };
            advance(progress, counted)?;
        }
        Ok(combine(hashes))
    }

    /// The error when what was written is not what was read. The device is at fault, or the memory, or the disk: not the input.
    fn wrong(&self, file: &CheckpointFile, message: impl std::fmt::Display) -> Error {
        Error::Device {
            device: self.work.codec.backend().info().name.clone(),
            message: format!("{}: {message}; nothing was kept, the input is untouched", file.path().display()),
        }
    }
}

/// Where the data of the compressed file begins.
fn data_start(file: &CheckpointFile) -> Result<u64> {
    let reserved = container::reserved_len(file.original()).map_err(|error| fault(file.path(), error, None))?;
    Ok(LENGTH_BYTES + reserved)
}

/// Has decoded bytes compared with the original.
struct Original<'a> {
    compress: &'a Compress<'a>,
    file: &'a CheckpointFile,
    progress: &'a mut dyn Progress,
}

impl<'w> Receiver<'w> for Original<'_> {
    fn bytes(&mut self, _tensor: TensorRef<'w>, _offset: u64, bytes: &[u8]) -> Result<()> {
        advance(self.progress, bytes.len() as u64)
    }

    fn expected(&self, tensor: TensorRef<'w>) -> Option<&[u8]> {
        Some(self.file.stored_bytes(tensor.name()))
    }

    fn differs(&mut self, tensor: TensorRef<'w>, _byte: u64) -> Result<()> {
        let message = format_args!("tensor `{}` decodes to other bytes than those of the input", tensor.name());
        Err(self.compress.wrong(self.file, message))
    }

    fn end(&mut self, _tensor: TensorRef<'w>, result: Result<()>) -> Result<()> {
        result
    }
}
