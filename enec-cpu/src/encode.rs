//! Encoding: a batch's jobs, cut into blocks.

use std::ops::Range;

use enec_core::{CheckedEncodeJob, PieceSink, Result};
use enec_format::geometry::{ALIGNMENT, HEADER_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use enec_format::{BlockEntry, BlockRanges, Cascade, Coding, EncodeOutcome, EncodePlan, Layout, Section, TwoWindows};

use crate::chain::Chain;
use crate::kernels::{Behind, BlockBytes, CascadeSource, EncodeBlock, EncodedPlanes, Kernels, Scratch};
use crate::schedule::{Part, STORED_PART_BYTES, STREAM_BYTES, Schedule};
use crate::target::{SharedTarget, source_bytes, target_bytes};
use crate::workers::Workers;

/// Runs the jobs.
///
/// # Errors
///
/// If device memory is not this backend's.
///
/// # Safety
///
/// The caller holds the lock of the device memory that the jobs use, whose targets overlap nothing else in the batch.
pub(crate) unsafe fn run<K: Kernels>(
    kernels: K,
    workers: &Workers,
    jobs: &mut [CheckedEncodeJob<'_, '_>],
) -> Result<()> {
    // SAFETY: the caller's promise.
    let tasks: Result<Vec<_>> = jobs.iter_mut().map(|job| unsafe { Task::new(job) }).collect();
    let tasks = tasks?;
    let coded = Schedule::new(tasks.iter().map(Task::blocks));
    let encode = |scratch: &mut Scratch, part: Part| tasks[part.job].encode_block(kernels, part.part, scratch);
    workers.run(&coded, encode, || kernels.fence());
    let stored = Schedule::new(tasks.iter().map(Task::stored_parts));
    workers.run(&stored, |_, part| tasks[part.job].store(kernels, part.part), || kernels.fence());
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
        Ok(Self { plan, source, target, pieces, chain })
    }

    fn layout(&self) -> &'a Layout {
        self.plan.layout()
    }

    fn blocks(&self) -> usize {
        self.layout().blocks()
    }

    fn streams(&self) -> bool {
        self.source.len() >= STREAM_BYTES
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
        if self.streams() {
            kernels.stream(source, bytes)
        } else {
            bytes.copy_from_slice(source)
        }
        padding.fill(0);
    }

    fn encode_block<K: Kernels>(&self, kernels: K, index: usize, scratch: &mut Scratch) {
        if self.chain.is_stopped() {
            return;
        }
        let _guard = self.chain.stop_on_panic();
        let end = match self.plan.coding() {
            Coding::TwoWindows(windows) => self.encode_windows(kernels, windows, index, scratch),
            Coding::Cascade(cascade) => self.encode_cascade(kernels, cascade, index, scratch),
            _ => None,
        };
        if let (Some(end), true) = (end, index + 1 == self.blocks()) {
            self.finish(end);
        }
    }

    /// Encodes a block and returns the end of its segment in the variable section, or `None` if the job is over.
    fn encode_windows<K: Kernels>(
        &self,
        kernels: K,
        windows: TwoWindows,
        index: usize,
        scratch: &mut Scratch,
    ) -> Option<usize> {
        let (layout, ranges) = (self.layout(), self.layout().block(index));
        let elements = &self.source[layout.decoded_range(ranges.tiles.clone())];
        // SAFETY: blocks are handed out once, and the ranges of their parts are disjoint.
        let mask = unsafe { self.target.range(ranges.mask.clone()) };
        let wide = kernels.analyse(layout.dtype, windows, elements, mask);
        let len = wide.segment_len(windows);
        let start = self.chain.take(index, len)?;
        let entry =
            self.write_entry(&ranges, BlockEntry { wide_base: wide.base, wide_width: wide.width, end: 0 }, start + len);
        // SAFETY: the chain gives every place once.
        let segment = unsafe { self.target.range(self.segment_range(start, len)) };
        let block = EncodeBlock { dtype: layout.dtype, windows, wide, elements, mask };
        let Scratch { wide, block: bytes, .. } = scratch;
        self.with_planes(kernels, &ranges, bytes, |planes, behind| {
            kernels.encode(&block, planes, segment, behind, wide);
            self.give_pieces(index, &ranges, &entry, mask, planes, segment);
        });
        Some(start + len)
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
        let elements = &self.source[layout.decoded_range(ranges.tiles.clone())];
        let block = CascadeSource {
            dtype: layout.dtype,
            levels: usize::from(cascade.levels()),
            symbols: cascade.symbols(),
            elements,
        };
        let Scratch { cascade: memory, block: bytes, .. } = scratch;
        self.with_planes(kernels, &ranges, bytes, |planes, behind| {
            let len = kernels.encode_cascade(&block, planes, behind, memory);
            let start = self.chain.take(index, len)?;
            let entry = self.write_entry(&ranges, BlockEntry { wide_base: 0, wide_width: 0, end: 0 }, start + len);
            // SAFETY: the chain gives every place once.
            let segment = unsafe { self.target.range(self.segment_range(start, len)) };
            segment.copy_from_slice(memory.segment(len));
            self.give_pieces(index, &ranges, &entry, &[], planes, segment);
            Some(start + len)
        })
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

    /// Has the planes of a block written: to the target, or to scratch memory from where they are streamed to the target.
    fn with_planes<K: Kernels, R>(
        &self,
        kernels: K,
        ranges: &BlockRanges,
        scratch: &mut BlockBytes,
        write: impl FnOnce(&mut EncodedPlanes<'_>, Option<&mut [Behind<'_>; 3]>) -> R,
    ) -> R {
        // SAFETY: blocks are handed out once, the ranges of their parts are disjoint, and these are used nowhere else.
        let part = |range: &Range<usize>| unsafe { self.target.range(range.clone()) };
        let [byte_plane, extra_plane, low_plane] =
            [&ranges.byte_plane, &ranges.extra_plane, &ranges.low_plane].map(part);
        if !self.streams() {
            return write(&mut EncodedPlanes { byte_plane, extra_plane, low_plane }, None);
        }
        let (bytes, rest) = scratch.0.split_at_mut(byte_plane.len());
        let (extra, rest) = rest.split_at_mut(extra_plane.len());
        let low = &mut rest[..low_plane.len()];
        let mut planes = EncodedPlanes { byte_plane: bytes, extra_plane: extra, low_plane: low };
        let mut behind = [byte_plane, extra_plane, low_plane].map(Behind::new);
        let written = write(&mut planes, Some(&mut behind));
        for (plane, behind) in [bytes, extra, low].into_iter().zip(&mut behind) {
            kernels.stream_rest(plane, behind);
        }
        written
    }

    /// Gives the pieces of a block to whoever wants them hashed.
    fn give_pieces(
        &self,
        index: usize,
        ranges: &BlockRanges,
        entry: &[u8],
        mask: &[u8],
        planes: &EncodedPlanes<'_>,
        segment: &[u8],
    ) {
        if let Some(pieces) = self.pieces {
            let EncodedPlanes { byte_plane, extra_plane, low_plane } = planes;
            pieces.payload(index, &[entry, mask, byte_plane, extra_plane, low_plane, segment]);
            let decoded = self.layout().decoded_range(ranges.tiles.clone());
            let end = if index + 1 == self.blocks() { self.source.len() } else { decoded.end };
            pieces.content(index, &self.source[decoded.start..end]);
        }
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
