//! The header of a safetensors file, with every dtype kept as text.
//!
//! A safetensors file is eight bytes with the header's length (little-endian), the header as JSON text, and the data. The
//! safetensors crate refuses a whole file over one dtype that it does not know, and forgets the text; a checkpoint must carry
//! both, so the header is parsed here into our own type. The crate is the oracle in the tests: with dtypes that it
//! knows, the same files are accepted, except that a name that occurs twice is refused here (the crate keeps the last).
//!
//! Source: <https://github.com/huggingface/safetensors#format>.

use std::collections::BTreeMap;
use std::ops::Range;

pub use self::error::HeaderError;
use self::json::RawHeader;
pub(crate) use self::json::UniqueMap;

mod error;
mod json;
#[cfg(test)]
mod tests;

/// The longest header that safetensors reads, in bytes.
pub const MAX_HEADER_LEN: u64 = 100_000_000;

/// Bytes before the header text: its length as a little-endian u64.
pub const LENGTH_BYTES: u64 = 8;

/// The checked header of a safetensors file.
///
/// The tensors cover the data section from its first byte to its last, without holes and without sharing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Header {
    text: String,
    metadata: Option<BTreeMap<String, String>>,
    tensors: Vec<TensorEntry>,
    /// Indices into `tensors` by (start, end, header order).
    data_order: Vec<usize>,
    /// Indices into `tensors` by name.
    name_order: Vec<usize>,
    data_len: u64,
}

/// One tensor as a safetensors header describes it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct TensorEntry {
    /// The tensor's name, unique in its file.
    pub name: String,
    /// The dtype as the header spells it, known or not.
    pub dtype: String,
    /// The extent of each dimension; empty for a scalar.
    pub shape: Vec<u64>,
    /// The product of the shape: one for a scalar.
    pub element_count: u64,
    /// The tensor's bytes, counted from the start of the data section.
    pub range: Range<u64>,
}

impl TensorEntry {
    /// The tensor's length in bytes.
    #[must_use]
    pub fn byte_len(&self) -> u64 {
        self.range.end - self.range.start
    }
}

impl Header {
    /// Parses and checks the header at the start of `file`, which is the whole file.
    ///
    /// # Errors
    ///
    /// The header or what it says about the data is wrong, or the data section has another length than the tensors.
    pub fn parse(file: &[u8]) -> Result<Self, HeaderError> {
        let file_len = file.len() as u64;
        let (length, rest) = file.split_first_chunk().ok_or(HeaderError::NoLength { file_len })?;
        let header_len = u64::from_le_bytes(*length);
        if header_len > MAX_HEADER_LEN {
            return Err(HeaderError::TooLong { header_len });
        }
        let (text, data) = usize::try_from(header_len)
            .ok()
            .and_then(|length| rest.split_at_checked(length))
            .ok_or(HeaderError::Cut { header_len, file_len })?;
        let text =
            str::from_utf8(text).map_err(|error| HeaderError::Encoding { offset: error.valid_up_to() as u64 })?;
        let header = Self::from_text(text.to_owned())?;
        let data_len = data.len() as u64;
        if data_len != header.data_len {
            return Err(HeaderError::DataLength { expected: header.data_len, found: data_len });
        }
        Ok(header)
    }

    /// Parses and checks a header's text, whose tensors say how long the data section is.
    ///
    /// # Errors
    ///
    /// The text or what it says about the data is wrong.
    pub fn from_text(text: String) -> Result<Self, HeaderError> {
        let RawHeader { metadata, tensors } = RawHeader::parse(&text)?;
        let tensors = tensors
            .into_iter()
            .map(|(name, tensor)| {
                let (start, end) = tensor.data_offsets;
                let element_count = tensor.shape.iter().try_fold(1, |count: u64, &extent| count.checked_mul(extent));
                match element_count {
                    Some(element_count) => Ok(TensorEntry {
                        name,
                        dtype: tensor.dtype,
                        shape: tensor.shape,
                        element_count,
                        range: start..end,
                    }),
                    None => Err(HeaderError::ShapeOverflow { tensor: name }),
                }
            })
            .collect::<Result<Vec<_>, _>>()?;

        let mut name_order = Vec::from_iter(0..tensors.len());
        name_order.sort_by(|&left, &right| tensors[left].name.cmp(&tensors[right].name));
        for pair in name_order.windows(2) {
            if tensors[pair[0]].name == tensors[pair[1]].name {
                return Err(HeaderError::DuplicateTensor { tensor: tensors[pair[0]].name.clone() });
            }
        }

        let mut data_order = Vec::from_iter(0..tensors.len());
        // A stable sort: tensors with equal offsets are empty and keep the header's order.
        data_order.sort_by_key(|&index| (tensors[index].range.start, tensors[index].range.end));
        let mut data_len = 0;
        for &index in &data_order {
            check_bytes(&tensors[index], data_len)?;
            data_len = tensors[index].range.end;
        }
        Ok(Self { text, metadata, tensors, data_order, name_order, data_len })
    }

    /// The header's text as it stands in the file, with its padding.
    #[must_use]
    pub fn text(&self) -> &str {
        &self.text
    }

    /// The `__metadata__` entry, if there is one.
    #[must_use]
    pub fn metadata(&self) -> Option<&BTreeMap<String, String>> {
        self.metadata.as_ref()
    }

    /// The tensors in the order in which the header names them.
    #[must_use]
    pub fn tensors(&self) -> &[TensorEntry] {
        &self.tensors
    }

    /// The tensors in the order of their data, each with its index in [`tensors`](Self::tensors).
    ///
    /// Tensors with equal offsets, which are empty, come in header order.
    pub fn in_data_order(&self) -> impl ExactSizeIterator<Item = (usize, &TensorEntry)> {
        self.data_order.iter().map(|&index| (index, &self.tensors[index]))
    }

    /// The index of the tensor called `name` in [`tensors`](Self::tensors).
    #[must_use]
    pub fn position(&self, name: &str) -> Option<usize> {
        let found = self.name_order.binary_search_by(|&index| self.tensors[index].name.as_str().cmp(name)).ok()?;
        Some(self.name_order[found])
    }

    /// The offset of the data section in the file, in bytes.
    #[must_use]
    pub fn data_start(&self) -> u64 {
        LENGTH_BYTES + self.text.len() as u64
    }

    /// The length of the data section in bytes.
    #[must_use]
    pub fn data_len(&self) -> u64 {
        self.data_len
    }
}

/// Checks one tensor's byte range, where `expected` is the end of the tensor before it.
fn check_bytes(tensor: &TensorEntry, expected: u64) -> Result<(), HeaderError> {
    let Range { start, end } = tensor.range;
    let name = || tensor.name.clone();
    if end < start {
        return Err(HeaderError::Reversed { tensor: name(), start, end });
    }
    if start < expected {
        return Err(HeaderError::Overlap { tensor: name(), start, expected });
    }
    if start > expected {
        return Err(HeaderError::Hole { tensor: name(), start, expected });
    }
    // How long an element of an unknown dtype is nobody knows: its offsets are all there is.
    let Some(bits) = element_bits(&tensor.dtype) else { return Ok(()) };
    let bits = tensor.element_count.checked_mul(bits).ok_or_else(|| HeaderError::ShapeOverflow { tensor: name() })?;
    if bits % 8 != 0 {
        return Err(HeaderError::PartOfByte { tensor: name(), dtype: tensor.dtype.clone(), bits });
    }
    if bits / 8 != end - start {
        return Err(HeaderError::TensorLength {
            tensor: name(),
            dtype: tensor.dtype.clone(),
            shape: tensor.shape.clone(),
            expected: bits / 8,
            found: end - start,
        });
    }
    Ok(())
}

/// The bits that one element of `dtype` takes, if safetensors (0.8) knows it.
#[must_use]
pub fn element_bits(dtype: &str) -> Option<u64> {
    Some(match dtype {
        "F4" => 4,
        "F6_E2M3" | "F6_E3M2" => 6,
        "BOOL" | "U8" | "I8" | "F8_E5M2" | "F8_E4M3" | "F8_E8M0" | "F8_E4M3FNUZ" | "F8_E5M2FNUZ" => 8,
        "I16" | "U16" | "F16" | "BF16" => 16,
        "I32" | "U32" | "F32" => 32,
        "I64" | "U64" | "F64" | "C64" => 64,
        _ => return None,
    })
}
