//! Encoding: tensors whose stream goes to host memory are cut into pieces that fit a turn of the ring; a stream that stays on the device is
//! written there in one go.

use std::ops::Range;
use std::sync::Arc;

use enec_core::{CheckedEncodeJob, Error, Result};
use enec_format::geometry::{BLOCK_TILES, HEADER_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use enec_format::geometry::{TILE_BYTE_PLANE_BYTES, TILE_ELEMENTS, TILE_MASK_BYTES};
use enec_format::{BlockEntry, EncodeOutcome, EncodePlan, Layout, TwoWindows};

use super::abi::{EncodeJob, EncodeResult};
use super::launcher::{self, Address, Failure, Launcher};
use super::memory::CudaMemory;
use super::piece;
use super::ring::{Output, Turn, Work, copy_bytes};
use super::transfer::{Bytes, Place, Raw, Received};

/// Bytes of scratch that the kernels want for a block.
const BLOCK_SCRATCH: usize = 4;

/// The jobs of a batch, on their way.
pub(super) struct Encoding<'j> {
    launcher: Arc<dyn Launcher>,
    jobs: Vec<Job<'j>>,
    /// The first job that is not done.
    at: usize,
    threads: usize,
    /// Device memory that is needed until the last turn is over.
    kept: Vec<CudaMemory>,
}

/// One job.
struct Job<'j> {
    plan: &'j EncodePlan,
    /// The parameters, if blocks are to be encoded; or why this backend cannot.
    windows: Result<Option<TwoWindows>>,
    source: Bytes<'j>,
    target: Place<'j>,
    /// The next tile, for a stream that is made of pieces.
    tile: usize,
    /// Bytes of the variable section so far.
    variable_len: usize,
    outcome: Option<EncodeOutcome>,
    /// Elements that are stored as they are.
    raw: Option<Raw>,
    /// Elements that are gathered on the device before they are encoded there, and where.
    gathered: Option<(Raw, Address)>,
}

/// A part of a turn.
pub(super) enum Piece {
    /// Bytes as they are.
    Raw(Received),
    /// The result of a stream that was written where it belongs.
    InPlace { job: usize, result: Range<usize> },
    /// Some blocks, as a stream of their own.
    Blocks(Blocks),
}

/// Some blocks of a job in a turn's output.
pub(super) struct Blocks {
    job: usize,
    /// The tensor's tiles.
    tiles: Range<usize>,
    /// The plan of the piece, with the tail if the source is on the device.
    plan: EncodePlan,
    /// Where the piece's stream is.
    at: Range<usize>,
    result: Range<usize>,
}

impl<'j> Encoding<'j> {
    pub(super) fn new(
        launcher: &Arc<dyn Launcher>,
        checked: &'j mut [CheckedEncodeJob<'_, '_>],
        threads: usize,
    ) -> Result<Self> {
        let job = |checked: &'j mut CheckedEncodeJob<'_, '_>| {
            let (plan, source, target, _) = checked.split();
            let windows = piece::windows(plan.coding());
            let is_stored = matches!(windows, Ok(None));
            Ok(Job {
                plan,
                source: Bytes::of(source)?,
                target: Place::of(target)?,
                tile: 0,
                variable_len: 0,
                outcome: is_stored.then_some(EncodeOutcome::Stored),
                raw: is_stored.then(|| verbatim(plan)),
                gathered: None,
                windows,
            })
        };
        let jobs = checked.iter_mut().map(job).collect::<Result<_>>()?;
        Ok(Self { launcher: Arc::clone(launcher), jobs, at: 0, threads, kept: Vec::new() })
    }

    /// Prepares the jobs that turned out to be stored although pieces of them had been encoded; whether there are any.
    pub(super) fn store(&mut self) -> bool {
        self.at = 0;
        for job in &mut self.jobs {
            let in_pieces = matches!(job.target, Place::Host(_)) && matches!(job.windows, Ok(Some(_)));
            job.raw = (in_pieces && job.outcome == Some(EncodeOutcome::Stored)).then(|| verbatim(job.plan));
        }
        self.jobs.iter().any(|job| job.raw.is_some())
    }

    /// What became of the jobs, when the ring has run.
    pub(super) fn into_results(self) -> impl Iterator<Item = Result<EncodeOutcome>> {
        let missing = || Error::Argument("an encode job came to no end".into());
        self.jobs.into_iter().map(move |job| job.windows.and_then(|_| job.outcome.ok_or_else(missing)))
    }
}

/// The elements as they are, behind the header.
fn verbatim(plan: &EncodePlan) -> Raw {
    let len = plan.source_len();
    // A plan's target has been measured with this padding.
    let zeros = len.next_multiple_of(enec_format::geometry::ALIGNMENT) - len;
    Raw { source: 0, target: HEADER_BYTES, len, zeros }
}

impl Work for Encoding<'_> {
    type Piece = Piece;

    fn fill(&mut self, turn: &mut Turn<'_>) -> launcher::Result<Vec<Piece>> {
        let mut pieces = Vec::new();
        while let Some(job) = self.jobs.get_mut(self.at) {
            let mut filling =
                Filling { launcher: &self.launcher, kept: &mut self.kept, threads: self.threads, turn: &mut *turn };
            if !filling.fill(self.at, job, &mut pieces)? {
                break;
            }
            self.at += 1;
        }
        Ok(pieces)
    }

    fn finish(&mut self, pieces: Vec<Piece>, output: &mut Output<'_>) -> launcher::Result<()> {
        let mut blocks = Vec::new();
        for piece in pieces {
            match piece {
                Piece::Raw(received) => {
                    if let Place::Host(target) = &mut self.jobs[received.job].target {
                        copy_bytes(self.threads, &output.bytes()[received.at], &mut target[received.target]);
                    }
                }
                Piece::InPlace { job, result } => {
                    let EncodeResult { variable_len, coded } = EncodeResult::read(&output.bytes()[result]);
                    let variable_len = piece::size(variable_len);
                    self.jobs[job].outcome = Some(match coded {
                        0 => EncodeOutcome::Stored,
                        _ => EncodeOutcome::Coded { variable_len },
                    });
                }
                Piece::Blocks(piece) => {
                    let job = &mut self.jobs[piece.job];
                    let variable_len =
                        piece::size(EncodeResult::read(&output.bytes()[piece.result.clone()]).variable_len);
                    let variable = job.variable_len..job.variable_len + variable_len;
                    job.variable_len = variable.end;
                    if variable.end > job.plan.variable_limit() {
                        job.outcome = Some(EncodeOutcome::Stored);
                    }
                    if job.outcome.is_none() {
                        blocks.push((piece, variable));
                    }
                }
            }
        }
        let remainders = blocks.iter().map(|(piece, variable)| {
            let start = piece.at.start + piece.plan.layout().variable.offset;
            Ok(start..piece.at.start + piece.written(variable.len())?.stream_len)
        });
        output.fetch(remainders.collect::<launcher::Result<_>>()?)?;
        for (piece, variable) in blocks {
            self.jobs[piece.job].take(&piece, variable, output.bytes(), self.threads)?;
        }
        Ok(())
    }
}

impl Blocks {
    fn written(&self, variable_len: usize) -> launcher::Result<Layout> {
        let written = self.plan.written(EncodeOutcome::Coded { variable_len });
        written.map_err(|error| Failure(format!("a piece came out with {variable_len} bytes of segments: {error}")))
    }
}

impl Job<'_> {
    /// Puts a piece where it belongs.
    fn take(&mut self, piece: &Blocks, variable: Range<usize>, output: &[u8], threads: usize) -> launcher::Result<()> {
        let Place::Host(target) = &mut self.target else { return Ok(()) };
        let stream = &output[piece.at.clone()];
        let (from, whole) = (piece.written(variable.len())?, self.plan.layout());
        let mut put = |from: Range<usize>, start: usize| {
            copy_bytes(threads, &stream[from.clone()], &mut target[start..start + from.len()]);
        };
        let tile = piece.tiles.start;
        put(from.mask.range(), whole.mask.offset + tile * TILE_MASK_BYTES);
        put(from.byte_plane.range(), whole.byte_plane.offset + tile * TILE_BYTE_PLANE_BYTES);
        put(from.extra_plane.range(), whole.extra_plane.offset + tile * whole.dtype.tile_extra_bytes());
        put(from.low_plane.range(), whole.low_plane.offset + tile * (from.low_plane.len / from.tiles));
        put(from.variable.range(), whole.variable.offset + variable.start);

        // The piece counted from its own start.
        let before = self.plan.first_segment() + (variable.start / SEGMENT_UNIT) as u64;
        let table = whole.table.offset + tile / BLOCK_TILES * TABLE_ENTRY_BYTES;
        let entries = target[table..].chunks_exact_mut(TABLE_ENTRY_BYTES);
        for (index, bytes) in (0..from.blocks()).zip(entries) {
            let entry = BlockEntry::read(&stream[from.table.range()], index);
            bytes.copy_from_slice(&BlockEntry { end: entry.end + before, ..entry }.to_bytes());
        }
        if piece.tiles.end < whole.tiles {
            return Ok(());
        }
        let outcome = EncodeOutcome::Coded { variable_len: variable.end };
        let written = self.plan.written(outcome).map_err(|error| Failure(error.to_string()))?;
        let tail = match self.source {
            Bytes::Host(source) => &source[source.len() - written.tail.len..],
            Bytes::Device(_) => &stream[from.tail.range()],
        };
        target[written.tail.range()].copy_from_slice(tail);
        for (_, section) in written.sections() {
            target[section.padding()].fill(0);
        }
        self.outcome = Some(outcome);
        Ok(())
    }
}

/// A turn with what filling it takes.
struct Filling<'f, 't> {
    launcher: &'f Arc<dyn Launcher>,
    kept: &'f mut Vec<CudaMemory>,
    threads: usize,
    turn: &'f mut Turn<'t>,
}

impl Filling<'_, '_> {
    /// Puts as much of a job into the turn as fits; whether all of it has been put into turns.
    fn fill(&mut self, index: usize, job: &mut Job<'_>, pieces: &mut Vec<Piece>) -> launcher::Result<bool> {
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
            pieces.push(Piece::Blocks(Blocks { job: index, tiles, plan, at, result }));
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
