//! Bytes as they are, between host and device.

use std::ops::Range;

use enec_core::{Result, Source, TargetMut};

use super::abi::{COPY_ZEROS, CopyJob};
use super::launcher::{self, Address};
use super::memory;
use super::ring::{Output, Turn, Work, copy_bytes};

/// Where bytes are read.
#[derive(Debug, Clone, Copy)]
pub(super) enum Bytes<'a> {
    Host(&'a [u8]),
    Device(Address),
}

impl<'a> Bytes<'a> {
    pub(super) fn of(source: &'a Source<'_>) -> Result<Self> {
        match source {
            Source::Host(bytes) => Ok(Bytes::Host(bytes)),
            Source::Device(slice) => Ok(Bytes::Device(memory::address(slice)?)),
        }
    }
}

/// Where bytes are written.
#[derive(Debug)]
pub(super) enum Place<'a> {
    Host(&'a mut [u8]),
    Device(Address),
}

impl<'a> Place<'a> {
    pub(super) fn of(target: TargetMut<'a>) -> Result<Self> {
        match target {
            TargetMut::Host(bytes) => Ok(Place::Host(bytes)),
            TargetMut::Device(slice) => Ok(Place::Device(memory::address(slice)?)),
        }
    }
}

/// Bytes of a turn's output that belong to a job's target in host memory.
#[derive(Debug)]
pub(super) struct Received {
    pub(super) job: usize,
    pub(super) target: Range<usize>,
    pub(super) at: Range<usize>,
}

/// Bytes to be copied verbatim, and how far that has come.
#[derive(Debug, Clone, Copy)]
pub(super) struct Raw {
    /// Offset of what is left in the source.
    pub(super) source: usize,
    /// Offset in the target.
    pub(super) target: usize,
    /// Bytes left.
    pub(super) len: usize,
    /// Zeros behind them.
    pub(super) zeros: usize,
}

impl Raw {
    /// Puts as much into a turn as fits; whether all has been put into turns, or needs none.
    pub(super) fn fill(
        &mut self,
        job: usize,
        source: &Bytes<'_>,
        target: &mut Place<'_>,
        threads: usize,
        turn: &mut Turn<'_>,
        pieces: &mut Vec<Received>,
    ) -> bool {
        debug_assert!(self.zeros <= COPY_ZEROS, "zeros are padding");
        while self.len > 0 || self.zeros > 0 {
            let (from, to) = (self.source as u64, self.target as u64);
            let Some(input_room) = turn.input_room() else { return false };
            let len = match (source, &mut *target) {
                (Bytes::Host(source), Place::Host(target)) => {
                    let target = &mut target[self.target..self.target + self.len + self.zeros];
                    copy_bytes(threads, &source[self.source..self.source + self.len], &mut target[..self.len]);
                    target[self.len..].fill(0);
                    self.len
                }
                (Bytes::Host(source), Place::Device(target)) => {
                    let len = self.len.min(input_room);
                    let zeros = if len == self.len { self.zeros as u64 } else { 0 };
                    if len == 0 && zeros == 0 {
                        return false;
                    }
                    let (address, bytes) = turn.put(len);
                    copy_bytes(threads, &source[self.source..self.source + len], bytes);
                    let to = *target + to;
                    turn.tables.copy(CopyJob { from: address, to, len: len as u64, zeros, ..CopyJob::default() });
                    len
                }
                (Bytes::Device(source), Place::Host(target)) => {
                    let len = self.len.min(turn.output_room());
                    if len > 0 {
                        let (address, at) = turn.reserve(len);
                        let from = *source + from;
                        turn.tables.copy(CopyJob { from, to: address, len: len as u64, ..CopyJob::default() });
                        turn.download(at.clone());
                        pieces.push(Received { job, target: self.target..self.target + len, at });
                    } else if self.len > 0 {
                        return false;
                    }
                    if len == self.len {
                        target[self.target + len..][..self.zeros].fill(0);
                    }
                    len
                }
                (Bytes::Device(source), Place::Device(target)) => {
                    let (from, to, zeros) = (*source + from, *target + to, self.zeros as u64);
                    turn.tables.copy(CopyJob { from, to, len: self.len as u64, zeros, ..CopyJob::default() });
                    self.len
                }
            };
            self.source += len;
            self.target += len;
            self.len -= len;
            if self.len == 0 {
                self.zeros = 0;
            }
        }
        true
    }
}

/// One transfer, as all the work there is.
pub(super) struct Transfer<'a> {
    pub(super) source: Bytes<'a>,
    pub(super) target: Place<'a>,
    pub(super) raw: Raw,
    pub(super) threads: usize,
}

impl<'a> Transfer<'a> {
    /// All of `len` bytes.
    pub(super) fn new(source: Bytes<'a>, target: Place<'a>, len: usize, threads: usize) -> Self {
        Self { source, target, raw: Raw { source: 0, target: 0, len, zeros: 0 }, threads }
    }
}

impl Work for Transfer<'_> {
    type Piece = Received;

    fn fill(&mut self, turn: &mut Turn<'_>) -> launcher::Result<Vec<Received>> {
        let mut pieces = Vec::new();
        self.raw.fill(0, &self.source, &mut self.target, self.threads, turn, &mut pieces);
        Ok(pieces)
    }

    fn finish(&mut self, pieces: Vec<Received>, output: &mut Output<'_>) -> launcher::Result<()> {
        for piece in pieces {
            if let Place::Host(target) = &mut self.target {
                copy_bytes(self.threads, &output.bytes()[piece.at], &mut target[piece.target]);
            }
        }
        Ok(())
    }
}
