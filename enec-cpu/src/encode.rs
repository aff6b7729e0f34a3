//! Encoding: a batch's jobs, cut into blocks.

use std::ops::Range;
use std::sync::OnceLock;

use enec_core::{CheckedEncodeJob, PieceSink, Result};
use enec_format::geometry::{ALIGNMENT, BLOCK_TILES, HEADER_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use enec_format::{BlockEntry, BlockRanges, Cascade, Coding, EncodeOutcome, EncodePlan, Layout, Section, TwoWindows};

use crate::chain::Chain;
use crate::kernels::{Behind, CascadeSource, EncodeBlock, Kernels, PlanesTarget, Scratch, TileBytes, WideLanes};
use crate::schedule::{Part, STORED_PART_BYTES, STREAM_BYTES, Schedule};
use crate::target::{SharedTarget, source_bytes, target_bytes};
use crate::workers::Team;

/// Source bytes of a thread's share that stay in its cache from the first of two passes to the second.
const SHARE_BYTES: usize = 1 << 20;

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
    let streams = K::STREAMS && bytes >= STREAM_BYTES;
    tasks.iter_mut().for_each(|task| task.streams = streams);
    let threads = team.threads();
    // Rather twice from the own cache than once from that of another thread. The cascade has no such passes: where a block's segment goes is
    // known only when it has been written.
    if threads > 1 && !streams && bytes <= threads * SHARE_BYTES {
        tasks.iter_mut().for_each(Task::expect_analyses);
        let analysed = || Schedule::shared(tasks.iter().map(|task| task.analyses.len()), threads);
        team.run_in_passes(
            [analysed(), analysed()],
            |part| tasks[part.job].analyse_first(kernels, part.part),
            || tasks.iter().for_each(Task::place_segments),
            |scratch, part| tasks[part.job].write_analysed(kernels, part.part, scratch),
        );
    }
    // Each block waits for those before it.
    let coded = Schedule::in_order(tasks.iter().map(|task| if task.analyses.is_empty() { task.blocks() } else { 0 }));
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
    /// Whether the target is streamed past the caches.
    streams: bool,
    /// What the first of two passes finds, block by block; empty if there is one.
    analyses: Vec<OnceLock<WideLanes>>,
    /// Where their segments start in the variable section; fewer if it exceeds its limit.
    starts: OnceLock<Vec<usize>>,
}

/// A block after its analysis.
#[derive(Clone, Copy)]
struct AnalysedBlock {
    index: usize,
    wide: WideLanes,
    /// Where its segment starts in the variable section.
    start: usize,
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
        Ok(Self { plan, source, target, pieces, chain, streams: false, analyses: Vec::new(), starts: OnceLock::new() })
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
        if self.streams {
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
        let _guard = self.chain.stop_on_panic();
        let end = match self.plan.coding() {
            Coding::TwoWindows(windows) => self.encode_windows(kernels, windows, index, following, threads, scratch),
            Coding::Cascade(cascade) => self.encode_cascade(kernels, cascade, index, scratch),
            _ => None,
        };
        if let (Some(end), true) = (end, index + 1 == self.blocks()) {
            self.finish(end);
        }
    }

    /// Makes room for what the first of two passes finds.
    fn expect_analyses(&mut self) {
        if let Coding::TwoWindows(_) = self.plan.coding() {
            self.analyses.resize_with(self.blocks(), OnceLock::new);
        }
    }

    /// The first pass.
    fn analyse_first<K: Kernels>(&self, kernels: K, index: usize) {
        if let Coding::TwoWindows(windows) = self.plan.coding() {
            self.analyses[index].get_or_init(|| self.analyse(kernels, windows, index));
        }
    }

    /// Between the passes: finds out where the segments go.
    fn place_segments(&self) {
        if let Coding::TwoWindows(windows) = self.plan.coding() {
            let wide = self.analyses.iter().map_while(OnceLock::get).enumerate();
            let starts = wide.map_while(|(index, wide)| self.chain.take(index, wide.segment_len(windows)));
            self.starts.get_or_init(|| starts.collect());
        }
    }

    /// The second pass.
    fn write_analysed<K: Kernels>(&self, kernels: K, index: usize, scratch: &mut Scratch) {
        let start = self.starts.get().and_then(|starts| starts.get(index));
        if let (Coding::TwoWindows(windows), Some(&wide), Some(&start), false) =
            (self.plan.coding(), self.analyses[index].get(), start, self.chain.is_stopped())
        {
            let ahead = self.ahead(index, 1, &[]);
            let end = self.write_windows(kernels, windows, AnalysedBlock { index, wide, start }, ahead, scratch);
            if index + 1 == self.blocks() {
                self.finish(end);
            }
        }
    }

    /// Encodes a block in one pass and returns the end of its segment in the variable section, or `None` if the job is over.
    fn encode_windows<K: Kernels>(
        &self,
        kernels: K,
        windows: TwoWindows,
        index: usize,
        following: &[u8],
        threads: usize,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let wide = self.analyse(kernels, windows, index);
        let start = self.chain.take(index, wide.segment_len(windows))?;
        // With several threads it is only likely that the block is this thread's.
        let ahead = self.ahead(index, threads, following);
        Some(self.write_windows(kernels, windows, AnalysedBlock { index, wide, start }, ahead, scratch))
    }

    /// Half of the block that comes so many blocks after this one, or of `following` behind the last one: the other half comes soon enough
    /// when it is read.
    fn ahead<'b>(&'b self, index: usize, blocks: usize, following: &'b [u8]) -> &'b [u8] {
        let layout = self.layout();
        let elements = layout.decoded_range(layout.block(index).tiles);
        let (next, half) = (elements.start + blocks * elements.len(), BLOCK_TILES * layout.dtype.tile_bytes() / 2);
        let following = if index + 1 == self.blocks() { following } else { &[] };
        self.source.get(next..next + half).unwrap_or(&following[..following.len().min(half)])
    }

    /// Finds the wide lanes of a block and writes their mask.
    fn analyse<K: Kernels>(&self, kernels: K, windows: TwoWindows, index: usize) -> WideLanes {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        let elements = layout.decoded_range(ranges.tiles);
        // SAFETY: blocks are handed out once, and the ranges of their parts are disjoint.
        let mask = unsafe { self.target.range(ranges.mask) };
        let source = &self.source[elements.clone()];
        self.with_content(index, &elements, |show| kernels.analyse(layout.dtype, windows, source, mask, show))
    }

    /// Writes the rest of an analysed block. Returns where its segment ends in the variable section.
    fn write_windows<K: Kernels>(
        &self,
        kernels: K,
        windows: TwoWindows,
        analysed: AnalysedBlock,
        ahead: &[u8],
        scratch: &mut Scratch,
    ) -> usize {
        let AnalysedBlock { index, wide, start } = analysed;
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        let elements = &self.source[layout.decoded_range(ranges.tiles.clone())];
        let end = start + wide.segment_len(windows);
        // SAFETY: blocks are handed out once, in each pass if there are two, of which the first has ended; the ranges of their parts are
        // disjoint, and the chain gives every place once.
        let (mask, segment) = unsafe {
            (&*self.target.range(ranges.mask.clone()), self.target.range(self.segment_range(start, end - start)))
        };
        let entry = BlockEntry { wide_base: wide.base, wide_width: wide.width, end: 0 };
        let entry = self.write_entry(&ranges, entry, end);
        let block = EncodeBlock { dtype: layout.dtype, windows, wide, elements, mask, ahead };
        // SAFETY: blocks are handed out once.
        let mut planes = unsafe { self.planes(&ranges) };
        let Scratch { wide, tiles, kept, .. } = scratch;
        if !self.streams {
            kernels.encode(&block, PlanesTarget::Cached(planes.each_mut().map(|plane| &mut **plane)), segment, wide);
            if let Some(pieces) = self.pieces {
                let [byte_plane, extra_plane, low_plane] = planes;
                pieces.payload(index, &[&entry, mask, byte_plane, extra_plane, low_plane, segment]);
            }
            return end;
        }
        let lens = planes.each_ref().map(|plane| plane.len());
        let mut behind = behind(planes, tiles);
        let Some(pieces) = self.pieces else {
            kernels.encode(&block, PlanesTarget::Streamed(&mut behind, &mut |_, _| {}), segment, wide);
            return end;
        };
        let [byte, extra, low] = lens;
        let mut kept = kept.split([extra, low]);
        pieces.payload_in_parts(index, [entry.len(), mask.len(), byte, extra, low, segment.len()], &mut |hash| {
            hash(&entry);
            hash(mask);
            let mut ends = [0; 2];
            let mut show = |plane: usize, bytes: &[u8]| match plane.checked_sub(1) {
                None => hash(bytes),
                // The whole byte plane goes before them.
                Some(plane) => keep(kept[plane], &mut ends[plane], bytes),
            };
            kernels.encode(&block, PlanesTarget::Streamed(&mut behind, &mut show), segment, wide);
            kept.iter().for_each(|plane| hash(plane));
            hash(segment);
        });
        end
    }

    /// As [`encode_windows`](Self::encode_windows).
    fn encode_cascade<K: Kernels>(
        &self,
        kernels: K,
        cascade: Cascade,
        index: usize,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        let range = layout.decoded_range(ranges.tiles.clone());
        let block = CascadeSource {
            dtype: layout.dtype,
            levels: usize::from(cascade.levels()),
            symbols: cascade.symbols(),
            elements: &self.source[range.clone()],
        };
        // SAFETY: blocks are handed out once.
        let mut planes = unsafe { self.planes(&ranges) };
        let Scratch { cascade: memory, tiles, kept, .. } = scratch;
        let (len, planes) = if self.streams {
            // The block's entry is hashed before its planes, but only known after them.
            let lens = if self.pieces.is_some() { planes.each_ref().map(|plane| plane.len()) } else { [0; 3] };
            let (mut kept, mut ends) = (kept.split(lens), [0; 3]);
            let mut behind = behind(planes, tiles);
            let keeps = self.pieces.is_some();
            let mut keep = |plane: usize, bytes: &[u8]| {
                if keeps {
                    keep(kept[plane], &mut ends[plane], bytes);
                }
            };
            let len = self.with_content(index, &range, |show| {
                kernels.encode_cascade(&block, PlanesTarget::Streamed(&mut behind, &mut keep), show, memory)
            });
            (len, kept)
        } else {
            let len = self.with_content(index, &range, |show| {
                let target = PlanesTarget::Cached(planes.each_mut().map(|plane| &mut **plane));
                kernels.encode_cascade(&block, target, show, memory)
            });
            (len, planes)
        };
        let start = self.chain.take(index, len)?;
        let entry = self.write_entry(&ranges, BlockEntry { wide_base: 0, wide_width: 0, end: 0 }, start + len);
        // SAFETY: the chain gives every place once.
        let segment = unsafe { self.target.range(self.segment_range(start, len)) };
        segment.copy_from_slice(memory.segment(len));
        if let Some(pieces) = self.pieces {
            let [byte_plane, extra_plane, low_plane] = planes;
            pieces.payload(index, &[&entry, &[], byte_plane, extra_plane, low_plane, segment]);
        }
        Some(start + len)
    }

    /// Has the elements of a block read, and gives what is shown meanwhile, all of them, to whoever wants them hashed, with the tail if it
    /// follows.
    fn with_content<R>(
        &self,
        index: usize,
        elements: &Range<usize>,
        mut read: impl FnMut(&mut dyn FnMut(&[u8])) -> R,
    ) -> R {
        let Some(pieces) = self.pieces else { return read(&mut |_| {}) };
        let tail = if index + 1 == self.blocks() { &self.source[elements.end..] } else { &[] };
        let mut result = None;
        pieces.content_in_parts(index, &mut |hash| {
            result = Some(read(hash));
            hash(tail);
        });
        result.unwrap_or_else(|| unreachable!("a sink asks for the bytes that it is offered"))
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

    /// Writes a block's entry, with the end of its segment, which counts bytes from the start of the target's variable section.
    fn write_entry(&self, ranges: &BlockRanges, entry: BlockEntry, end: usize) -> [u8; TABLE_ENTRY_BYTES] {
        let units = self.plan.first_segment() + (end / SEGMENT_UNIT) as u64;
        let entry = BlockEntry { end: units, ..entry }.to_bytes();
        // SAFETY: blocks are handed out once, and this part of theirs is used nowhere else.
        unsafe { self.target.range(ranges.entry.clone()) }.copy_from_slice(&entry);
        entry
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

/// Streams to the planes of a block.
fn behind<'a>(planes: [&'a mut [u8]; 3], tiles: &'a mut [TileBytes; 3]) -> [Behind<'a>; 3] {
    let ([byte_plane, extra_plane, low_plane], [first, second, third]) = (planes, tiles);
    [Behind::new(byte_plane, first), Behind::new(extra_plane, second), Behind::new(low_plane, third)]
}

/// Writes bytes behind those that were kept before.
fn keep(kept: &mut [u8], end: &mut usize, bytes: &[u8]) {
    kept[*end..][..bytes.len()].copy_from_slice(bytes);
    *end += bytes.len();
}
