//! Encoding: a batch's jobs, cut into blocks.

use std::ops::Range;

use enec_core::{CheckedEncodeJob, PieceSink, Result};
use enec_format::geometry::{ALIGNMENT, BLOCK_TILES, HEADER_BYTES, SEGMENT_UNIT};
use enec_format::{BlockEntry, BlockRanges, Cascade, Coding, EncodeOutcome, EncodePlan, Layout, Section, TwoWindows};

use crate::chain::{Chain, StopOnPanic};
use crate::kernels::{
    Behind, CascadeSource, EncodeBlock, KeptPlanes, Kernels, Scratch, TileBytes, TileTarget, WideLanes,
};
use crate::schedule::{Part, Place, STORED_PART_BYTES, Schedule};
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
pub(crate) unsafe fn run<K: Kernels>(kernels: K, team: Team<'_>, jobs: &mut [CheckedEncodeJob<'_, '_>]) -> Result<()> {
    // SAFETY: the caller's promise.
    let tasks: Result<Vec<_>> = jobs.iter_mut().map(|job| unsafe { Task::new(job) }).collect();
    let mut tasks = tasks?;
    let bytes: usize = tasks.iter().map(|task| task.source.len()).sum();
    let threads = team.threads();
    let place = Place::of::<K>(bytes, threads);
    tasks.iter_mut().for_each(|task| task.place = place);
    // Where a block's segment goes is known only when all blocks before it have been analysed. So that each thread can keep to its own share,
    // which is in its own cache, it sets segments aside until then. (Those of the cascade are not: it is not that fast.)
    if threads > 1 && place == Place::Near {
        tasks.iter_mut().for_each(|task| task.is_shared = matches!(task.plan.coding(), Coding::TwoWindows(_)));
        let schedule =
            Schedule::shared(tasks.iter().map(|task| if task.is_shared { task.blocks() } else { 0 }), threads);
        // What a thread has set aside may be of any job.
        let stop = || tasks.iter().for_each(|task| task.chain.stop());
        let encode = |scratch: &mut Scratch, part: Part| {
            let _guard = StopOnPanic::new(&stop);
            tasks[part.job].encode_or_set_aside(kernels, part.part, scratch).map(|aside| (part, aside))
        };
        let complete = |scratch: &mut Scratch, aside: Vec<_>| {
            let _guard = StopOnPanic::new(&stop);
            complete_aside(&tasks, aside, scratch);
        };
        team.run_with_rest(&schedule, encode, complete);
    }
    // Each block waits for those before it.
    let coded = Schedule::in_order(tasks.iter().map(|task| if task.is_shared { 0 } else { task.blocks() }));
    let encode = |scratch: &mut Scratch, part: Part| {
        let following = tasks.get(part.job + 1).map_or(&[][..], |next| next.source);
        tasks[part.job].encode_block(kernels, part.part, following, threads, scratch);
    };
    team.run(&coded, 1, encode, || kernels.fence());
    let stored = Schedule::shared(tasks.iter().map(Task::stored_parts), threads);
    team.run(&stored, 1, |_, part| tasks[part.job].store(kernels, part.part), || kernels.fence());
    let outcomes: Vec<_> = tasks.iter().map(Task::outcome).collect();
    jobs.iter_mut().zip(outcomes).for_each(|(job, outcome)| job.finish(Ok(outcome)));
    Ok(())
}

/// One job.
struct Task<'a> {
    plan: &'a EncodePlan,
    source: &'a [u8],
    target: SharedTarget<'a>,
    pieces: Option<&'a dyn PieceSink>,
    chain: Chain,
    /// That of the batch.
    place: Place,
    /// Whether each thread encodes a share of its blocks.
    is_shared: bool,
}

/// A block that is written but for its segment and its entry.
#[derive(Debug, Clone)]
struct SetAside {
    wide: WideLanes,
    /// Where its segment lies among those that its thread has set aside.
    segment: Range<usize>,
}

/// Completes blocks that a thread has set aside.
fn complete_aside(tasks: &[Task<'_>], mut blocks: Vec<(Part, SetAside)>, scratch: &Scratch) {
    // In this order nobody waits for a block of somebody who waits.
    blocks.sort_unstable_by_key(|(part, _)| (part.job, part.part));
    // All places first: the other threads wait for these, and not for the rest.
    let starts =
        Vec::from_iter(blocks.iter().map(|(part, aside)| tasks[part.job].chain.take(part.part, aside.segment.len())));
    for ((part, aside), start) in blocks.into_iter().zip(starts) {
        if let Some(start) = start {
            tasks[part.job].fetch_aside(part.part, &aside, start, scratch);
        }
    }
}

/// What has been written of a block.
struct Written<'b> {
    wide: WideLanes,
    mask: &'b [u8],
    /// Byte, extra and low plane.
    planes: [&'b [u8]; 3],
    segment: &'b [u8],
}

impl<'a> Task<'a> {
    /// # Safety
    ///
    /// As [`run`].
    unsafe fn new(job: &'a mut CheckedEncodeJob<'_, '_>) -> Result<Self> {
        let (plan, source, target, pieces) = job.split();
        // SAFETY: the caller's promise.
        let (source, target) = unsafe { (source_bytes(source)?, target_bytes(target)?) };
        let chain = Chain::new(plan.variable_limit());
        let target = SharedTarget::new(&mut target[..plan.target_len()]);
        Ok(Self { plan, source, target, pieces, chain, place: Place::Cached, is_shared: false })
    }

    fn layout(&self) -> &'a Layout {
        self.plan.layout()
    }

    fn blocks(&self) -> usize {
        self.layout().blocks()
    }

    /// After the blocks: what became of the job.
    fn outcome(&self) -> EncodeOutcome {
        match (self.plan.coding(), self.chain.finish()) {
            (Coding::TwoWindows(_) | Coding::Cascade(_), Some(variable_len)) => EncodeOutcome::Coded { variable_len },
            _ => EncodeOutcome::Stored,
        }
    }

    /// After the blocks: parts of a stream that is stored, none of one that is coded.
    fn stored_parts(&self) -> usize {
        match self.outcome() {
            EncodeOutcome::Coded { .. } => 0,
            EncodeOutcome::Stored => self.source.len().div_ceil(STORED_PART_BYTES),
        }
    }

    /// Copies one part verbatim, the last one with its padding.
    fn store<K: Kernels>(&self, kernels: K, part: usize) {
        let start = part * STORED_PART_BYTES;
        let end = self.source.len().min(start + STORED_PART_BYTES);
        // Only the last part can end elsewhere than at a multiple of 64.
        let padded = start..end.next_multiple_of(ALIGNMENT);
        // SAFETY: parts are handed out once, and their ranges are disjoint.
        let target = unsafe { self.target.range(HEADER_BYTES + padded.start..HEADER_BYTES + padded.end) };
        let (bytes, padding) = target.split_at_mut(end - start);
        let source = &self.source[start..end];
        if self.place == Place::Streamed {
            kernels.stream(source, bytes)
        } else {
            bytes.copy_from_slice(source)
        }
        padding.fill(0);
    }

    /// Encodes a block; `following` is the source of the next job.
    fn encode_block<K: Kernels>(
        &self,
        kernels: K,
        index: usize,
        following: &[u8],
        threads: usize,
        scratch: &mut Scratch,
    ) {
        if self.chain.is_stopped() {
            return;
        }
        let stop = || self.chain.stop();
        let _guard = StopOnPanic::new(&stop);
        match self.plan.coding() {
            Coding::TwoWindows(windows) => self.encode_windows(kernels, windows, index, following, threads, scratch),
            Coding::Cascade(cascade) => self.encode_cascade(kernels, cascade, index, scratch),
            _ => {}
        }
    }

    /// Encodes a block of a thread's share; if blocks before it have not been analysed, all but its segment, which is set aside, and its entry.
    fn encode_or_set_aside<K: Kernels>(&self, kernels: K, index: usize, scratch: &mut Scratch) -> Option<SetAside> {
        debug_assert!(self.place != Place::Streamed, "nobody completes what is streamed here");
        let Coding::TwoWindows(windows) = self.plan.coding() else { return None };
        if self.chain.is_stopped() {
            return None;
        }
        let (mut segments, mut end) = (std::mem::take(&mut scratch.segments), None);
        let start = segments.len();
        let (set_aside, end_in_target) = (&mut segments, &mut end);
        let place = move |len| {
            if self.chain.is_turn(index) {
                let start = self.chain.take(index, len)?;
                *end_in_target = Some(start + len);
                // SAFETY: the chain gives every place once.
                return Some(unsafe { self.target.range(self.segment_range(start, len)) });
            }
            let set_aside = set_aside;
            set_aside.resize(start + len, 0);
            Some(&mut set_aside[start..])
        };
        let written = self.write_block(kernels, windows, index, &[], scratch, place);
        let wide = written.and_then(|written| match end {
            Some(end) => {
                self.complete(index, end, &written);
                None
            }
            None => Some(written.wide),
        });
        let aside = wide.map(|wide| SetAside { wide, segment: start..segments.len() });
        scratch.segments = segments;
        aside
    }

    /// Completes a block that this thread has set aside, its segment starting there in the variable section.
    fn fetch_aside(&self, index: usize, aside: &SetAside, start: usize, scratch: &Scratch) {
        let (wide, len) = (aside.wide, aside.segment.len());
        let ranges = self.layout().block(index);
        // SAFETY: only the thread that wrote the block comes here for it, after it has done so; the chain gives every place once.
        let (mask, planes, segment) = unsafe {
            let segment = self.target.range(self.segment_range(start, len));
            (self.target.range(ranges.mask.clone()), self.planes(&ranges), segment)
        };
        segment.copy_from_slice(&scratch.segments[aside.segment.clone()]);
        self.complete(index, start + len, &Written { wide, mask, planes: planes.map(|plane| &*plane), segment });
    }

    /// Encodes a block, which begins when the chain is or will be at it.
    fn encode_windows<K: Kernels>(
        &self,
        kernels: K,
        windows: TwoWindows,
        index: usize,
        following: &[u8],
        threads: usize,
        scratch: &mut Scratch,
    ) {
        let mut end = 0;
        let place = |len| {
            let start = self.chain.take(index, len)?;
            end = start + len;
            // SAFETY: the chain gives every place once.
            Some(unsafe { self.target.range(self.segment_range(start, len)) })
        };
        // With several threads it is only likely that the block is this thread's.
        let ahead = self.ahead(index, threads, following);
        if let Some(written) = self.write_block(kernels, windows, index, ahead, scratch, place) {
            self.complete(index, end, &written);
        }
    }

    /// The block that comes so many blocks after this one, or as much of `following` behind the last one.
    fn ahead<'b>(&'b self, index: usize, blocks: usize, following: &'b [u8]) -> &'b [u8] {
        if self.place == Place::Near {
            return &[];
        }
        let layout = self.layout();
        let elements = layout.decoded_range(layout.block(index).tiles);
        let (next, block) = (elements.start + blocks * elements.len(), BLOCK_TILES * layout.dtype.tile_bytes());
        let following = if index + 1 == self.blocks() { following } else { &[] };
        self.source.get(next..next + block).unwrap_or(&following[..following.len().min(block)])
    }

    /// Writes a block but for its entry, its segment to the place that it is given for one of a length; without one the job is over.
    fn write_block<'b, K: Kernels>(
        &self,
        kernels: K,
        windows: TwoWindows,
        index: usize,
        ahead: &[u8],
        scratch: &'b mut Scratch,
        place: impl FnOnce(usize) -> Option<&'b mut [u8]>,
    ) -> Option<Written<'b>>
    where
        'a: 'b,
    {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        let (dtype, elements) = (layout.dtype, layout.decoded_range(ranges.tiles.clone()));
        // SAFETY: blocks are handed out once, and the ranges of their parts are disjoint.
        let (mask, planes) = unsafe { (self.target.range(ranges.mask.clone()), self.planes(&ranges)) };
        if let Some(pieces) = self.pieces {
            pieces.content(index, &self.source[self.content(index, &elements)]);
        }
        let elements = &self.source[elements];
        let wide = kernels.analyse(dtype, windows, elements, mask);
        let segment = place(wide.segment_len(windows))?;
        let block = EncodeBlock { dtype, windows, wide, elements, mask, ahead };
        let Scratch { wide: rows, tiles, kept, .. } = scratch;
        let write = |targets: [TileTarget<'_, '_>; 3]| kernels.encode(&block, targets, segment, rows);
        let ((), planes) = self.write_planes(planes, tiles, kept, write);
        Some(Written { wide, mask, planes, segment })
    }

    /// Writes the entry of a block whose segment ends there in the variable section, and behind the last one what belongs to no block. Gives
    /// the block to whoever wants it hashed.
    fn complete(&self, index: usize, end: usize, written: &Written<'_>) {
        let Written { wide, mask, planes: [byte_plane, extra_plane, low_plane], segment } = *written;
        // The end counts bytes from the start of the target's variable section.
        let units = self.plan.first_segment() + (end / SEGMENT_UNIT) as u64;
        let entry = BlockEntry { wide_base: wide.base, wide_width: wide.width, end: units }.to_bytes();
        // SAFETY: blocks are handed out once, and this part of theirs is used nowhere else.
        unsafe { self.target.range(self.layout().block(index).entry) }.copy_from_slice(&entry);
        if index + 1 == self.blocks() {
            self.finish(end);
        }
        if let Some(pieces) = self.pieces {
            pieces.payload(index, &[&entry, mask, byte_plane, extra_plane, low_plane, segment]);
        }
    }

    /// Has the planes of a block written. Returns them, or what was kept of them: they are hashed when all of the block is known.
    fn write_planes<'b, R>(
        &self,
        mut planes: [&'b mut [u8]; 3],
        tiles: &mut [TileBytes; 3],
        kept: &'b mut KeptPlanes,
        write: impl FnOnce([TileTarget<'_, '_>; 3]) -> R,
    ) -> (R, [&'b [u8]; 3]) {
        if self.place != Place::Streamed {
            let result = write(planes.each_mut().map(|plane| TileTarget::Cached(plane)));
            return (result, planes.map(|plane| &*plane));
        }
        let is_kept = self.pieces.is_some();
        let mut kept = kept.split(planes.each_ref().map(|plane| if is_kept { plane.len() } else { 0 }));
        let [mut keep_bytes, mut keep_extra, mut keep_low] = kept.each_mut().map(|kept| {
            let mut end = 0;
            move |bytes: &[u8]| {
                if is_kept {
                    kept[end..][..bytes.len()].copy_from_slice(bytes);
                    end += bytes.len();
                }
            }
        });
        let ([bytes, extra, low], [byte_tiles, extra_tiles, low_tiles]) = (planes, tiles);
        let result = write([
            TileTarget::Streamed(&mut Behind::new(bytes, byte_tiles), &mut keep_bytes),
            TileTarget::Streamed(&mut Behind::new(extra, extra_tiles), &mut keep_extra),
            TileTarget::Streamed(&mut Behind::new(low, low_tiles), &mut keep_low),
        ]);
        (result, kept.map(|kept| &*kept))
    }

    /// As [`encode_windows`](Self::encode_windows).
    fn encode_cascade<K: Kernels>(&self, kernels: K, cascade: Cascade, index: usize, scratch: &mut Scratch) {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        let range = layout.decoded_range(ranges.tiles.clone());
        let block = CascadeSource {
            dtype: layout.dtype,
            levels: usize::from(cascade.levels()),
            symbols: cascade.symbols(),
            elements: &self.source[range.clone()],
        };
        // SAFETY: blocks are handed out once.
        let planes = unsafe { self.planes(&ranges) };
        let Scratch { cascade: memory, tiles, kept, .. } = scratch;
        let (len, planes) = self.write_planes(planes, tiles, kept, |targets| {
            self.with_content(index, &range, |show| kernels.encode_cascade(&block, targets, show, memory))
        });
        let Some(start) = self.chain.take(index, len) else { return };
        // SAFETY: the chain gives every place once.
        let segment = unsafe { self.target.range(self.segment_range(start, len)) };
        segment.copy_from_slice(memory.segment(len));
        self.complete(index, start + len, &Written { wide: WideLanes::NONE, mask: &[], planes, segment });
    }

    /// The elements of a block, with the tail if it follows.
    fn content(&self, index: usize, elements: &Range<usize>) -> Range<usize> {
        elements.start..if index + 1 == self.blocks() { self.source.len() } else { elements.end }
    }

    /// Has the elements of a block read, and gives what is shown meanwhile, all of them, to whoever wants them hashed, with the tail if it
    /// follows.
    fn with_content<R>(
        &self,
        index: usize,
        elements: &Range<usize>,
        read: impl FnOnce(&mut dyn FnMut(&[u8])) -> R,
    ) -> R {
        let Some(pieces) = self.pieces else { return read(&mut |_| {}) };
        let tail = &self.source[elements.end..self.content(index, elements).end];
        let (mut read, mut result) = (Some(read), None);
        pieces.content_in_parts(index, &mut |hash| {
            result = read.take().map(|read| read(hash));
            hash(tail);
        });
        result.unwrap_or_else(|| unreachable!("a sink asks for the bytes that it is offered, once"))
    }

    /// The planes of a block.
    ///
    /// # Safety
    ///
    /// Only one thread calls it for a block, and only once.
    unsafe fn planes(&self, ranges: &BlockRanges) -> [&'a mut [u8]; 3] {
        // SAFETY: the caller's promise; the ranges of blocks and of their parts are disjoint.
        let plane = |range: &Range<usize>| unsafe { self.target.range(range.clone()) };
        [plane(&ranges.byte_plane), plane(&ranges.extra_plane), plane(&ranges.low_plane)]
    }

    /// Where a segment lies in the target, given its place in the variable section.
    fn segment_range(&self, start: usize, len: usize) -> Range<usize> {
        let offset = self.layout().variable.offset;
        offset + start..offset + start + len
    }

    /// Writes what belongs to no block: the tail and all sections' padding.
    fn finish(&self, variable_len: usize) {
        let layout = self.layout();
        let variable = Section { len: variable_len, ..layout.variable };
        let tail = Section { offset: variable.padding().end, ..layout.tail };
        let fixed = [layout.table, layout.mask, layout.byte_plane, layout.extra_plane, layout.low_plane];
        for section in fixed.into_iter().chain([variable, tail]) {
            // SAFETY: no block owns padding, and only one thread comes here.
            unsafe { self.target.range(section.padding()) }.fill(0);
        }
        // SAFETY: as above; the tail lies behind the last segment.
        let target = unsafe { self.target.range(tail.range()) };
        target.copy_from_slice(&self.source[self.source.len() - tail.len..]);
    }
}
