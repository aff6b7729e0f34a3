//! Where encoded bytes go.

use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::path::Path;

use super::IoContext;
use crate::Result;

/// Takes bytes at positions. What was never written is zero.
pub(crate) trait Destination {
    /// Writes `bytes` at `offset`.
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()>;

    /// Forgets what was written at `len` and beyond.
    fn truncate(&mut self, len: u64) -> Result<()>;
}

/// A file that is new and nobody else's.
#[derive(Debug)]
pub(crate) struct FileDestination<'a> {
    file: &'a File,
    path: &'a Path,
    position: u64,
}

impl<'a> FileDestination<'a> {
    /// Writes into an empty file that lies at `path`.
    pub(crate) fn new(file: &'a File, path: &'a Path) -> Self {
        Self { file, path, position: 0 }
    }

    /// Makes the file `len` bytes long.
    pub(crate) fn finish(self, len: u64) -> Result<()> {
        self.file.set_len(len).cannot("write", self.path)
    }
}

impl Destination for FileDestination<'_> {
    fn write_at(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.position != offset {
            self.file.seek(SeekFrom::Start(offset)).cannot("write", self.path)?;
        }
        self.file.write_all(bytes).cannot("write", self.path)?;
        self.position = offset + bytes.len() as u64;
        Ok(())
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        self.file.set_len(len).cannot("write", self.path)
    }
}

/// Bytes that nobody wants to have: only what is told about them counts.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl Destination for Nowhere {
    fn write_at(&mut self, _offset: u64, _bytes: &[u8]) -> Result<()> {
        Ok(())
    }

    fn truncate(&mut self, _len: u64) -> Result<()> {
        Ok(())
    }
}
