//! A target that is written past the caches, piece by piece through a small buffer.

use super::isa::Isa;

/// Bytes of a cache line.
pub(super) const LINE: usize = 64;

/// Bytes of the largest tile, of F32.
const LARGEST_TILE: usize = 8192;

/// Two places where tiles are made before they are streamed, with room for part of a line before each.
///
/// They stay in the first-level cache. A buffer of a whole block, 32 kB and more, does not.
#[derive(Debug)]
#[repr(align(64))]
pub(crate) struct TileBytes([[u8; LINE + LARGEST_TILE]; 2]);

impl TileBytes {
    pub(crate) const ZERO: Self = Self([[0; _]; 2]);

    /// This place and the other one.
    #[inline(always)]
    fn starting_at(&mut self, place: usize) -> [&mut [u8; LINE + LARGEST_TILE]; 2] {
        let [first, second] = &mut self.0;
        if place == 0 { [first, second] } else { [second, first] }
    }
}

/// Where tiles, or their planes, are streamed to: each while the next one is made, so that the processor writes while it computes.
#[derive(Debug)]
pub(crate) struct Behind<'a> {
    target: &'a mut [u8],
    /// Bytes that have been written.
    streamed: usize,
    buffer: &'a mut TileBytes,
    /// The place of the tile that is made; the other one's is streamed.
    place: usize,
    /// What is left to stream of the other place.
    start: usize,
    end: usize,
}

impl<'a> Behind<'a> {
    /// Nothing streamed yet.
    pub(crate) fn new(target: &'a mut [u8], buffer: &'a mut TileBytes) -> Self {
        Self { target, streamed: 0, buffer, place: 0, start: LINE, end: LINE }
    }

    /// Where the next `len` bytes are to be put, at most those of a tile, and the tile before, to be streamed meanwhile.
    #[inline(always)]
    pub(super) fn tile(&mut self, len: usize) -> (&mut [u8], Before<'_>) {
        let [made, before] = self.buffer.starting_at(self.place);
        let before = Before {
            source: &before[..self.end],
            start: &mut self.start,
            target: self.target,
            streamed: &mut self.streamed,
        };
        (&mut made[LINE..LINE + len], before)
    }

    /// The `len` bytes that were put there are complete: they are streamed from now on. Returns them.
    #[inline(always)]
    pub(super) fn complete<I: Isa>(&mut self, isa: I, len: usize) -> &[u8] {
        self.tile(0).1.advance(isa, usize::MAX);
        // Bytes of the tile before that do not fill a line of the target go with this one.
        let [made, before] = self.buffer.starting_at(self.place);
        let rest = self.end - self.start;
        let mut start = LINE - rest;
        made[start..LINE].copy_from_slice(&before[self.start..self.end]);
        let end = LINE + len;
        if self.streamed == 0 {
            // Up to the first line of the target, whose start need not be that of a line.
            let head = self.target.as_ptr().align_offset(LINE).min(end - start);
            self.target[..head].copy_from_slice(&made[start..start + head]);
            (self.streamed, start) = (head, start + head);
        }
        (self.start, self.end, self.place) = (start, end, 1 - self.place);
        &made[LINE..end]
    }

    /// Writes all that is left.
    #[inline(always)]
    pub(super) fn finish<I: Isa>(&mut self, isa: I) {
        self.tile(0).1.advance(isa, usize::MAX);
        let rest = &self.buffer.0[1 - self.place][self.start..self.end];
        self.target[self.streamed..][..rest.len()].copy_from_slice(rest);
    }
}

/// What is left to stream of a tile.
pub(super) struct Before<'a> {
    source: &'a [u8],
    start: &'a mut usize,
    target: &'a mut [u8],
    streamed: &'a mut usize,
}

impl Before<'_> {
    /// Streams up to `limit` bytes of it.
    #[inline(always)]
    pub(super) fn advance<I: Isa>(&mut self, isa: I, limit: usize) {
        let end = self.source.len().min(self.start.saturating_add(limit));
        let lines = self.source[*self.start..end].as_chunks().0;
        let target = self.target[*self.streamed..].as_chunks_mut().0;
        for (source, target) in lines.iter().zip(target) {
            isa.stream_line(source, target);
        }
        *self.streamed += lines.len() * LINE;
        *self.start += lines.len() * LINE;
    }
}

/// Streams a slice into another of the same length.
#[inline(always)]
pub(super) fn stream<I: Isa>(isa: I, source: &[u8], target: &mut [u8]) {
    let head = target.as_ptr().align_offset(LINE).min(target.len());
    let (source_head, source) = source.split_at(head);
    let (target_head, target) = target.split_at_mut(head);
    target_head.copy_from_slice(source_head);
    let (source_lines, source_rest) = source.as_chunks();
    let (target_lines, target_rest) = target.as_chunks_mut();
    for (source, target) in source_lines.iter().zip(target_lines) {
        isa.stream_line(source, target);
    }
    target_rest.copy_from_slice(source_rest);
}
