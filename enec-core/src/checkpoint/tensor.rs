//! One tensor of an opened checkpoint.

use std::ops::Range;
use std::path::Path;

use enec_format::hash::content_hash;
use enec_format::{Coding, Dtype, Stream};

use super::container::{ContainerError, Form};
use super::file::tensor_error;
use super::header::{TensorEntry, element_bits};
use crate::{Codec, Error, Result};

/// As what a tensor lies in its file.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum StoredForm {
    /// Its plain bytes in an original file.
    Original,
    /// Its plain bytes in a compressed file.
    Carried,
    /// A stream in a compressed file.
    Stream,
}

/// A tensor of an opened file. Nothing of its data has been read yet.
#[derive(Debug, Clone, Copy)]
pub struct TensorRef<'a> {
    path: &'a Path,
    entry: &'a TensorEntry,
    stored: &'a [u8],
    form: Option<Form>,
}

impl<'a> TensorRef<'a> {
    pub(crate) fn new(path: &'a Path, entry: &'a TensorEntry, stored: &'a [u8], form: Option<Form>) -> Self {
        Self { path, entry, stored, form }
    }

    /// The file that it lies in.
    #[must_use]
    pub fn path(&self) -> &'a Path {
        self.path
    }

    /// Its name.
    #[must_use]
    pub fn name(&self) -> &'a str {
        &self.entry.name
    }

    /// Its dtype as the original header spells it.
    #[must_use]
    pub fn dtype(&self) -> &'a str {
        &self.entry.dtype
    }

    /// Its shape; empty for a scalar.
    #[must_use]
    pub fn shape(&self) -> &'a [u64] {
        &self.entry.shape
    }

    /// The product of its shape.
    #[must_use]
    pub fn element_count(&self) -> u64 {
        self.entry.element_count
    }

    /// The length of its decoded bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.entry.byte_len()
    }

    /// The bytes of one element; `None` for dtypes that are unknown or shorter than a byte.
    #[must_use]
    pub fn element_bytes(&self) -> Option<u64> {
        element_bits(self.dtype()).filter(|bits| bits % 8 == 0).map(|bits| bits / 8)
    }

    /// As what it lies in its file.
    #[must_use]
    pub fn form(&self) -> StoredForm {
        match self.form {
            None => StoredForm::Original,
            Some(Form::Carried(_)) => StoredForm::Carried,
            Some(Form::Stream(_)) => StoredForm::Stream,
        }
    }

    /// Its bytes as they lie in the file: a stream, or plain.
    #[must_use]
    pub fn stored_bytes(&self) -> &'a [u8] {
        self.stored
    }

    /// The validated stream of a tensor that is stored as one; `None` for any other. Its hashes are not checked.
    ///
    /// # Errors
    ///
    /// [`Error::Tensor`] if the stream is damaged, unsealed, or not one of this tensor.
    pub fn stream(&self) -> Result<Option<Stream<'a>>> {
        match self.form {
            Some(Form::Stream(dtype)) => self.open_stream(dtype).map(Some).map_err(|error| self.error(error)),
            _ => Ok(None),
        }
    }

    fn open_stream(&self, dtype: Dtype) -> Result<Stream<'a>> {
        let stream = Stream::open(self.stored)?;
        let expected = format!("{} {}", self.entry.element_count, dtype.name());
        let found = format!("{} {}", stream.elements(), stream.dtype().name());
        if found != expected {
            return Err(ContainerError::StreamElements { found, expected }.into());
        }
        if stream.coding() == Coding::Stored {
            return Err(ContainerError::StreamStored.into());
        }
        // One that is not sealed says which hash is missing.
        if stream.header().seal().is_none() {
            stream.header().check_payload(0)?;
            stream.header().check_content(0)?;
        }
        Ok(stream)
    }

    /// Decodes the whole tensor, and checks the hash that a compressed file has of it.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] unless `target` has exactly [`byte_len`](Self::byte_len) bytes, [`Error::Tensor`] if the tensor is damaged,
    /// [`Error::Device`] if the device fails. After an error `target` holds unspecified bytes.
    pub fn decode_into(&self, codec: &Codec, target: &mut [u8]) -> Result<()> {
        self.check_target(target, self.byte_len())?;
        if let Some(stream) = self.stream()? {
            return codec.decode_into(&stream, target).map_err(|error| self.error(error));
        }
        target.copy_from_slice(self.stored);
        self.check_carried(|| content_hash(target))
    }

    /// Decodes a range of elements, counted in row-major order. Only the tiles that it touches are read and no hash is checked.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the tensor has no such elements, if its elements are not whole bytes, or unless `target` has exactly
    /// their length; otherwise as [`decode_into`](Self::decode_into).
    pub fn decode_elements_into(&self, codec: &Codec, elements: Range<u64>, target: &mut [u8]) -> Result<()> {
        let Range { start, end } = elements;
        if start > end || end > self.element_count() {
            let message =
                format!("elements {start}..{end} of tensor `{}`, which has {}", self.name(), self.element_count());
            return Err(Error::Argument(message));
        }
        let element_bytes = self.element_bytes().ok_or_else(|| {
            Error::Argument(format!(
                "elements of tensor `{}`: those of {} are not whole bytes",
                self.name(),
                self.dtype()
            ))
        })?;
        // No product overflows: the header's check has made that of the whole tensor.
        self.check_target(target, (end - start) * element_bytes)?;
        let index = |number: u64| usize::try_from(number).unwrap_or(usize::MAX);
        if let Some(stream) = self.stream()? {
            let elements = index(start)..index(end);
            return codec.decode_elements_into(&stream, elements, target).map_err(|error| self.error(error));
        }
        target.copy_from_slice(&self.stored[index(start * element_bytes)..index(end * element_bytes)]);
        Ok(())
    }

    /// Decodes rows, which are what the first dimension counts. Only the tiles that they touch are read and no hash is checked.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] for a scalar or if there are no such rows; otherwise as
    /// [`decode_elements_into`](Self::decode_elements_into).
    pub fn decode_rows_into(&self, codec: &Codec, rows: Range<u64>, target: &mut [u8]) -> Result<()> {
        let count = self.shape().first().copied().unwrap_or(0);
        if rows.start > rows.end || rows.end > count {
            let message = format!("rows {}..{} of tensor `{}`, which has {count}", rows.start, rows.end, self.name());
            return Err(Error::Argument(message));
        }
        let row = self.element_count().checked_div(count).unwrap_or(0);
        self.decode_elements_into(codec, rows.start * row..rows.end * row, target)
    }

    /// Where its bytes start in the data section of the original.
    pub(crate) fn data_offset(&self) -> u64 {
        self.entry.range.start
    }

    /// The dtype of a tensor whose elements have exponents.
    pub(crate) fn float_dtype(&self) -> Option<Dtype> {
        Dtype::from_name(self.dtype())
    }

    /// Compares the hash of the plain bytes of a carried tensor with the file's. Others have none.
    pub(crate) fn check_carried(&self, computed: impl FnOnce() -> u64) -> Result<()> {
        let Some(Form::Carried(stored)) = self.form else { return Ok(()) };
        let computed = computed();
        if computed == stored {
            return Ok(());
        }
        Err(self.error(ContainerError::CarriedHash { stored, computed }.into()))
    }

    /// The error for a fault of this tensor.
    pub(crate) fn error(&self, source: Error) -> Error {
        tensor_error(self.path, self.name(), source)
    }

    fn check_target(&self, target: &[u8], expected: u64) -> Result<()> {
        if target.len() as u64 == expected {
            return Ok(());
        }
        let message = format!("target of {} bytes for tensor `{}`, expected {expected}", target.len(), self.name());
        Err(Error::Argument(message))
    }
}
