//! Encoding: a batch's jobs, cut into blocks.

use std::ops::Range;

use enec_core::{CheckedEncodeJob, PieceSink, Result};
use enec_format::geometry::{ALIGNMENT, HEADER_BYTES, SEGMENT_UNIT};
use enec_format::{BlockEntry, Coding, EncodeOutcome, EncodePlan, Layout, Section};

use crate::chain::Chain;
use crate::kernels::{Behind, EncodeBlock, EncodedParts, Kernels, Scratch, WideRows};
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
        match self.plan.coding() {
            Coding::Cascade(_) => 1,
            _ => self.layout().blocks(),
        }
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
        if let Coding::Cascade(_) = self.plan.coding() {
            return self.encode_cascade();
        }
        let (layout, Coding::TwoWindows(windows)) = (self.layout(), self.plan.coding()) else { return };
        if self.chain.is_stopped() {
            return;
        }
        let _guard = self.chain.stop_on_panic();
        let ranges = layout.block(index);
        let is_last = index + 1 == self.blocks();
        let elements = &self.source[layout.decoded_range(ranges.tiles.clone())];
        // SAFETY: blocks are handed out once, and the ranges of their parts are disjoint; so are the places that the chain gives.
        let part = |range: &Range<usize>| unsafe { self.target.range(range.clone()) };

        let mask = part(&ranges.mask);
        let wide = kernels.analyse(layout.dtype, windows, elements, mask);
        let Some(start) = self.chain.take(index, wide.segment_len(windows)) else { return };
        let end = start + wide.segment_len(windows);
        let segment = part(&(layout.variable.offset + start..layout.variable.offset + end));
        let units = self.plan.first_segment() + (end / SEGMENT_UNIT) as u64;
        let entry = BlockEntry { wide_base: wide.base, wide_width: wide.width, end: units }.to_bytes();
        part(&ranges.entry).copy_from_slice(&entry);
        let block = EncodeBlock { dtype: layout.dtype, windows, wide, elements, mask };
        let [byte_plane, extra_plane, low_plane] = [ranges.byte_plane, ranges.extra_plane, ranges.low_plane];
        let encode = |mut parts: EncodedParts<'_>, behind: Option<&mut [Behind<'_>; 3]>, wide: &mut WideRows| {
            kernels.encode(&block, &mut parts, behind, wide);
            if let Some(pieces) = self.pieces {
                let EncodedParts { byte_plane, extra_plane, low_plane, segment } = parts;
                pieces.payload(index, &[&entry, mask, byte_plane, extra_plane, low_plane, segment]);
                let start = layout.decoded_range(ranges.tiles.clone()).start;
                let end = if is_last { self.source.len() } else { start + elements.len() };
                pieces.content(index, &self.source[start..end]);
            }
        };
        let [byte_plane, extra_plane, low_plane] = [byte_plane, extra_plane, low_plane].map(|range| part(&range));
        if self.streams() {
            let (bytes, rest) = scratch.block.0.split_at_mut(byte_plane.len());
            let (extra, rest) = rest.split_at_mut(extra_plane.len());
            let low = &mut rest[..low_plane.len()];
            let parts = EncodedParts { byte_plane: bytes, extra_plane: extra, low_plane: low, segment };
            let mut behind = [byte_plane, extra_plane, low_plane].map(Behind::new);
            encode(parts, Some(&mut behind), &mut scratch.wide);
            for (plane, behind) in [bytes, extra, low].into_iter().zip(&mut behind) {
                kernels.stream_rest(plane, behind);
            }
        } else {
            encode(EncodedParts { byte_plane, extra_plane, low_plane, segment }, None, &mut scratch.wide);
        }
        if is_last {
            self.finish(end);
        }
    }

    fn encode_cascade(&self) {
        let mut encoded = vec![0; self.plan.target_len()];
        let outcome = enec_format::reference::encode(self.plan, self.source, &mut encoded).expect("a checked job");
        match outcome {
            EncodeOutcome::Coded { variable_len } => {
                let _ = self.chain.take(0, variable_len);
                let written =
                    self.layout().front_len()..self.plan.written(outcome).expect("within the plan").stream_len;
                // SAFETY: this job has one part.
                unsafe { self.target.range(written.clone()) }.copy_from_slice(&encoded[written]);
            }
            EncodeOutcome::Stored => self.chain.stop(),
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
