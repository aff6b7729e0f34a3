//! Encoding: a batch's jobs, cut into windows of whole blocks; the lengths of their segments are added up on the device.

use std::collections::VecDeque;
use std::ops::Range;

use enec_core::{CheckedEncodeJob, Error, Result, two_windows_only};
use enec_format::geometry::{
    ALIGNMENT, BLOCK_TILES, HEADER_BYTES, LANES, ROW_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES, TILE_BYTE_PLANE_BYTES,
    TILE_MASK_BYTES,
};
use enec_format::{EncodeOutcome, EncodePlan, Layout, TwoWindows, segment_len};

use crate::wgpu::decode::halves;
use crate::wgpu::memory::USAGE;
use crate::wgpu::pipelines::{Kernel, Kind};
use crate::wgpu::ring::{Ring, Work};
use crate::wgpu::transfer::{Destination, Transfers};
use crate::wgpu::window::{Bound, KERNEL_ALIGNMENT, Origin, Place, Space, To, Window, count, word};

/// Most parts of a window; the first words of its scratch memory are their results.
const WINDOW_PARTS: usize = 1024;
/// Decoded bytes of a window that stays in device memory: its scratch memory is up to half of that.
const RESIDENT_BYTES: usize = 64 << 20;
/// Blocks of a job whose units of segments can be counted in 32 bits.
const MOST_BLOCKS: usize = 1 << 23;

/// What padding consists of.
static ZEROS: [u8; ALIGNMENT] = [0; ALIGNMENT];

/// Runs the jobs.
///
/// # Errors
///
/// The device's, and if device memory is not this backend's.
pub(crate) fn run(ring: &mut Ring, jobs: &mut [CheckedEncodeJob<'_, '_>]) -> Result<()> {
    let (limit, window_bytes) = (ring.gpu.binding_limit, ring.gpu.window_bytes);
    let mut tasks = Vec::with_capacity(jobs.len());
    for job in jobs.iter_mut() {
        let (plan, source, target, _) = job.split();
        let (origin, destination) = (Origin::new(source)?, Destination::new(target)?);
        let windows = two_windows_only("wgpu", plan.coding())?.filter(|_| plan.layout().blocks() <= MOST_BLOCKS);
        let bound = match &destination {
            Destination::Memory(bytes) => Bound::new(&bytes.part(0..plan.target_len()), limit),
            Destination::Host(_) => None,
        };
        let kind = windows.map(|windows| ring.kernels.kind(windows.common_width(), plan.source_len()));
        tasks.push(Task { plan, windows, kind, bound, origin, destination, next_block: 0, units: 0 });
    }
    let totals = ring.gpu.checked(|| Ok(ring.gpu.buffer("enec totals", 4 * tasks.len() as u64, USAGE)))?;
    let mut encoder = Encoder { tasks, current: 0, begun: VecDeque::new(), limit, window_bytes };
    ring.run(&mut encoder, Some(&totals))?;

    let mut finisher = Finisher { transfers: Transfers::new(window_bytes), tasks: encoder.tasks };
    let outcomes =
        finisher.tasks.iter_mut().enumerate().map(|(index, task)| task.finish(index, &mut finisher.transfers));
    let outcomes: Vec<_> = outcomes.collect();
    ring.run(&mut finisher, None)?;
    jobs.iter_mut().zip(outcomes).for_each(|(job, outcome)| job.finish(outcome));
    Ok(())
}

/// One job.
struct Task<'a> {
    plan: &'a EncodePlan,
    /// Parameters, unless the plan is to store.
    windows: Option<TwoWindows>,
    kind: Option<Kind>,
    /// The whole target, if it can be bound where it lies, and the words before it.
    bound: Option<(Bound, u64)>,
    origin: Origin<'a>,
    destination: Destination<'a>,
    next_block: usize,
    /// Units of the segments so far, once they are known.
    units: u32,
}

/// A part whose status is to come.
struct Begun {
    task: usize,
    /// Where its sections lie in the output in the order of the stream, unless they are in their place already.
    sections: Option<[(u64, Range<usize>); 5]>,
    high: u64,
}

impl<'a> Task<'a> {
    fn layout(&self) -> &'a Layout {
        self.plan.layout()
    }

    fn limit(&self) -> u32 {
        count((self.plan.variable_limit() / SEGMENT_UNIT) as u64)
    }

    fn is_stopped(&self) -> bool {
        self.units > self.limit()
    }

    fn end_block(&self) -> usize {
        if self.windows.is_some() && !self.is_stopped() { self.layout().blocks() } else { 0 }
    }

    /// Adds the next blocks to a window.
    fn add(
        &mut self,
        index: usize,
        windows: TwoWindows,
        kind: Kind,
        window: &mut Window<'a>,
        limit: u64,
        window_bytes: usize,
    ) -> Begun {
        let layout = self.layout();
        let dtype = layout.dtype;
        let tile_bytes = dtype.tile_bytes();
        let block_bytes = BLOCK_TILES * tile_bytes;
        // Device memory that is read where it lies, too.
        let readable = match (&self.origin, &self.destination) {
            (Origin::Memory(source), Destination::Memory(target)) => {
                source.offset.is_multiple_of(KERNEL_ALIGNMENT) && source.buffer != target.buffer
            }
            (Origin::Memory(source), Destination::Host(_)) => source.offset.is_multiple_of(KERNEL_ALIGNMENT),
            (Origin::Host(_), _) => false,
        };
        let is_resident = self.bound.is_some() && readable;
        let most = if is_resident { RESIDENT_BYTES.max(window_bytes) } else { window_bytes };
        let most = most.min(usize::try_from(limit / 2).unwrap_or(usize::MAX));
        let room = (most.saturating_sub(window.load) / block_bytes).max(1);
        let blocks = self.next_block..self.end_block().min(self.next_block + room);
        self.next_block = blocks.end;
        let tiles = blocks.start * BLOCK_TILES..(blocks.end * BLOCK_TILES).min(layout.tiles);
        let elements = layout.decoded_range(tiles.clone());
        window.load += elements.len();

        let bound = match &self.origin {
            Origin::Memory(source) if readable => Bound::new(&source.part(elements.clone()), limit),
            _ => None,
        };
        let (source, source_start) = match bound {
            Some((bound, words)) => (bound, count(words)),
            None => (Bound::Slot(Space::Input), word(window.bring(&self.origin, elements))),
        };
        let part = |offset: usize, index: &Range<usize>, bytes: usize| {
            offset + index.start * bytes..offset + index.end * bytes
        };
        let sections = [
            part(layout.table.offset, &blocks, TABLE_ENTRY_BYTES),
            part(layout.mask.offset, &tiles, TILE_MASK_BYTES),
            part(layout.byte_plane.offset, &tiles, TILE_BYTE_PLANE_BYTES),
            part(layout.extra_plane.offset, &tiles, dtype.tile_extra_bytes()),
            part(layout.low_plane.offset, &tiles, usize::from(windows.common_width()) * ROW_BYTES),
        ];
        // `encode.wgsl` leaves room for the longest segment of each block.
        let longest = segment_len(tiles.len() * LANES, dtype.exponent_bits() - windows.common_width());
        let (target, places, high, in_output) = match &self.bound {
            Some((bound, words)) => {
                let place = |offset: usize| word(4 * words + offset as u64);
                let places = sections.each_ref().map(|section| place(section.start));
                (bound.clone(), places, place(layout.variable.offset), None)
            }
            None => {
                let output = sections.map(|section| (window.take(Space::Output, section.len()), section));
                let places = output.each_ref().map(|(at, _)| word(*at));
                let high = window.take(Space::Output, longest);
                (Bound::Slot(Space::Output), places, word(high), Some((output, high)))
            }
        };
        let result = count(window.status_words as u64);
        window.status_words += 2;
        let ends = window.take_scratch(blocks.len());
        let segments = window.take_scratch(longest / 4);
        let [first_low, first_high] = halves(self.plan.first_segment());
        let dispatch = window.dispatch(Kernel::Encode, dtype, kind, &source, &target);
        // In the order of `Part` in encode_part.wgsl.
        dispatch.parts.extend([dispatch.blocks, count(tiles.len() as u64), source_start]);
        dispatch.parts.extend(places);
        dispatch.parts.extend([
            high,
            u32::from(in_output.is_none()),
            result,
            ends,
            segments,
            count(index as u64),
            self.limit(),
            first_low,
            first_high,
            u32::from(windows.common_base()),
            u32::from(windows.common_width()),
        ]);
        dispatch.count += 1;
        dispatch.blocks += count(blocks.len() as u64);
        let (sections, high) = in_output.unzip();
        Begun { task: index, sections, high: high.unwrap_or_default() }
    }

    /// Takes the status of a part and adds the way of its sections.
    fn placed(&mut self, begun: Begun, start: u32, end: u32, results: &mut Vec<(Place, To)>) {
        self.units = self.units.max(end);
        if self.is_stopped() {
            return;
        }
        let Some(sections) = begun.sections else { return };
        let byte = |units: u32| usize::try_from(units).unwrap_or(usize::MAX) * SEGMENT_UNIT;
        let variable = self.layout().variable.offset;
        let segments = (begun.high, variable + byte(start)..variable + byte(end));
        for (at, range) in sections.into_iter().chain([segments]) {
            if !range.is_empty() {
                let place = Place::Slot(Space::Output, at, range.len());
                results.push((place, self.destination.to(begun.task, range)));
            }
        }
    }

    /// Adds what the kernels do not write: tail and padding, or the elements verbatim.
    fn finish(&mut self, index: usize, transfers: &mut Transfers<'a>) -> Result<EncodeOutcome> {
        if self.layout().blocks() > MOST_BLOCKS {
            return Err(Error::Argument(format!("a tensor of more than {MOST_BLOCKS} blocks; encode it in parts")));
        }
        let outcome = if self.windows.is_some() && !self.is_stopped() {
            EncodeOutcome::Coded { variable_len: usize::try_from(self.units).unwrap_or(usize::MAX) * SEGMENT_UNIT }
        } else {
            EncodeOutcome::Stored
        };
        let written = self.plan.written(outcome)?;
        let source_len = self.plan.source_len();
        let (tail, at) = match outcome {
            EncodeOutcome::Coded { .. } => (source_len - written.tail.len..source_len, written.tail.offset),
            EncodeOutcome::Stored => (0..source_len, HEADER_BYTES),
        };
        transfers.add(&self.origin, tail, index, &mut self.destination, at);
        for (_, section) in written.sections() {
            let padding = section.padding();
            transfers.add(&Origin::Host(&ZEROS), 0..padding.len(), index, &mut self.destination, padding.start);
        }
        Ok(outcome)
    }
}

/// All jobs of a batch.
struct Encoder<'a> {
    tasks: Vec<Task<'a>>,
    current: usize,
    /// The parts of each window under way.
    begun: VecDeque<Vec<Begun>>,
    limit: u64,
    window_bytes: usize,
}

impl<'a> Work<'a> for Encoder<'a> {
    fn next_window(&mut self) -> Option<Window<'a>> {
        let mut window = Window { scratch: 8 * WINDOW_PARTS as u64, ..Window::default() };
        let mut begun = Vec::new();
        while window.load < self.window_bytes
            && begun.len() < WINDOW_PARTS
            && let Some(task) = self.tasks.get_mut(self.current)
        {
            match (task.windows, task.kind) {
                (Some(windows), Some(kind)) if task.next_block < task.end_block() => {
                    begun.push(task.add(self.current, windows, kind, &mut window, self.limit, self.window_bytes));
                }
                _ => self.current += 1,
            }
        }
        if begun.is_empty() {
            return None;
        }
        self.begun.push_back(begun);
        Some(window)
    }

    fn results(&mut self, _: &Window<'a>, status: &[u32]) -> Result<Vec<(Place, To)>> {
        let mut results = Vec::new();
        let begun = self.begun.pop_front().unwrap_or_default();
        for (begun, ends) in begun.into_iter().zip(status.as_chunks::<2>().0) {
            self.tasks[begun.task].placed(begun, ends[0], ends[1], &mut results);
        }
        Ok(results)
    }

    fn receive(&mut self, job: usize, at: usize, bytes: &[u8]) {
        self.tasks[job].destination.receive(at, bytes);
    }
}

/// The last transfers of a batch.
struct Finisher<'a> {
    tasks: Vec<Task<'a>>,
    transfers: Transfers<'a>,
}

impl<'a> Work<'a> for Finisher<'a> {
    fn next_window(&mut self) -> Option<Window<'a>> {
        let mut window = Window::default();
        self.transfers.fill(&mut window);
        (!window.is_empty()).then_some(window)
    }

    fn receive(&mut self, job: usize, at: usize, bytes: &[u8]) {
        self.tasks[job].destination.receive(at, bytes);
    }
}
