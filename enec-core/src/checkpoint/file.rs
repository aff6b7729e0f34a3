//! One safetensors file, original or compressed, opened and its header checked.

use std::fs::Metadata;
use std::path::Path;

use super::container::{Container, is_container};
use super::header::Header;
use super::map::MappedFile;
use super::tensor::TensorRef;
use super::{fault, foreign};
use crate::{Error, Result};

/// An opened safetensors file.
///
/// Its header is checked, that of a compressed file also against the original header in it. Tensors are checked when they are read.
#[derive(Debug)]
pub struct CheckpointFile {
    map: MappedFile,
    header: Header,
    container: Option<Container>,
}

impl CheckpointFile {
    /// Opens an original or a compressed file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::File`] if it is no safetensors file or its header is damaged.
    pub fn open(path: &Path) -> Result<Self> {
        let map = MappedFile::open(path)?;
        let header = Header::parse(&map).map_err(|error| {
            foreign::refuse(path, &map)
                .unwrap_or_else(|| fault(path, format_args!("not a safetensors file: {error}"), None))
        })?;
        let container = is_container(&header).then(|| Container::open(&header)).transpose();
        let container = container.map_err(|error| fault(path, error, None))?;
        Ok(Self { map, header, container })
    }

    /// Where the file lies.
    #[must_use]
    pub fn path(&self) -> &Path {
        self.map.path()
    }

    /// The file's length in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.map.len() as u64
    }

    /// The length in bytes of the original file.
    #[must_use]
    pub fn original_len(&self) -> u64 {
        self.original().data_start() + self.original().data_len()
    }

    /// Whether this is a compressed file.
    #[must_use]
    pub fn is_compressed(&self) -> bool {
        self.container.is_some()
    }

    /// The header of the original: the file's own, or the one that a compressed file holds.
    #[must_use]
    pub fn original(&self) -> &Header {
        self.container.as_ref().map_or(&self.header, Container::original)
    }

    /// The tensors in the order in which the original header names them.
    pub fn tensors(&self) -> impl ExactSizeIterator<Item = TensorRef<'_>> {
        (0..self.original().tensors().len()).map(|index| self.tensor_at(index))
    }

    /// The tensor called `name`.
    #[must_use]
    pub fn tensor(&self, name: &str) -> Option<TensorRef<'_>> {
        self.original().position(name).map(|index| self.tensor_at(index))
    }

    /// What the tensor called `name` lies here as; nothing if there is none.
    pub(crate) fn stored_bytes(&self, name: &str) -> &[u8] {
        self.tensor(name).map_or(&[], |tensor| tensor.stored_bytes())
    }

    /// The tensor that is number `index` in the original header.
    pub(crate) fn tensor_at(&self, index: usize) -> TensorRef<'_> {
        let entry = &self.original().tensors()[index];
        let (range, form) = match &self.container {
            Some(container) => {
                let placed = &container.tensors()[index];
                (&placed.range, Some(placed.form))
            }
            None => (&entry.range, None),
        };
        // The header was checked against the file's length, so every byte of the data section has a `usize` index.
        let index = |offset: u64| usize::try_from(self.header.data_start() + offset).unwrap_or(usize::MAX);
        let bytes = &self.map[index(range.start)..index(range.end)];
        TensorRef::new(self.path(), entry, bytes, form)
    }

    /// The tensors in the order in which decompression needs them: that of the original's data.
    pub(crate) fn in_data_order(&self) -> impl Iterator<Item = TensorRef<'_>> {
        self.original().in_data_order().map(|(index, _)| self.tensor_at(index))
    }

    /// Mode and times of the file.
    pub(crate) fn metadata(&self) -> &Metadata {
        self.map.metadata()
    }

    /// Refuses a compressed file.
    pub(crate) fn require_original(&self) -> Result<()> {
        match self.is_compressed() {
            true => {
                Err(fault(self.path(), "already compressed by enec", Some("`enec decompress` restores the original")))
            }
            false => Ok(()),
        }
    }

    /// Refuses an original file.
    pub(crate) fn require_compressed(&self) -> Result<()> {
        match self.is_compressed() {
            true => Ok(()),
            false => Err(fault(self.path(), "not compressed by enec", Some("`enec compress` makes compressed files"))),
        }
    }
}

/// The error for a fault of a tensor. Errors that are not about the data, and those that name a tensor already, stay as they are.
pub(crate) fn tensor_error(path: &Path, tensor: &str, source: Error) -> Error {
    match source {
        Error::Format(_) | Error::Container(_) => {
            Error::Tensor { path: path.to_owned(), tensor: tensor.to_owned(), source: Box::new(source) }
        }
        other => other,
    }
}
