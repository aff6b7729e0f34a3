//! A reused buffer that windows of tensors pass through.

use enec_format::geometry::{ALIGNMENT, CONTENT_PIECE_BYTES};

/// Bytes that start at a multiple of 64 in memory, as streams and kernels like them.
#[derive(Debug, Default)]
pub(crate) struct AlignedBuffer {
    bytes: Vec<u8>,
}

impl AlignedBuffer {
    /// The first `len` bytes, whatever they hold; the buffer grows if it is shorter.
    pub(crate) fn take(&mut self, len: usize) -> &mut [u8] {
        if self.bytes.len() < len + ALIGNMENT {
            // Nothing in it is needed any more: do not copy it.
            self.bytes = Vec::new();
            self.bytes = vec![0; len + ALIGNMENT];
        }
        let start = self.start();
        &mut self.bytes[start..start + len]
    }

    /// All bytes, from the first that [`take`](Self::take) gave.
    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start()..]
    }

    fn start(&self) -> usize {
        self.bytes.as_ptr().align_offset(ALIGNMENT).min(self.bytes.len())
    }
}

/// Cuts the front off a slice that is handed out part by part.
pub(crate) fn split_front<'a>(rest: &mut &'a mut [u8], len: usize) -> &'a mut [u8] {
    let (front, back) = std::mem::take(rest).split_at_mut(len);
    *rest = back;
    front
}

/// The size of a window of bytes that are not coded: as much as wanted, in whole pieces under a hash, one at least.
pub(crate) fn whole_pieces(window_bytes: usize) -> usize {
    (window_bytes / CONTENT_PIECE_BYTES).max(1) * CONTENT_PIECE_BYTES
}
