//! Files as memory, read-only.

use std::fs::{File, Metadata};
use std::ops::Deref;
use std::path::{Path, PathBuf};

use memmap2::Mmap;

use super::{IoContext, fault, input_metadata};
use crate::Result;

/// A file mapped into memory. Its pages belong to the system's cache, not to this process.
#[derive(Debug)]
pub(crate) struct MappedFile {
    path: PathBuf,
    metadata: Metadata,
    map: Mmap,
}

impl MappedFile {
    /// Maps a regular file, or what a symbolic link leads to.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) if it cannot be opened or mapped, [`Error::File`](crate::Error::File) if it is no regular file.
    pub(crate) fn open(path: &Path) -> Result<Self> {
        // Asked before opening: opening a pipe waits for its other end.
        let metadata = input_metadata(path)?;
        if !metadata.is_file() {
            return Err(fault(path, "not a regular file", None));
        }
        let file = File::open(path).cannot("open", path)?;
        // SAFETY: the map is read-only and lives as long as the slices taken from it. Nobody in this process writes to a file that
        // it has mapped: outputs go to new files, and only those that are complete are mapped. Another process may change the
        // file, which no program can prevent. What is read then is wrong, but it is only ever used as plain bytes: sizes and offsets
        // taken from it are checked where they are used, and the hashes disagree. A file cut short under the map ends the process
        // with a bus error, as in every program that maps files.
        #[expect(unsafe_code, reason = "a map of a file cannot be made safely; the argument is above")]
        let map = unsafe { Mmap::map(&file) }.cannot("map", path)?;
        Ok(Self { path: path.to_owned(), metadata, map })
    }

    /// Where the file lies.
    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// Mode and times of the file.
    pub(crate) fn metadata(&self) -> &Metadata {
        &self.metadata
    }
}

impl Deref for MappedFile {
    type Target = [u8];

    fn deref(&self) -> &[u8] {
        &self.map
    }
}
