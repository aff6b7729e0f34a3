//! Decoding: streams cut into pieces that fit a turn of the ring, or read where they lie on the device.

use std::ops::Range;

use enec_core::{CheckedDecodeJob, Result, two_windows_only};
use enec_format::geometry::{
    BLOCK_TILES, LANES, SEGMENT_UNIT, TABLE_ENTRY_BYTES, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES,
};
use enec_format::{BlockEntry, DecodePlan, TwoWindows, segment, segment_len};

use super::abi::DecodeJob;
use super::launcher::{self, Address};
use super::piece;
use super::ring::{Output, Turn, Work, copy_bytes};
use super::transfer::{Bytes, Place, Raw, Received};

/// The jobs of a batch, on their way.
pub(super) struct Decoding<'j> {
    jobs: Vec<Job<'j>>,
    /// The first job that is not done.
    at: usize,
    threads: usize,
}

/// One job.
struct Job<'j> {
    plan: &'j DecodePlan,
    /// The parameters, if there are tiles to decode; or why this backend cannot.
    windows: Result<Option<TwoWindows>>,
    source: Bytes<'j>,
    target: Place<'j>,
    /// The next tile.
    tile: usize,
    /// The tail, unless it has gone with the tiles.
    tail: Option<Raw>,
}

impl<'j> Decoding<'j> {
    pub(super) fn new(checked: &'j mut [CheckedDecodeJob<'_, '_>], threads: usize) -> Result<Self> {
        let job = |checked: &'j mut CheckedDecodeJob<'_, '_>| {
            let (plan, source, target, _) = checked.split();
            let tail = plan.tail();
            let after_tiles = plan.tiles().len() * plan.layout().dtype.tile_bytes();
            let tail = Raw { source: tail.start, target: after_tiles, len: tail.len(), zeros: 0 };
            Ok(Job {
                plan,
                windows: two_windows_only("cuda", plan.layout().coding),
                source: Bytes::of(source)?,
                target: Place::of(target)?,
                tile: plan.tiles().start,
                tail: Some(tail),
            })
        };
        Ok(Self { jobs: checked.iter_mut().map(job).collect::<Result<_>>()?, at: 0, threads })
    }

    /// What became of the jobs, when the ring has run.
    pub(super) fn into_results(self) -> impl Iterator<Item = Result<()>> {
        self.jobs.into_iter().map(|job| job.windows.map(|_| ()))
    }
}

impl Work for Decoding<'_> {
    /// Bytes of the output for a job's target.
    type Piece = Received;

    fn fill(&mut self, turn: &mut Turn<'_>) -> launcher::Result<Vec<Received>> {
        let mut pieces = Vec::new();
        while let Some(job) = self.jobs.get_mut(self.at) {
            if !job.fill(self.at, self.threads, turn, &mut pieces) {
                break;
            }
            self.at += 1;
        }
        Ok(pieces)
    }

    fn finish(&mut self, pieces: Vec<Received>, output: &mut Output<'_>) -> launcher::Result<()> {
        for piece in pieces {
            if let Place::Host(target) = &mut self.jobs[piece.job].target {
                copy_bytes(self.threads, &output.bytes()[piece.at], &mut target[piece.target]);
            }
        }
        Ok(())
    }
}

impl Job<'_> {
    /// Puts as much into a turn as fits; whether all of the job has been put into turns.
    fn fill(&mut self, index: usize, threads: usize, turn: &mut Turn<'_>, pieces: &mut Vec<Received>) -> bool {
        let Ok(windows) = self.windows else { return true };
        if let Some(windows) = windows {
            while self.tile < self.plan.tiles().end {
                let Some(tiles) = self.next_tiles(windows, turn) else { return false };
                self.put(tiles, windows, index, threads, turn, pieces);
            }
        }
        let Some(tail) = &mut self.tail else { return true };
        tail.fill(index, &self.source, &mut self.target, threads, turn, pieces)
    }

    /// The tiles that the turn has room for: up to the end of a block, or all.
    fn next_tiles(&self, windows: TwoWindows, turn: &Turn<'_>) -> Option<Range<usize>> {
        let dtype = self.plan.layout().dtype;
        let mut blocks = usize::MAX;
        let input_room = turn.input_room()?;
        if let Bytes::Host(_) = self.source {
            blocks = input_room / piece::longest_block(dtype, windows);
        }
        if let Place::Host(_) = self.target {
            // The tail of a stream in device memory comes along.
            let tail = dtype.tile_bytes();
            blocks = blocks.min(turn.output_room().saturating_sub(tail) / (BLOCK_TILES * dtype.tile_bytes()));
        }
        if blocks == 0 {
            return None;
        }
        let end = (self.tile / BLOCK_TILES).saturating_add(blocks).saturating_mul(BLOCK_TILES);
        Some(self.tile..end.min(self.plan.tiles().end))
    }

    fn put(
        &mut self,
        tiles: Range<usize>,
        windows: TwoWindows,
        index: usize,
        threads: usize,
        turn: &mut Turn<'_>,
        pieces: &mut Vec<Received>,
    ) {
        let layout = self.plan.layout();
        let tile_bytes = layout.dtype.tile_bytes();
        let mut job = match self.source {
            Bytes::Host(stream) => stage(self.plan, windows, stream, tiles.clone(), threads, turn),
            Bytes::Device(stream) => {
                let mut job = in_place(self.plan, windows, stream, tiles.clone());
                if tiles.end == self.plan.tiles().end
                    && let Some(tail) = self.tail.take()
                {
                    job.tail = tail.source as u64;
                    job.tail_len = tail.len as u64;
                }
                job
            }
        };
        let start = (tiles.start - self.plan.tiles().start) * tile_bytes;
        let len = tiles.len() * tile_bytes + piece::size(job.tail_len);
        job.elements = match self.target {
            Place::Device(address) => address + start as u64,
            Place::Host(_) => {
                let (address, at) = turn.reserve(len);
                turn.download(at.clone());
                pieces.push(Received { job: index, target: start..start + len, at });
                address
            }
        };
        turn.tables.decode(layout.dtype, job);
        self.tile = tiles.end;
    }
}

/// A range of tiles of a stream that lies whole in device memory.
fn in_place(plan: &DecodePlan, windows: TwoWindows, stream: Address, tiles: Range<usize>) -> DecodeJob {
    let layout = plan.layout();
    DecodeJob {
        stream,
        first_tile: tiles.start as u64,
        tiles: tiles.len() as u64,
        tensor_tiles: layout.tiles as u64,
        table: layout.table.offset as u64,
        mask: layout.mask.offset as u64,
        byte_plane: layout.byte_plane.offset as u64,
        extra_plane: layout.extra_plane.offset as u64,
        low_plane: layout.low_plane.offset as u64,
        variable: layout.variable.offset as u64,
        variable_len: layout.variable.len as u64,
        common_base: windows.common_base().into(),
        common_width: windows.common_width().into(),
        ..DecodeJob::default()
    }
}

/// Puts into a turn what the tiles need of a stream in host memory, as a stream of its own: its first block is the one that holds the first
/// tile, and the ends of its table count from there.
fn stage(
    plan: &DecodePlan,
    windows: TwoWindows,
    stream: &[u8],
    tiles: Range<usize>,
    threads: usize,
    turn: &mut Turn<'_>,
) -> DecodeJob {
    let layout = plan.layout();
    let blocks = tiles.start / BLOCK_TILES..tiles.end.div_ceil(BLOCK_TILES);
    // Ranks count from the start of a block and rows are as long as its lanes are many, so that masks are needed whole.
    let block_tiles = blocks.start * BLOCK_TILES..layout.tiles.min(blocks.end * BLOCK_TILES);
    let staged = block_tiles.start..tiles.end;
    let base = turn.base();
    let mut put = |bytes: &[u8]| {
        let (address, target) = turn.put(bytes.len());
        copy_bytes(threads, bytes, target);
        address - base
    };
    let part = |offset: usize, tile_bytes: usize, tiles: &Range<usize>| {
        &stream[offset + tiles.start * tile_bytes..offset + tiles.end * tile_bytes]
    };
    let mask = put(part(layout.mask.offset, TILE_MASK_BYTES, &block_tiles));
    let byte_plane = put(part(layout.byte_plane.offset, TILE_BYTE_PLANE_BYTES, &staged));
    let extra_plane = put(part(layout.extra_plane.offset, layout.dtype.tile_extra_bytes(), &staged));
    let low_plane = put(part(layout.low_plane.offset, piece::tile_low_bytes(windows), &staged));

    let table = &stream[layout.table.range()];
    // Read once: a file under a memory map can be rewritten, and the table must fit what is copied here.
    let entries: Vec<BlockEntry> = blocks.clone().map(|block| BlockEntry::read(table, block)).collect();
    let first = BlockEntry::start(table, blocks.start);
    let last = entries.last().map_or(first, |entry| entry.end);
    let segments = segment(&stream[layout.variable.range()], first, last);
    // No longer than what the piece has been given room for.
    let longest = blocks.len() * segment_len(BLOCK_TILES * LANES, piece::high_width(layout.dtype, windows));
    let segments = &segments[..segments.len().min(longest)];
    let variable = put(segments);
    let units = (segments.len() / SEGMENT_UNIT) as u64;
    let (table, target) = turn.put(entries.len() * TABLE_ENTRY_BYTES);
    for (entry, bytes) in entries.iter().zip(target.chunks_exact_mut(TABLE_ENTRY_BYTES)) {
        let end = entry.end.saturating_sub(first).min(units);
        bytes.copy_from_slice(&BlockEntry { end, ..*entry }.to_bytes());
    }
    DecodeJob {
        stream: base,
        first_tile: (tiles.start - block_tiles.start) as u64,
        tiles: tiles.len() as u64,
        tensor_tiles: block_tiles.len() as u64,
        table: table - base,
        mask,
        byte_plane,
        extra_plane,
        low_plane,
        variable,
        variable_len: segments.len() as u64,
        common_base: windows.common_base().into(),
        common_width: windows.common_width().into(),
        ..DecodeJob::default()
    }
}
