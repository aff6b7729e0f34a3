//! Collects piece hashes while a backend works, and completes what it did not report.

use std::sync::OnceLock;

use enec_format::geometry::{BLOCK_ELEMENTS, CONTENT_PIECE_BYTES};
use enec_format::hash::{PieceHasher, combine, piece_hash, xxh3_64};
use enec_format::{Coding, Layout, Stream};

use crate::{Feed, PieceSink};

/// The piece hashes of one tensor, filled block by block from any thread.
#[derive(Debug)]
pub struct PieceHashes {
    content: Vec<OnceLock<u64>>,
    payload: Vec<OnceLock<u64>>,
    /// Which of the payload's pieces is block 0.
    first_block: usize,
    /// Content pieces of a whole block.
    block_pieces: usize,
}

impl PieceHashes {
    /// No piece known yet of a tensor with this layout.
    #[must_use]
    pub fn new(layout: &Layout) -> Self {
        let empty = |count| -> Vec<_> { std::iter::repeat_with(OnceLock::new).take(count).collect() };
        let block_bytes = BLOCK_ELEMENTS * layout.dtype.element_bytes();
        let payload = empty(layout.payload_pieces());
        if let Coding::Cascade(cascade) = layout.coding {
            set(&payload, 0, || xxh3_64(&cascade.to_section()));
        }
        Self {
            content: empty(layout.content_pieces()),
            payload,
            first_block: layout.block_pieces().start,
            block_pieces: block_bytes.div_ceil(CONTENT_PIECE_BYTES),
        }
    }

    /// A sink for a job whose block 0 is block `first_block` of the tensor.
    #[must_use]
    pub fn sink(&self, first_block: usize) -> PieceWindow<'_> {
        PieceWindow { hashes: self, first_block, wants_payload: true }
    }

    /// Records the hash of decoded bytes that start at piece `first` and go to the end of a piece or of the tensor.
    pub fn add_content(&self, first: usize, decoded: &[u8]) {
        for (piece, bytes) in decoded.chunks(CONTENT_PIECE_BYTES).enumerate() {
            set(&self.content, first + piece, || xxh3_64(bytes));
        }
    }

    /// Records the payload hash of the tail of a coded stream.
    pub fn add_tail(&self, blocks: usize, tail: &[u8]) {
        if !tail.is_empty() {
            set(&self.payload, self.first_block + blocks, || xxh3_64(tail));
        }
    }

    /// The content hash, if every piece is known.
    #[must_use]
    pub fn content(&self) -> Option<u64> {
        all(&self.content)
    }

    /// The payload hash, if every piece is known.
    #[must_use]
    pub fn payload(&self) -> Option<u64> {
        all(&self.payload)
    }

    /// The content hash of decoded bytes, hashing only what was not reported.
    #[must_use]
    pub fn complete_content(&self, decoded: &[u8]) -> u64 {
        let pieces = decoded.chunks(CONTENT_PIECE_BYTES).zip(&self.content);
        combine(pieces.map(|(bytes, hash)| *hash.get_or_init(|| xxh3_64(bytes))))
    }

    /// The payload hash of a stream, hashing only what was not reported.
    ///
    /// What was reported of a stream that ended as stored is not of its stored bytes, which are its content.
    #[must_use]
    pub fn complete_payload(&self, stream: &Stream<'_>) -> u64 {
        if stream.coding() == Coding::Stored {
            return self.complete_content(stream.tail());
        }
        let whole = |part: &[u8]| (!part.is_empty()).then(|| xxh3_64(part));
        let blocks = stream.blocks().zip(&self.payload[self.first_block..]);
        let blocks = blocks.map(|(block, hash)| *hash.get_or_init(|| piece_hash(&block.parts())));
        combine(whole(stream.symbol_section()).into_iter().chain(blocks).chain(whole(stream.tail())))
    }
}

/// A slot that was filled before keeps its value, which is the same: reporting a piece again costs no hashing.
fn set(slots: &[OnceLock<u64>], index: usize, hash: impl FnOnce() -> u64) {
    if let Some(slot) = slots.get(index) {
        slot.get_or_init(hash);
    }
}

fn all(slots: &[OnceLock<u64>]) -> Option<u64> {
    let hashes: Option<Vec<u64>> = slots.iter().map(|slot| slot.get().copied()).collect();
    hashes.map(combine)
}

/// The pieces of one job: a window of the tensor's blocks.
#[derive(Debug)]
pub struct PieceWindow<'a> {
    hashes: &'a PieceHashes,
    first_block: usize,
    wants_payload: bool,
}

impl PieceWindow<'_> {
    /// The same sink, for the content only.
    #[must_use]
    pub fn without_payload(self) -> Self {
        Self { wants_payload: false, ..self }
    }
}

impl PieceSink for PieceWindow<'_> {
    fn content(&self, block: usize, decoded: &[u8]) {
        self.hashes.add_content((self.first_block + block) * self.hashes.block_pieces, decoded);
    }

    fn payload(&self, block: usize, parts: &[&[u8]; 6]) {
        set(&self.hashes.payload, self.hashes.first_block + self.first_block + block, || piece_hash(parts));
    }

    fn wants_payload(&self) -> bool {
        self.wants_payload
    }

    fn content_in_parts(&self, block: usize, feed: &mut Feed<'_>) {
        let mut piece = (self.first_block + block) * self.hashes.block_pieces;
        let (mut hasher, mut hashed) = (PieceHasher::new(), 0);
        feed(&mut |mut bytes| {
            while !bytes.is_empty() {
                let (front, rest) = bytes.split_at(bytes.len().min(CONTENT_PIECE_BYTES - hashed));
                hasher.write(front);
                (hashed, bytes) = (hashed + front.len(), rest);
                if hashed == CONTENT_PIECE_BYTES {
                    set(&self.hashes.content, piece, || hasher.finish());
                    (piece, hasher, hashed) = (piece + 1, PieceHasher::new(), 0);
                }
            }
        });
        if hashed > 0 {
            set(&self.hashes.content, piece, || hasher.finish());
        }
    }
}
