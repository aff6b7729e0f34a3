//! Checksums over pieces (docs/format.md, "Hashes"): XXH3-64, seed 0, of each piece, then of the piece hashes together.
//!
//! Pieces let any number of threads work and let each piece be hashed while it is in cache.

use core::hash::Hasher;

use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, RawHasher, SecretBuffer};

use crate::geometry::CONTENT_PIECE_BYTES;

/// XXH3-64 with seed 0.
#[must_use]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    XxHash3_64::oneshot(bytes)
}

/// XXH3-64 with seed 0 of bytes that come part by part.
pub struct PieceHasher(RawHasher<&'static [u8; DEFAULT_SECRET_LENGTH]>);

impl PieceHasher {
    /// Of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        // The default of the type, which has its secret on the heap, allocates.
        Self(RawHasher::new(SecretBuffer::default()))
    }

    /// Adds bytes behind those that came before.
    pub fn write(&mut self, bytes: &[u8]) {
        self.0.write(bytes);
    }

    /// The hash of all that came.
    #[must_use]
    pub fn finish(&self) -> u64 {
        self.0.finish()
    }
}

impl Default for PieceHasher {
    fn default() -> Self {
        Self::new()
    }
}

impl core::fmt::Debug for PieceHasher {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_tuple("PieceHasher").field(&self.finish()).finish()
    }
}

/// Hash of one piece that lies in several parts.
#[must_use]
pub fn piece_hash(parts: &[&[u8]]) -> u64 {
    match parts {
        [part] => xxh3_64(part),
        parts => {
            let mut hasher = PieceHasher::new();
            parts.iter().for_each(|part| hasher.write(part));
            hasher.finish()
        }
    }
}

/// Combines piece hashes, in order, into the hash of the whole. Without pieces it is the hash of the empty string.
#[must_use]
pub fn combine(pieces: impl IntoIterator<Item = u64>) -> u64 {
    let mut hasher = PieceHasher::new();
    pieces.into_iter().for_each(|piece| hasher.write(&piece.to_le_bytes()));
    hasher.finish()
}

/// The piece hashes of decoded bytes, cut every 32,768 bytes.
pub fn content_pieces(bytes: &[u8]) -> impl Iterator<Item = u64> {
    bytes.chunks(CONTENT_PIECE_BYTES).map(xxh3_64)
}

/// The content hash of decoded bytes.
#[must_use]
pub fn content_hash(bytes: &[u8]) -> u64 {
    combine(content_pieces(bytes))
}
