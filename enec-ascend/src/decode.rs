//! Decoding a batch: all jobs in one launch.

use std::ops::Range;

use enec_core::{Result, Source, TargetMut};
use enec_format::geometry::{ALIGNMENT, BLOCK_TILES, HEADER_BYTES};
use enec_format::{DecodePlan, TwoWindows};

use crate::abi::{self, ADDRESS_ALIGNMENT, DecodeRecord, Sections};
use crate::acl::memory::Span;
use crate::place::{Place, Room, usable_source, usable_target};
use crate::queue::Batch;

/// A job as it is run. Pieces are not reported: core hashes what the device wrote.
pub(crate) struct Job<'j, 'a> {
    pub(crate) plan: &'j DecodePlan,
    pub(crate) source: &'j Source<'a>,
    pub(crate) target: TargetMut<'j>,
}

/// What the kernel has to do for one job.
struct Work<'j> {
    /// Index among the jobs.
    job: usize,
    plan: &'j DecodePlan,
    windows: TwoWindows,
    stream: Place<'j>,
    target: Place<'j>,
}

/// Runs all jobs.
///
/// # Errors
///
/// The device's.
pub(crate) fn run(batch: &mut Batch<'_>, jobs: &mut [Job<'_, '_>]) -> Result<()> {
    let mut room = Room::default();
    let works = prepare(jobs, &mut room)?;
    let records = room.take(works.len() * abi::JOB_BYTES);
    let memory = batch.scratch(room.len())?;
    let scratch = memory.span(0..room.len());
    if !works.is_empty() {
        for work in &works {
            if let Place::Scratch(range) = &work.stream {
                for part in needed(work.plan) {
                    let stream = scratch.slice(range.clone());
                    batch.fetch(jobs[work.job].source, part.clone(), stream.slice(part))?;
                }
            }
        }
        launch(batch, &works, scratch, scratch.slice(records))?;
    }
    for work in &works {
        if let Place::Scratch(range) = &work.target {
            batch.deliver(scratch.slice(range.clone()), &mut jobs[work.job].target, 0)?;
        }
    }
    for Job { plan, source, target } in jobs.iter_mut() {
        let behind = plan.tiles().len() * plan.layout().dtype.tile_bytes();
        batch.pass(source, plan.tail(), target, behind)?;
    }
    Ok(())
}

/// The jobs with something for the kernel, and where everything lies.
fn prepare<'j>(jobs: &[Job<'j, '_>], room: &mut Room) -> Result<Vec<Work<'j>>> {
    let mut works = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let plan = job.plan;
        let Some(windows) = abi::windows(plan.layout())?.filter(|_| !plan.tiles().is_empty()) else { continue };
        works.push(Work {
            job: index,
            plan,
            windows,
            stream: Place::of(usable_source(job.source, ALIGNMENT)?, || room.take(plan.source_len())),
            target: Place::of(usable_target(&job.target, ADDRESS_ALIGNMENT)?, || {
                room.take(plan.layout().decoded_range(plan.tiles()).len())
            }),
        });
    }
    Ok(works)
}

/// Blocks that a plan's tiles lie in.
fn blocks(plan: &DecodePlan) -> Range<usize> {
    plan.tiles().start / BLOCK_TILES..plan.tiles().end.div_ceil(BLOCK_TILES)
}

/// The parts of a stream that the kernel reads for a plan: all of it, or of each section what the blocks of the range have. Of the variable
/// section always all: where a segment lies, only the table says.
fn needed(plan: &DecodePlan) -> Vec<Range<usize>> {
    let layout = plan.layout();
    let variable = layout.variable.range();
    if plan.tiles() == (0..layout.tiles) {
        return std::iter::once(HEADER_BYTES..variable.end).collect();
    }
    let blocks = blocks(plan);
    let (first, last) = (layout.block(blocks.start), layout.block(blocks.end - 1));
    // The entry before the first block's says where its segment starts.
    let entry = layout.block(blocks.start.saturating_sub(1)).entry;
    vec![
        entry.start..last.entry.end,
        first.mask.start..last.mask.end,
        first.byte_plane.start..last.byte_plane.end,
        first.extra_plane.start..last.extra_plane.end,
        first.low_plane.start..last.low_plane.end,
        variable,
    ]
}

/// Launches the kernel over all works and waits for it.
fn launch(batch: &mut Batch<'_>, works: &[Work<'_>], scratch: Span<'_>, records: Span<'_>) -> Result<()> {
    let (mut bytes, mut items) = (Vec::with_capacity(records.len()), 0);
    for work in works {
        let record = DecodeRecord {
            first_item: items,
            windows: work.windows,
            sections: Sections { layout: work.plan.layout(), stream: work.stream.span(scratch) },
            tiles: work.plan.tiles(),
            target: work.target.span(scratch),
        };
        bytes.extend(record.to_bytes());
        items += blocks(work.plan).len() as u64;
    }
    batch.done(batch.entered.upload(&bytes, records))?;
    // SAFETY: each record's places have the planned sizes: the batch has checked those of the job, `prepare` has taken the others. All live
    // until `timed` has waited.
    batch.timed(|batch| unsafe { batch.launch(&batch.kernels.decode, records, items) })
}

#[cfg(test)]
mod tests {
    use enec_format::geometry::TILE_ELEMENTS;
    use enec_format::{Coding, Dtype, Layout};

    use super::*;

    #[test]
    fn a_range_needs_its_blocks_and_the_entry_before() {
        let windows = TwoWindows::new(Dtype::F16, 15, 2).unwrap();
        let layout = Layout::new(Dtype::F16, Coding::TwoWindows(windows), 40 * TILE_ELEMENTS as u64, 640).unwrap();
        let plan = DecodePlan::of_layout(layout.clone());
        assert_eq!(needed(&plan), std::slice::from_ref(&(HEADER_BYTES..layout.variable.range().end)));
        let plan = plan.with_tiles(17..25, false).unwrap();
        assert_eq!(blocks(&plan), 2..4);
        let parts = needed(&plan);
        assert_eq!(parts[0], layout.table.offset + 8..layout.table.offset + 32);
        assert_eq!(parts[1], layout.mask.offset + 16 * 16..layout.mask.offset + 32 * 16);
        assert_eq!(parts[3], layout.extra_plane.offset + 16 * 768..layout.extra_plane.offset + 32 * 768);
        assert_eq!(parts[5], layout.variable.range());
    }
}
