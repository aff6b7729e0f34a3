//! A target that is written past the caches, some way behind the computation.

use super::isa::Isa;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Where bytes are streamed to, and how many have been.
#[derive(Debug)]
pub(crate) struct Behind<'a> {
    target: &'a mut [u8],
    streamed: usize,
}

impl<'a> Behind<'a> {
    /// Nothing streamed yet.
    pub(crate) fn new(target: &'a mut [u8]) -> Self {
        Self { target, streamed: 0 }
    }

    /// Streams whole lines of the target, up to `limit` bytes of them, as far as `source` is there.
    #[inline(always)]
    pub(super) fn advance<I: Isa>(&mut self, isa: I, source: &[u8], limit: usize) {
        if self.streamed == 0 {
            // Up to the first line of the target, whose start need not be that of a line.
            let head = self.target.as_ptr().align_offset(LINE);
            if head >= source.len().min(self.target.len()) {
                return;
            }
            self.target[..head].copy_from_slice(&source[..head]);
            self.streamed = head;
        }
        let end = source.len().min(self.target.len()).min(self.streamed.saturating_add(limit));
        let source = source[self.streamed..end].as_chunks().0;
        let target = self.target[self.streamed..end].as_chunks_mut().0;
        for (source, target) in source.iter().zip(target) {
            isa.stream_line(source, target);
        }
        self.streamed += source.len() * LINE;
    }

    /// Writes all that is left.
    pub(super) fn finish<I: Isa>(&mut self, isa: I, source: &[u8]) {
        self.advance(isa, source, usize::MAX);
        self.target[self.streamed..].copy_from_slice(&source[self.streamed..]);
        self.streamed = self.target.len();
    }
}
