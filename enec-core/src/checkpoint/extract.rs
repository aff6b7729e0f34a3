//! Taking one tensor out of a checkpoint.

use std::path::Path;

use super::conversion::check_apart;
use super::decode::{Check, decode_tensors};
use super::output::{NewFile, reserve};
use super::progress::Progress;
use super::reader::Checkpoint;
use super::restore::Restoration;
use super::work::Work;
use super::write::write_behind;
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
    let stopwatch = options.stopwatch();
    let work = Work::new(codec, options, &stopwatch);
    reserve(new.file(), tensor.byte_len());
    write_behind(new.file(), new.path(), &stopwatch, |output| {
        let mut restoration = Restoration { start: &|_| 0, output, progress };
        decode_tensors(work, [tensor], Check::Content, &mut restoration)
    })?;
    let metadata = tensor.path().metadata().cannot("read", tensor.path())?;
    new.finish(&metadata)
}
