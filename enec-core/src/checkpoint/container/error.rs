//! What can be wrong with the header of a compressed checkpoint.

use super::{HeaderError, MAX_HEADER_LEN};

/// Why a container's header is refused, or cannot be made.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ContainerError {
    /// The header would be longer than safetensors reads.
    #[error("the compressed file's header would have {length} bytes, but safetensors reads at most {MAX_HEADER_LEN}")]
    TooLong {
        /// The length in bytes.
        length: u64,
    },
    /// A metadata entry is missing.
    #[error("metadata entry `{key}` is missing")]
    Missing {
        /// The entry's key.
        key: &'static str,
    },
    /// The container has another version.
    #[error("written by a newer version: metadata entry `enec.version` is `{found}`, this program reads `1`")]
    Version {
        /// The version in the metadata.
        found: String,
    },
    /// A metadata entry that only this format may write is unknown.
    #[error("metadata entry `{key}` is unknown: damaged, or written by a newer version")]
    UnknownKey {
        /// The entry's key.
        key: String,
    },
    /// The original header's hash disagrees.
    #[error("the original header is damaged: hash `{stored}` stored, {computed:016x} computed")]
    HeaderHash {
        /// The hash in the metadata.
        stored: String,
        /// The hash of the original header.
        computed: u64,
    },
    /// The original header is not a header, although its hash agrees.
    #[error("in the original header: {0}")]
    Original(#[source] HeaderError),
    /// The original header is itself that of a container.
    #[error("the original header is that of a compressed file")]
    Nested,
    /// The user's metadata is not that of the original header.
    #[error("the metadata differs from that in the original header")]
    Metadata,
    /// The hashes of carried tensors are not an object of texts.
    #[error("metadata entry `enec.raw.xxh3`: {reason}")]
    RawHashes {
        /// What the parser found.
        reason: String,
    },
    /// A tensor that the original does not have.
    #[error("tensor `{tensor}` does not occur in the original header")]
    UnknownTensor {
        /// The tensor's name.
        tensor: String,
    },
    /// A tensor of the original is missing.
    #[error("tensor `{tensor}` of the original header is missing")]
    MissingTensor {
        /// The tensor's name.
        tensor: String,
    },
    /// A stream is not one-dimensional.
    #[error("tensor `{tensor}`: a stream has one dimension, found shape {found:?}")]
    StreamShape {
        /// The tensor's name.
        tensor: String,
        /// The shape.
        found: Vec<u64>,
    },
    /// A stream is shorter than any stream of its tensor's size.
    #[error("tensor `{tensor}`: a stream of {found} bytes cannot hold the {decoded} bytes of the original header")]
    StreamShort {
        /// The tensor's name.
        tensor: String,
        /// The stream's length in bytes.
        found: u64,
        /// The tensor's length in bytes by the original header.
        decoded: u64,
    },
    /// A carried tensor is not described as in the original.
    #[error("tensor `{tensor}` is {found}, but {expected} in the original header")]
    Carried {
        /// The tensor's name.
        tensor: String,
        /// What the container says.
        found: String,
        /// What the original header says.
        expected: String,
    },
    /// A carried tensor has no hash.
    #[error("carried tensor `{tensor}` has no hash in metadata entry `enec.raw.xxh3`")]
    MissingHash {
        /// The tensor's name.
        tensor: String,
    },
    /// A hash belongs to no carried tensor.
    #[error("metadata entry `enec.raw.xxh3` has a hash for `{tensor}`, which is no carried tensor")]
    ExtraHash {
        /// The name.
        tensor: String,
    },
    /// A hash is not 16 lower-case hex digits.
    #[error("hash `{found}` of carried tensor `{tensor}` is not 16 lower-case hex digits")]
    HashText {
        /// The tensor's name.
        tensor: String,
        /// The text.
        found: String,
    },
    /// Something other than spaces stands around the header's JSON object.
    #[error("the header is not one JSON object padded with spaces: byte {offset} of its text")]
    Padding {
        /// The first wrong byte.
        offset: u64,
    },
    /// A stream holds other elements than its tensor.
    #[error("the stream holds {found} elements, but the original header says {expected}")]
    StreamElements {
        /// Count and dtype in the stream.
        found: String,
        /// Count and dtype in the original header.
        expected: String,
    },
    /// A stream that is not coded, which no writer puts into a container.
    #[error("the stream is a stored one, which a compressed file never holds")]
    StreamStored,
    /// A carried tensor's bytes are not those that were hashed.
    #[error("content hash mismatch: stored {stored:016x}, computed {computed:016x}")]
    CarriedHash {
        /// The hash in the metadata.
        stored: u64,
        /// The hash of the bytes.
        computed: u64,
    },
}
