//! Putting encode jobs into a turn of the ring.

use std::sync::Arc;

use enec_format::geometry::{BLOCK_TILES, HEADER_BYTES, TILE_ELEMENTS};
use enec_format::{EncodePlan, Layout, TwoWindows};

use super::{Blocks, Job, Piece};
use crate::cuda::abi::{EncodeJob, EncodeResult};
use crate::cuda::launcher::{self, Address, Failure, Launcher};
use crate::cuda::memory::CudaMemory;
use crate::cuda::piece;
use crate::cuda::ring::{Turn, copy_bytes};
use crate::cuda::transfer::{Bytes, Place, Raw};

/// Bytes of scratch that the kernels want for a block.
const BLOCK_SCRATCH: usize = 4;

/// A turn with what filling it takes.
pub(super) struct Filling<'f, 't> {
    pub(super) launcher: &'f Arc<dyn Launcher>,
    pub(super) kept: &'f mut Vec<CudaMemory>,
    pub(super) threads: usize,
    pub(super) turn: &'f mut Turn<'t>,
}

impl Filling<'_, '_> {
    /// Puts as much of a job into the turn as fits; whether all of it has been put into turns.
    pub(super) fn fill(&mut self, index: usize, job: &mut Job<'_>, pieces: &mut Vec<Piece>) -> launcher::Result<bool> {
        if let Some(raw) = &mut job.raw {
            let mut received = Vec::new();
            let done = raw.fill(index, &job.source, &mut job.target, self.threads, self.turn, &mut received);
            pieces.extend(received.into_iter().map(Piece::Raw));
            if !done {
                return Ok(false);
            }
            job.raw = None;
        }
        if let Some((raw, address)) = &mut job.gathered {
            let target = &mut Place::Device(*address);
            if !raw.fill(index, &job.source, target, self.threads, self.turn, &mut Vec::new()) {
                return Ok(false);
            }
            job.source = Bytes::Device(*address);
            job.gathered = None;
        }
        match job.windows {
            Ok(Some(windows)) if job.outcome.is_none() => match job.target {
                Place::Device(target) => self.in_place(index, job, windows, target, pieces),
                Place::Host(_) => self.in_pieces(index, job, windows, pieces),
            },
            _ => Ok(true),
        }
    }

    /// A stream that stays on the device. Elements in host memory go there first.
    fn in_place(
        &mut self,
        index: usize,
        job: &mut Job<'_>,
        windows: TwoWindows,
        target: Address,
        pieces: &mut Vec<Piece>,
    ) -> launcher::Result<bool> {
        let layout = job.plan.layout();
        let Some(input_room) = self.turn.input_room() else { return Ok(false) };
        let scratch_len = (layout.blocks() * BLOCK_SCRATCH).next_multiple_of(16);
        let scratch_fits = scratch_len <= self.turn.output_room() / 2;
        if self.turn.output_room() < 4096 || (!scratch_fits && !self.turn.is_empty()) {
            return Ok(false);
        }
        if let Bytes::Host(source) = job.source {
            if source.len() > input_room && !self.turn.is_empty() {
                return Ok(false);
            }
            if source.len() > input_room {
                // More than a turn carries: it is gathered in memory of its own, and encoded from there when it is complete.
                let memory = CudaMemory::allocate(self.launcher, source.len())?;
                let raw = Raw { source: 0, target: 0, len: source.len(), zeros: 0 };
                job.gathered = Some((raw, memory.address()));
                self.kept.push(memory);
                return self.fill(index, job, pieces);
            }
            let (address, bytes) = self.turn.put(source.len());
            copy_bytes(self.threads, source, bytes);
            job.source = Bytes::Device(address);
        }
        let Bytes::Device(elements) = job.source else { return Ok(false) };
        let blocks = if scratch_fits {
            self.turn.reserve(scratch_len).0
        } else {
            let memory = CudaMemory::allocate(self.launcher, scratch_len)?;
            let address = memory.address();
            self.kept.push(memory);
            address
        };
        let (result_at, result) = self.turn.reserve(EncodeResult::BYTES);
        self.turn.download(result.clone());
        let encode = EncodeJob {
            elements,
            stream: target,
            variable_limit: job.plan.variable_limit() as u64,
            first_segment: job.plan.first_segment(),
            blocks,
            result: result_at,
            ..sections(layout, windows)
        };
        self.turn.tables.encode(layout.dtype, encode);
        pieces.push(Piece::InPlace { job: index, result });
        Ok(true)
    }
}

impl Filling<'_, '_> {
    /// A stream that goes to the host, in pieces.
    fn in_pieces(
        &mut self,
        index: usize,
        job: &mut Job<'_>,
        windows: TwoWindows,
        pieces: &mut Vec<Piece>,
    ) -> launcher::Result<bool> {
        let layout = job.plan.layout();
        let dtype = layout.dtype;
        while job.tile < layout.tiles {
            let Some(input_room) = self.turn.input_room() else { return Ok(false) };
            // What a piece takes besides its blocks: its header's place, its result, and the tail.
            let besides = HEADER_BYTES + 1024 + dtype.tile_bytes();
            let longest = piece::longest_block(dtype, windows) + BLOCK_SCRATCH;
            let mut blocks = self.turn.output_room().saturating_sub(besides) / longest;
            if let Bytes::Host(_) = job.source {
                blocks = blocks.min(input_room / (BLOCK_TILES * dtype.tile_bytes()));
            }
            if blocks == 0 {
                return Ok(false);
            }
            let tiles = job.tile..layout.tiles.min(job.tile.saturating_add(blocks * BLOCK_TILES));
            let mut elements = tiles.len() * TILE_ELEMENTS;
            let source = match job.source {
                Bytes::Host(source) => {
                    let source = &source[layout.decoded_range(tiles.clone())];
                    let (address, bytes) = self.turn.put(source.len());
                    copy_bytes(self.threads, source, bytes);
                    address
                }
                Bytes::Device(address) => {
                    if tiles.end == layout.tiles {
                        elements = layout.elements - tiles.start * TILE_ELEMENTS;
                    }
                    address + layout.decoded_range(0..tiles.start).len() as u64
                }
            };
            let plan = EncodePlan::window(dtype, windows, elements, 0);
            let plan = plan.map_err(|error| Failure(format!("a piece of {} tiles: {error}", tiles.len())))?;
            let (result_at, result) = self.turn.reserve(EncodeResult::BYTES);
            let (stream, at) = self.turn.reserve(plan.target_len());
            let (scratch, _) = self.turn.reserve((plan.layout().blocks() * BLOCK_SCRATCH).next_multiple_of(16));
            self.turn.download(result.clone());
            self.turn.download(at.start + HEADER_BYTES..at.start + plan.layout().variable.offset);
            let encode = EncodeJob {
                elements: source,
                stream,
                variable_limit: plan.variable_limit() as u64,
                blocks: scratch,
                result: result_at,
                ..sections(plan.layout(), windows)
            };
            self.turn.tables.encode(dtype, encode);
            job.tile = tiles.end;
            pieces.push(Piece::Blocks(Box::new(Blocks { job: index, tiles, plan, at, result })));
        }
        Ok(true)
    }
}

/// What a job says about the sections of a stream.
fn sections(layout: &Layout, windows: TwoWindows) -> EncodeJob {
    EncodeJob {
        tiles: layout.tiles as u64,
        tail_len: layout.tail.len as u64,
        table: layout.table.offset as u64,
        mask: layout.mask.offset as u64,
        byte_plane: layout.byte_plane.offset as u64,
        extra_plane: layout.extra_plane.offset as u64,
        low_plane: layout.low_plane.offset as u64,
        variable: layout.variable.offset as u64,
        common_base: windows.common_base().into(),
        common_width: windows.common_width().into(),
        ..EncodeJob::default()
    }
}
