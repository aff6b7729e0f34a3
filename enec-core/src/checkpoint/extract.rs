//! Taking one tensor out of a checkpoint.

use std::path::Path;

use super::conversion::check_apart;
use super::decode::{Check, Receiver, decode_tensors};
use super::output::NewFile;
use super::progress::{Progress, advance};
use super::reader::Checkpoint;
use super::tensor::TensorRef;
use super::write::{Destination, FileDestination};
use super::{IoContext, Options};
use crate::{Codec, Result};

/// Writes the decoded bytes of the tensor `name` into the file `output`: elements in row-major order, little-endian, nothing else.
///
/// Works on original and compressed checkpoints. The tensor's hash is checked before the file gets its name.
///
/// # Errors
///
/// As [`Checkpoint::tensor`] and [`compress`](super::compress).
pub fn extract(
    codec: &Codec,
    checkpoint: &Checkpoint,
    name: &str,
    output: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<()> {
    let tensor = checkpoint.tensor(name)?;
    checkpoint.files().iter().try_for_each(|file| check_apart(file.path(), output))?;
    progress.total(tensor.byte_len());
    let new = NewFile::create(output, options.force)?;
    let mut extraction = Extraction { output: FileDestination::new(new.file(), new.path()), progress };
    decode_tensors(codec, [tensor], options.window_bytes, Check::Content, &mut extraction)?;
    let metadata = tensor.path().metadata().cannot("read", tensor.path())?;
    new.finish(&metadata)
}

struct Extraction<'a> {
    output: FileDestination<'a>,
    progress: &'a mut dyn Progress,
}

impl<'w> Receiver<'w> for Extraction<'_> {
    fn bytes(&mut self, _tensor: TensorRef<'w>, offset: u64, bytes: &[u8]) -> Result<()> {
        self.output.write_at(offset, bytes)?;
        advance(self.progress, bytes.len() as u64)
    }

    fn end(&mut self, _tensor: TensorRef<'w>, result: Result<()>) -> Result<()> {
        result
    }
}
