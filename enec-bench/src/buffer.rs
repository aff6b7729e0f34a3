//! Host memory for measurements: aligned to cache lines and touched before anything is timed.

/// Bytes of a cache line, and of the alignment that the stream asks for.
const ALIGNMENT: usize = 64;

/// A buffer whose first byte is aligned to 64 bytes and whose pages are present. Fresh memory would measure page faults, and a
/// misaligned copy runs at half the speed of an aligned one.
pub(crate) struct Buffer {
    memory: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    pub(crate) fn new(len: usize) -> Self {
        // Not zero: a zeroed allocation has no pages until it is written.
        let memory = vec![0xA5; len + ALIGNMENT];
        let start = memory.as_ptr().align_offset(ALIGNMENT);
        Self { memory, start, len }
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.memory[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.len]
    }
}
