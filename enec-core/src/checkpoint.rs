//! Whole checkpoints: safetensors files and folders of them.
//!
//! [`Checkpoint::open`] reads an original or a compressed checkpoint, tensor by tensor. [`compress`], [`decompress`], [`verify()`] and
//! [`inspect()`] work on whole files and folders, with bounded memory also inside one tensor: inputs are mapped, whose pages are the
//! system's, and what is encoded or decoded passes through buffers of a fixed size.
//!
//! A compressed checkpoint is again a safetensors file; [`container`] is its header.

use std::fmt::Display;
use std::fs::Metadata;
use std::io;
use std::path::Path;

use crate::{Error, Result};

mod buffer;
mod comparison;
mod compress;
pub mod container;
mod conversion;
mod decode;
mod decompress;
mod encode;
mod extract;
mod file;
mod folder;
mod foreign;
pub mod header;
mod inspect;
mod map;
mod output;
mod progress;
mod reader;
mod restore;
mod spread;
mod tensor;
#[cfg(test)]
mod tests;
mod timings;
mod verify;
mod work;
mod write;

pub use compress::compress;
pub use conversion::{Options, Report};
pub use decompress::decompress;
pub use extract::extract;
pub use file::CheckpointFile;
pub use inspect::{CodecInspection, Inspection, StreamInspection, TensorInspection, inspect};
pub use progress::{Progress, Step};
pub use reader::Checkpoint;
pub use tensor::{StoredForm, TensorRef};
pub use timings::Timings;
pub use verify::{Damage, Verification, verify};

/// Names the file and what was tried when the system refuses something.
trait IoContext<T> {
    fn cannot(self, action: &'static str, path: &Path) -> Result<T>;
}

impl<T> IoContext<T> for io::Result<T> {
    fn cannot(self, action: &'static str, path: &Path) -> Result<T> {
        self.map_err(|source| Error::Io { action, path: path.to_owned(), source })
    }
}

/// What the system says of an input. One that does not exist is the input's fault, not the machine's.
fn input_metadata(path: &Path) -> Result<Metadata> {
    match path.metadata() {
        Err(error) if error.kind() == io::ErrorKind::NotFound => Err(fault(path, "no such file or folder", None)),
        metadata => metadata.cannot("read", path),
    }
}

/// The error for a file that is at fault.
fn fault(path: &Path, message: impl Display, hint: Option<&str>) -> Error {
    Error::File { path: path.to_owned(), message: message.to_string(), hint: hint.map(str::to_owned) }
}
