//! Decoding: a batch's jobs, cut into windows of whole blocks.

use std::ops::Range;

use enec_core::{CheckedDecodeJob, PieceSink, Result, two_windows_only};
use enec_format::geometry::{
    BLOCK_TILES, ROW_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES, TILE_BYTE_PLANE_BYTES, TILE_MASK_BYTES,
};
use enec_format::{BlockEntry, DecodePlan, Layout, TwoWindows};

use crate::wgpu::memory::Bytes;
use crate::wgpu::pipelines::{Kernel, Kind};
use crate::wgpu::ring::{Ring, Work};
use crate::wgpu::transfer::{Destination, Transfers};
use crate::wgpu::window::{Bound, KERNEL_ALIGNMENT, Origin, Place, Space, Window, count, word};

/// Jobs that bind device memory of their own need a dispatch each; so many make a window.
const WINDOW_DISPATCHES: usize = 256;
/// Bytes of the longest segment of a block.
const LONGEST_SEGMENT: usize = BLOCK_TILES * TILE_BYTE_PLANE_BYTES;

/// Runs the jobs.
///
/// # Errors
///
/// The device's, and if device memory is not this backend's.
pub(crate) fn run(ring: &mut Ring, jobs: &mut [CheckedDecodeJob<'_, '_>]) -> Result<()> {
    let (limit, window_bytes) = (ring.gpu.binding_limit, ring.gpu.window_bytes);
    let mut transfers = Transfers::new(ring.gpu.window_bytes);
    let mut tasks = Vec::with_capacity(jobs.len());
    for (index, job) in jobs.iter_mut().enumerate() {
        let (plan, source, target, pieces) = job.split();
        let (origin, mut destination) = (Origin::new(source)?, Destination::new(target)?);
        let tail_at = plan.target_len() - plan.tail().len();
        transfers.add(&origin, plan.tail(), index, &mut destination, tail_at);
        let windows = two_windows_only("wgpu", plan.layout().coding)?.filter(|_| !plan.tiles().is_empty());
        let tiles = plan.tiles();
        tasks.push(Task {
            plan,
            windows,
            kind: windows.map(|windows| ring.kernels.kind(windows.common_width(), plan.target_len())),
            bound: match &origin {
                Origin::Memory(bytes) => Bound::new(bytes, limit),
                Origin::Host(_) => None,
            },
            origin,
            destination,
            pieces,
            table: Vec::new(),
            next_block: tiles.start / BLOCK_TILES,
        });
    }
    read_tables(ring, &mut tasks)?;
    ring.run(&mut Decoder { tasks, current: 0, transfers, limit, window_bytes }, None)?;
    jobs.iter_mut().for_each(|job| job.finish(Ok(())));
    Ok(())
}

/// Reads the block tables of streams in device memory that cannot be bound whole: where their segments lie decides what is gathered.
fn read_tables<'a>(ring: &mut Ring, tasks: &mut [Task<'a>]) -> Result<()> {
    struct Tables<'a, 't> {
        transfers: Transfers<'a>,
        tables: Vec<Destination<'t>>,
    }
    impl<'a> Work<'a> for Tables<'a, '_> {
        fn next_window(&mut self) -> Option<Window<'a>> {
            let mut window = Window::default();
            self.transfers.fill(&mut window);
            (!window.is_empty()).then_some(window)
        }

        fn receive(&mut self, job: usize, at: usize, bytes: &[u8]) {
            self.tables[job].receive(at, bytes);
        }
    }

    let mut transfers = Transfers::new(ring.gpu.window_bytes);
    let mut tables = Vec::new();
    for task in tasks.iter_mut().filter(|task| task.windows.is_some() && task.bound.is_none()) {
        let range = task.plan.layout().table.range();
        task.table = vec![0; range.len()];
        let (job, mut table) = (tables.len(), Destination::Host(&mut task.table));
        transfers.add(&task.origin, range, job, &mut table, 0);
        tables.push(table);
    }
    ring.run(&mut Tables { transfers, tables }, None)
}

/// One job.
struct Task<'a> {
    plan: &'a DecodePlan,
    /// Parameters, if there are tiles to decode.
    windows: Option<TwoWindows>,
    kind: Option<Kind>,
    origin: Origin<'a>,
    /// The whole stream, if it can be bound where it lies, and the words before it.
    bound: Option<(Bound, u64)>,
    destination: Destination<'a>,
    pieces: Option<&'a dyn PieceSink>,
    /// The block table, unless the stream is bound.
    table: Vec<u8>,
    next_block: usize,
}

/// Where the sections of a part begin in what is bound, in words, and the units of its segments.
struct Sections {
    source: Bound,
    table: u32,
    has_entry_before: bool,
    mask: u32,
    byte_plane: u32,
    extra_plane: u32,
    low_plane: u32,
    high: u32,
    high_units: u32,
    high_origin: u64,
}

impl<'a> Task<'a> {
    fn layout(&self) -> &'a Layout {
        self.plan.layout()
    }

    fn end_block(&self) -> usize {
        if self.windows.is_some() { self.plan.tiles().end.div_ceil(BLOCK_TILES) } else { 0 }
    }

    /// The device memory that is written where it lies: not if kernels cannot, nor if it belongs to the buffer that is read.
    fn bound_target(&self) -> Option<&Bytes> {
        let Destination::Memory(target) = &self.destination else { return None };
        let is_source = match &self.origin {
            Origin::Memory(source) => source.buffer == target.buffer && self.bound.is_some(),
            Origin::Host(_) => false,
        };
        (target.offset.is_multiple_of(KERNEL_ALIGNMENT) && !is_source).then_some(target)
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
    ) {
        let layout = self.layout();
        let tile_bytes = layout.dtype.tile_bytes();
        let block_bytes = BLOCK_TILES * tile_bytes;
        let is_resident = self.bound.is_some() && self.bound_target().is_some();
        let room = if is_resident {
            // What a binding holds behind its alignment.
            usize::try_from(limit).unwrap_or(usize::MAX).saturating_sub(256)
        } else {
            window_bytes.saturating_sub(window.load)
        };
        let blocks = self.next_block..self.end_block().min(self.next_block + (room / block_bytes).max(1));
        self.next_block = blocks.end;

        let plan_tiles = self.plan.tiles();
        let first = blocks.start * BLOCK_TILES;
        let tiles = first.max(plan_tiles.start)..(blocks.end * BLOCK_TILES).min(plan_tiles.end);
        let sections = self.sections(windows, blocks.clone(), tiles.clone(), window);
        let start = (tiles.start - plan_tiles.start) * tile_bytes;
        let decoded = start..start + tiles.len() * tile_bytes;
        let bound = self.bound_target().and_then(|target| Bound::new(&target.part(decoded.clone()), limit));
        let (target, target_start) = match bound {
            Some((bound, words)) => (bound, count(words)),
            None => {
                let at = window.take(Space::Output, decoded.len());
                let place = Place::Slot(Space::Output, at, decoded.len());
                window.results.push((place, self.destination.to(index, decoded.clone())));
                (Bound::Slot(Space::Output), word(at))
            }
        };
        if !is_resident {
            window.load += decoded.len();
        }
        let masked = (blocks.end * BLOCK_TILES).min(layout.tiles) - first;
        let [origin_low, origin_high] = halves(sections.high_origin);
        let dispatch = window.dispatch(Kernel::Decode, layout.dtype, kind, &sections.source, &target);
        // In the order of `Part` in decode.wgsl.
        dispatch.parts.extend([
            dispatch.blocks,
            count((tiles.start - first) as u64),
            count((tiles.end - first) as u64),
            count(masked as u64),
            sections.table,
            u32::from(sections.has_entry_before),
            sections.mask,
            sections.byte_plane,
            sections.extra_plane,
            sections.low_plane,
            sections.high,
            sections.high_units,
            origin_low,
            origin_high,
            target_start,
            u32::from(windows.common_base()),
            u32::from(windows.common_width()),
        ]);
        dispatch.count += 1;
        dispatch.blocks += count(blocks.len() as u64);
    }

    /// Finds the sections where the stream is bound, or gathers them into the window.
    fn sections(
        &self,
        windows: TwoWindows,
        blocks: Range<usize>,
        tiles: Range<usize>,
        window: &mut Window<'a>,
    ) -> Sections {
        let layout = self.layout();
        let before = usize::from(blocks.start > 0);
        let table = layout.table.offset;
        let table = table + (blocks.start - before) * TABLE_ENTRY_BYTES..table + blocks.end * TABLE_ENTRY_BYTES;
        let mask_tiles = blocks.start * BLOCK_TILES..(blocks.end * BLOCK_TILES).min(layout.tiles);
        let part = |offset: usize, tiles: &Range<usize>, bytes: usize| {
            offset + tiles.start * bytes..offset + tiles.end * bytes
        };
        let mask = part(layout.mask.offset, &mask_tiles, TILE_MASK_BYTES);
        let byte_plane = part(layout.byte_plane.offset, &tiles, TILE_BYTE_PLANE_BYTES);
        let extra_plane = part(layout.extra_plane.offset, &tiles, layout.dtype.tile_extra_bytes());
        let low_plane = part(layout.low_plane.offset, &tiles, usize::from(windows.common_width()) * ROW_BYTES);
        let variable = layout.variable;
        if let Some((bound, words)) = &self.bound {
            let place = |offset: usize| word(4 * words + offset as u64);
            return Sections {
                source: bound.clone(),
                table: place(table.start),
                has_entry_before: before == 1,
                mask: place(mask.start),
                byte_plane: place(byte_plane.start),
                extra_plane: place(extra_plane.start),
                low_plane: place(low_plane.start),
                high: place(variable.offset),
                high_units: count((variable.len / SEGMENT_UNIT) as u64),
                high_origin: 0,
            };
        }
        // A table that was rewritten after its validation may say anything: what is gathered stays within the section and within what the
        // blocks can have.
        let units = (variable.len / SEGMENT_UNIT) as u64;
        let longest = (blocks.len() * LONGEST_SEGMENT / SEGMENT_UNIT) as u64;
        let high_origin = BlockEntry::start(&self.table, blocks.start).min(units);
        let end = BlockEntry::read(&self.table, blocks.end - 1).end;
        let high_end = end.clamp(high_origin, units.min(high_origin + longest));
        let byte = |units: u64| variable.offset + usize::try_from(units).unwrap_or(usize::MAX) * SEGMENT_UNIT;
        let mut bring = |range: Range<usize>| word(window.bring(&self.origin, range));
        Sections {
            source: Bound::Slot(Space::Input),
            table: bring(table),
            has_entry_before: before == 1,
            mask: bring(mask),
            byte_plane: bring(byte_plane),
            extra_plane: bring(extra_plane),
            low_plane: bring(low_plane),
            high: bring(byte(high_origin)..byte(high_end)),
            high_units: count(high_end - high_origin),
            high_origin,
        }
    }

    /// Takes decoded bytes and reports the blocks that lie in them whole. The last block is left to core: its tail may come at another time.
    fn receive(&mut self, at: usize, bytes: &[u8]) {
        let (layout, tiles) = (self.layout(), self.plan.tiles());
        let tile_bytes = layout.dtype.tile_bytes();
        if at >= tiles.len() * tile_bytes {
            return self.destination.receive(at, bytes);
        }
        let first = tiles.start + at / tile_bytes;
        let mut tile = first;
        let end = first + bytes.len() / tile_bytes;
        while tile < end {
            let block = tile / BLOCK_TILES;
            let next = ((block + 1) * BLOCK_TILES).min(end);
            let part = &bytes[(tile - first) * tile_bytes..(next - first) * tile_bytes];
            self.destination.receive(at + (tile - first) * tile_bytes, part);
            if let Some(pieces) = self.pieces
                && next - tile == BLOCK_TILES
                && block + 1 < layout.blocks()
            {
                pieces.content(block, part);
            }
            tile = next;
        }
    }
}

/// The low and the high half of a number.
pub(crate) fn halves(number: u64) -> [u32; 2] {
    [count(number & u64::from(u32::MAX)), count(number >> 32)]
}

/// All jobs of a batch.
struct Decoder<'a> {
    tasks: Vec<Task<'a>>,
    current: usize,
    transfers: Transfers<'a>,
    limit: u64,
    window_bytes: usize,
}

impl<'a> Work<'a> for Decoder<'a> {
    fn next_window(&mut self) -> Option<Window<'a>> {
        let mut window = Window::default();
        while window.load < self.window_bytes && window.dispatches.len() < WINDOW_DISPATCHES {
            let Some(task) = self.tasks.get_mut(self.current) else {
                self.transfers.fill(&mut window);
                break;
            };
            match (task.windows, task.kind) {
                (Some(windows), Some(kind)) if task.next_block < task.end_block() => {
                    task.add(self.current, windows, kind, &mut window, self.limit, self.window_bytes);
                }
                _ => self.current += 1,
            }
        }
        (!window.is_empty()).then_some(window)
    }

    fn receive(&mut self, job: usize, at: usize, bytes: &[u8]) {
        self.tasks[job].receive(at, bytes);
    }
}
