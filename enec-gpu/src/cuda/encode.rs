//! Encoding: tensors whose stream goes to host memory are cut into pieces that fit a turn of the ring; a stream that stays on the device is
//! written there in one go.

mod filling;

use std::ops::Range;
use std::sync::Arc;

use enec_core::{CheckedEncodeJob, Error, Result, two_windows_only};
use enec_format::geometry::{BLOCK_TILES, HEADER_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use enec_format::geometry::{TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES};
use enec_format::{BlockEntry, EncodeOutcome, EncodePlan, Layout, TwoWindows};

use self::filling::Filling;
use super::abi::EncodeResult;
use super::launcher::{self, Address, Failure, Launcher};
use super::memory::CudaMemory;
use super::piece;
use super::ring::{Output, Turn, Work, copy_bytes};
use super::transfer::{Bytes, Place, Raw, Received};

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
    Blocks(Box<Blocks>),
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
            let windows = two_windows_only("cuda", plan.coding());
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
