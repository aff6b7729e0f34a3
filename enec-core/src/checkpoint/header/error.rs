//! What can be wrong with a safetensors header.

use super::{LENGTH_BYTES, MAX_HEADER_LEN};

/// Why a safetensors header is refused.
///
/// Offsets into the header count from the first byte of its text, which is byte 8 of the file; offsets into the data count from the
/// first byte after the header.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum HeaderError {
    /// The file is too short for the length of a header.
    #[error("the file has {file_len} bytes, but a safetensors file starts with {LENGTH_BYTES} bytes of header length")]
    NoLength {
        /// The file's length in bytes.
        file_len: u64,
    },
    /// The header is longer than safetensors allows.
    #[error("a header of {header_len} bytes is given at byte 0, but at most {MAX_HEADER_LEN} are allowed")]
    TooLong {
        /// The header's length in bytes as the file gives it.
        header_len: u64,
    },
    /// The file ends inside its header.
    #[error("a header of {header_len} bytes is given at byte 0, but the file ends after {file_len} bytes")]
    Cut {
        /// The header's length in bytes as the file gives it.
        header_len: u64,
        /// The file's length in bytes.
        file_len: u64,
    },
    /// The header is not UTF-8.
    #[error("the header is not UTF-8 from byte {offset} of its text on")]
    Encoding {
        /// The first byte that is wrong.
        offset: u64,
    },
    /// The header is not the JSON that a safetensors header has to be.
    #[error("{reason}, at byte {offset} of the header text")]
    Json {
        /// Where the parser stopped.
        offset: u64,
        /// What it found.
        reason: String,
    },
    /// Two tensors have the same name.
    #[error("tensor `{tensor}` occurs twice in the header")]
    DuplicateTensor {
        /// The name.
        tensor: String,
    },
    /// A tensor has more elements or bits than 64 bits can count.
    #[error("tensor `{tensor}`: its shape has more than 2^64 elements or bits")]
    ShapeOverflow {
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor ends before it starts.
    #[error("tensor `{tensor}` starts at data byte {start} and ends before it, at {end}")]
    Reversed {
        /// The tensor's name.
        tensor: String,
        /// Its first offset.
        start: u64,
        /// Its second offset.
        end: u64,
    },
    /// A tensor shares bytes with the tensor before it.
    #[error("tensor `{tensor}` starts at data byte {start}, inside the tensor before it, which ends at {expected}")]
    Overlap {
        /// The tensor's name.
        tensor: String,
        /// Where it starts.
        start: u64,
        /// Where the tensor before it ends.
        expected: u64,
    },
    /// Bytes before a tensor belong to no tensor.
    #[error("tensor `{tensor}` starts at data byte {start}, but the data before it ends at {expected}")]
    Hole {
        /// The tensor's name.
        tensor: String,
        /// Where it starts.
        start: u64,
        /// Where the tensor before it ends.
        expected: u64,
    },
    /// A tensor of elements shorter than a byte ends inside a byte.
    #[error("tensor `{tensor}`: its shape in {dtype} is {bits} bits, which is no whole number of bytes")]
    PartOfByte {
        /// The tensor's name.
        tensor: String,
        /// Its dtype.
        dtype: String,
        /// The bits that its shape takes.
        bits: u64,
    },
    /// A tensor's bytes are not as many as its shape and dtype take.
    #[error("tensor `{tensor}`: {dtype} of shape {shape:?} takes {expected} bytes, but its offsets span {found}")]
    TensorLength {
        /// The tensor's name.
        tensor: String,
        /// Its dtype.
        dtype: String,
        /// Its shape.
        shape: Vec<u64>,
        /// The bytes that dtype and shape take.
        expected: u64,
        /// The bytes between its offsets.
        found: u64,
    },
    /// The file has more or fewer bytes of data than its tensors.
    #[error("the tensors take {expected} bytes, but {found} bytes follow the header")]
    DataLength {
        /// The bytes that the tensors take.
        expected: u64,
        /// The bytes after the header.
        found: u64,
    },
}
