//! Decoding: a batch's jobs, cut into blocks.

use std::ops::Range;

use enec_core::{CheckedDecodeJob, PieceSink, Result};
use enec_format::geometry::{BLOCK_TILES, TILE_MASK_BYTES};
use enec_format::{
    BlockEntry, BlockRanges, Cascade, Coding, DecodePlan, Layout, TwoWindows, segment, segment_len, wide_lanes,
};

use crate::kernels::{Behind, CascadeBlock, DecodeBlock, Kernels, Scratch, TileBytes, TileTarget};
use crate::schedule::{HEAD_BYTES, Part, Place, RUN_BLOCKS, STORED_PART_BYTES, Schedule};
use crate::target::{SharedTarget, source_bytes, target_bytes};
use crate::workers::Team;

/// Runs the jobs.
///
/// # Errors
///
/// If device memory is not this backend's.
///
/// # Safety
///
/// The caller holds the lock of the device memory that the jobs use, whose targets overlap nothing else in the batch.
pub(crate) unsafe fn run<K: Kernels>(kernels: K, team: Team<'_>, jobs: &mut [CheckedDecodeJob<'_, '_>]) -> Result<()> {
    // SAFETY: the caller's promise.
    let tasks: Result<Vec<_>> = jobs.iter_mut().map(|job| unsafe { Task::new(job) }).collect();
    let mut tasks = tasks?;
    let bytes = tasks.iter().map(|task| task.plan.target_len()).sum::<usize>();
    let place = Place::of::<K>(bytes, team.threads());
    tasks.iter_mut().for_each(|task| task.place = place);
    let schedule = Schedule::shared(tasks.iter().map(Task::parts), team.threads());
    let decode = |scratch: &mut Scratch, part: Part| {
        let task = &tasks[part.job];
        if let Some(next) = tasks.get(part.job + 1)
            && part.part + 1 == task.parts()
        {
            kernels.prefetch(&next.source[..next.source.len().min(HEAD_BYTES)]);
        }
        task.decode(kernels, part.part, scratch);
    };
    team.run(&schedule, RUN_BLOCKS, decode, || kernels.fence());
    jobs.iter_mut().for_each(|job| job.finish(Ok(())));
    Ok(())
}

/// One job.
struct Task<'a> {
    plan: &'a DecodePlan,
    source: &'a [u8],
    target: SharedTarget<'a>,
    pieces: Option<&'a dyn PieceSink>,
    /// That of the batch.
    place: Place,
}

impl<'a> Task<'a> {
    /// # Safety
    ///
    /// As [`run`].
    unsafe fn new(job: &'a mut CheckedDecodeJob<'_, '_>) -> Result<Self> {
        let (plan, source, target, pieces) = job.split();
        // SAFETY: the caller's promise.
        let (source, target) = unsafe { (source_bytes(source)?, target_bytes(target)?) };
        Ok(Self { plan, source, target: SharedTarget::new(target), pieces, place: Place::Cached })
    }

    fn layout(&self) -> &'a Layout {
        self.plan.layout()
    }

    /// Blocks that the plan touches.
    fn blocks(&self) -> Range<usize> {
        let tiles = self.plan.tiles();
        if tiles.is_empty() { 0..0 } else { tiles.start / BLOCK_TILES..tiles.end.div_ceil(BLOCK_TILES) }
    }

    /// One part per block; a plan without tiles is all tail and is cut evenly.
    fn parts(&self) -> usize {
        match self.blocks().len() {
            0 => self.plan.tail().len().div_ceil(STORED_PART_BYTES),
            blocks => blocks,
        }
    }

    fn decode<K: Kernels>(&self, kernels: K, part: usize, scratch: &mut Scratch) {
        let blocks = self.blocks();
        match self.layout().coding {
            Coding::TwoWindows(windows) if !blocks.is_empty() => {
                self.decode_windows(kernels, windows, blocks.start + part, scratch);
            }
            Coding::Cascade(cascade) if !blocks.is_empty() => {
                self.decode_cascade(kernels, cascade, blocks.start + part, scratch);
            }
            _ => self.copy_tail(part * STORED_PART_BYTES..(part + 1) * STORED_PART_BYTES),
        }
    }

    /// Copies a range of a tail that is all there is.
    fn copy_tail(&self, range: Range<usize>) {
        let tail = &self.source[self.plan.tail()];
        let range = range.start..range.end.min(tail.len());
        // SAFETY: parts are handed out once, and their ranges are disjoint.
        unsafe { self.target.range(range.clone()) }.copy_from_slice(&tail[range]);
    }

    /// Asks for what decoding a block reads first, and at once: its mask, or the cascade's codes, and its segment.
    fn ask_for<K: Kernels>(&self, kernels: K, index: usize) {
        if index < self.blocks().end {
            let ranges = self.layout().block(index);
            kernels.prefetch(&self.source[ranges.mask]);
            if let Coding::Cascade(_) = self.layout().coding {
                kernels.prefetch(&self.source[ranges.low_plane]);
            }
            kernels.prefetch(self.segment(index));
        }
    }

    fn decode_windows<K: Kernels>(&self, kernels: K, windows: TwoWindows, index: usize, scratch: &mut Scratch) {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        self.ask_for(kernels, index + 1);
        let mut mask = [0; BLOCK_TILES * TILE_MASK_BYTES];
        mask[..ranges.mask.len()].copy_from_slice(&self.source[ranges.mask.clone()]);
        let lanes = wide_lanes(&mask);
        let entry = BlockEntry::read(&self.source[layout.table.range()], index);
        // Both clamps are for bytes that changed since they were validated.
        let widest = layout.dtype.exponent_bits() - windows.common_width();
        let high_width = entry.wide_width.saturating_sub(windows.common_width()).min(widest);
        let segment = self.segment(index);
        let len = segment_len(lanes, high_width);
        let mut zero_padded;
        let segment = match segment.get(..len) {
            Some(segment) => segment,
            None => {
                zero_padded = vec![0; len];
                zero_padded[..segment.len()].copy_from_slice(segment);
                &zero_padded[..]
            }
        };

        let tiles = self.tiles(&ranges);
        let block = DecodeBlock {
            dtype: layout.dtype,
            common_base: windows.common_base(),
            common_width: windows.common_width(),
            wide_base: entry.wide_base & layout.dtype.exponent_mask(),
            high_width,
            mask,
            lanes,
            is_near: self.place == Place::Near,
            byte_plane: self.plane(&ranges, &ranges.byte_plane, &tiles),
            extra_plane: self.plane(&ranges, &ranges.extra_plane, &tiles),
            low_plane: self.plane(&ranges, &ranges.low_plane, &tiles),
            tiles,
            segment,
        };
        let Scratch { wide, tiles: [buffer, ..], .. } = scratch;
        self.with_target(index, &ranges, buffer, |target| kernels.decode(&block, target, wide));
    }

    fn decode_cascade<K: Kernels>(&self, kernels: K, cascade: Cascade, index: usize, scratch: &mut Scratch) {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        self.ask_for(kernels, index + 1);
        let tiles = self.tiles(&ranges);
        let block = CascadeBlock {
            dtype: layout.dtype,
            levels: usize::from(cascade.levels()),
            symbols: cascade.symbols(),
            byte_plane: self.plane(&ranges, &ranges.byte_plane, &tiles),
            extra_plane: self.plane(&ranges, &ranges.extra_plane, &tiles),
            low_plane: &self.source[ranges.low_plane.clone()],
            tiles,
            segment: self.segment(index),
        };
        let Scratch { cascade: memory, tiles: [buffer, ..], .. } = scratch;
        self.with_target(index, &ranges, buffer, |target| kernels.decode_cascade(&block, target, memory));
    }

    /// The segment of a block; some bytes of the variable section, or none, if the table changed since it was validated.
    fn segment(&self, index: usize) -> &'a [u8] {
        let table = &self.source[self.layout().table.range()];
        let end = BlockEntry::read(table, index).end;
        segment(&self.source[self.layout().variable.range()], BlockEntry::start(table, index), end)
    }

    /// The tiles of a block that are wanted, as indices into the block.
    fn tiles(&self, ranges: &BlockRanges) -> Range<usize> {
        let (wanted, first) = (self.plan.tiles(), ranges.tiles.start);
        first.max(wanted.start) - first..ranges.tiles.end.min(wanted.end) - first
    }

    /// These tiles of one plane of a block.
    fn plane(&self, ranges: &BlockRanges, plane: &Range<usize>, tiles: &Range<usize>) -> &'a [u8] {
        let tile_bytes = plane.len() / ranges.tiles.len();
        &self.source[plane.start + tiles.start * tile_bytes..][..tiles.len() * tile_bytes]
    }

    /// Has the wanted tiles of a block decoded, writes what follows the last of them, and gives all that to whoever wants it hashed.
    fn with_target(
        &self,
        index: usize,
        ranges: &BlockRanges,
        buffer: &mut TileBytes,
        mut decode: impl FnMut(TileTarget<'_, '_>),
    ) {
        let (layout, wanted, tiles) = (self.layout(), self.plan.tiles(), self.tiles(ranges));
        let tile_bytes = layout.dtype.tile_bytes();
        let start = (ranges.tiles.start + tiles.start - wanted.start) * tile_bytes;
        let decoded_len = tiles.len() * tile_bytes;
        let is_end = ranges.tiles.start + tiles.end == wanted.end;
        let tail = if is_end { &self.source[self.plan.tail()] } else { &[] };
        // SAFETY: blocks are handed out once, and their tiles are disjoint; the tail goes with the last of them.
        let target = unsafe { self.target.range(start..start + decoded_len + tail.len()) };
        let is_whole =
            tiles.len() == ranges.tiles.len() && (index + 1 < layout.blocks() || tail.len() == layout.tail.len);
        let pieces = self.pieces.filter(|_| is_whole);
        if let Some(pieces) = pieces.filter(|pieces| pieces.wants_payload()) {
            // What is read now is in the cache when it is decoded.
            let [entry, mask, byte_plane, extra_plane, low_plane] =
                [&ranges.entry, &ranges.mask, &ranges.byte_plane, &ranges.extra_plane, &ranges.low_plane]
                    .map(|range| &self.source[range.clone()]);
            pieces.payload(index, &[entry, mask, byte_plane, extra_plane, low_plane, self.segment(index)]);
        }
        let (decoded, rest) = target.split_at_mut(decoded_len);
        rest.copy_from_slice(tail);
        if self.place != Place::Streamed {
            decode(TileTarget::Cached(decoded));
            if let Some(pieces) = pieces {
                pieces.content(index, target);
            }
            return;
        }
        let mut behind = Behind::new(decoded, buffer);
        match pieces {
            None => decode(TileTarget::Streamed(&mut behind, &mut |_| {})),
            Some(pieces) => pieces.content_in_parts(index, &mut |hash| {
                decode(TileTarget::Streamed(&mut behind, hash));
                hash(tail);
            }),
        }
    }
}
