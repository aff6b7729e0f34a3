//! Checksums over pieces (docs/format.md, "Hashes"): XXH3-64, seed 0, of each piece, then of the piece hashes together.
//!
//! Pieces let any number of threads work and let each piece be hashed while it is in cache.

#[cfg(all(feature = "std", target_arch = "x86_64"))]
#[expect(unsafe_code, reason = "intrinsics, and functions that are compiled for processors which have them")]
mod x86;

use core::hash::Hasher;

use twox_hash::XxHash3_64;
use twox_hash::xxhash3_64::{DEFAULT_SECRET_LENGTH, RawHasher, SecretBuffer};

use crate::geometry::CONTENT_PIECE_BYTES;

/// Bytes from which on a [`PieceHasher`] with vectors gains more than it costs to begin and end.
#[cfg(all(feature = "std", target_arch = "x86_64"))]
const LONG: usize = 4096;

/// XXH3-64 with seed 0.
#[must_use]
pub fn xxh3_64(bytes: &[u8]) -> u64 {
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    if bytes.len() >= LONG
        && let Some(mut hasher) = x86::Hasher::new()
    {
        hasher.write(bytes);
        return hasher.finish();
    }
    XxHash3_64::oneshot(bytes)
}

/// XXH3-64 with seed 0 of bytes that come part by part.
pub struct PieceHasher(Engine);

enum Engine {
    Library(RawHasher<&'static [u8; DEFAULT_SECRET_LENGTH]>),
    #[cfg(all(feature = "std", target_arch = "x86_64"))]
    X86(x86::Hasher),
}

impl PieceHasher {
    /// Of no bytes yet.
    #[must_use]
    pub fn new() -> Self {
        #[cfg(all(feature = "std", target_arch = "x86_64"))]
        if let Some(hasher) = x86::Hasher::new() {
            return Self(Engine::X86(hasher));
        }
        // The default of the type, which has its secret on the heap, allocates.
        Self(Engine::Library(RawHasher::new(SecretBuffer::default())))
    }

    /// Adds bytes behind those that came before.
    pub fn write(&mut self, bytes: &[u8]) {
        match &mut self.0 {
            Engine::Library(hasher) => hasher.write(bytes),
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::X86(hasher) => hasher.write(bytes),
        }
    }

    /// The hash of all that came.
    #[must_use]
    pub fn finish(&self) -> u64 {
        match &self.0 {
            Engine::Library(hasher) => hasher.finish(),
            #[cfg(all(feature = "std", target_arch = "x86_64"))]
            Engine::X86(hasher) => hasher.finish(),
        }
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
