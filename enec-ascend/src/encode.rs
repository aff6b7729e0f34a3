//! Encoding a batch: analysis of all jobs in one launch, block tables on the host, all sections in another launch.

use std::ops::Range;

use enec_core::{Result, Source, TargetMut};
use enec_format::geometry::{ALIGNMENT, HEADER_BYTES};
use enec_format::{EncodeOutcome, EncodePlan, TwoWindows};

use crate::abi::{self, ADDRESS_ALIGNMENT, EncodeRecord, SUMMARY_BYTES, Sections};
use crate::acl::memory::Span;
use crate::place::{Place, Room, usable_source, usable_target};
use crate::queue::Batch;
use crate::table::table;

/// A job as it is run. Pieces are not reported: core hashes what the device wrote.
pub(crate) struct Job<'j, 'a> {
    pub(crate) plan: &'j EncodePlan,
    pub(crate) source: &'j Source<'a>,
    pub(crate) target: TargetMut<'j>,
}

/// What the kernels have to do for one job.
struct Work<'j> {
    /// Index among the jobs.
    job: usize,
    plan: &'j EncodePlan,
    windows: TwoWindows,
    source: Place<'j>,
    stream: Place<'j>,
    summaries: Range<usize>,
    /// Of the variable section: what it may have, then what it has.
    variable_len: usize,
}

/// Runs all jobs and gives each its outcome.
///
/// # Errors
///
/// The device's.
pub(crate) fn run(batch: &mut Batch<'_>, jobs: &mut [Job<'_, '_>]) -> Result<Vec<EncodeOutcome>> {
    let mut room = Room::default();
    let mut works = prepare(jobs, &mut room)?;
    let records = room.take(works.len() * abi::JOB_BYTES);
    let memory = batch.scratch(room.len())?;
    let scratch = memory.span(0..room.len());
    let mut outcomes = vec![EncodeOutcome::Stored; jobs.len()];
    if !works.is_empty() {
        let records = scratch.slice(records);
        for work in &works {
            if let Place::Scratch(range) = &work.source {
                batch.fetch(jobs[work.job].source, 0..range.len(), scratch.slice(range.clone()))?;
            }
        }
        launch(batch, &works, scratch, records, &batch.kernels.analyse)?;
        works = choose(batch, works, scratch, &mut outcomes)?;
        launch(batch, &works, scratch, records, &batch.kernels.encode)?;
    }
    for work in &works {
        if let Place::Scratch(range) = &work.stream {
            let layout = work.plan.written(outcomes[work.job])?;
            let written = HEADER_BYTES..layout.variable.padding().end;
            let stream = scratch.slice(range.clone());
            batch.deliver(stream.slice(written.clone()), &mut jobs[work.job].target, written.start)?;
        }
    }
    for (Job { plan, source, target }, outcome) in jobs.iter_mut().zip(&outcomes) {
        let layout = plan.written(*outcome)?;
        let tail = layout.decoded_range(0..layout.tiles).end..layout.decoded_len();
        batch.pass(source, tail, target, layout.tail.offset)?;
        batch.pad(target, layout.tail.padding())?;
    }
    Ok(outcomes)
}

/// The jobs with something for the kernels, and where everything lies.
fn prepare<'j>(jobs: &[Job<'j, '_>], room: &mut Room) -> Result<Vec<Work<'j>>> {
    let mut works = Vec::new();
    for (index, job) in jobs.iter().enumerate() {
        let plan = job.plan;
        let layout = plan.layout();
        let Some(windows) = abi::windows(layout)? else { continue };
        works.push(Work {
            job: index,
            plan,
            windows,
            source: Place::of(usable_source(job.source, ADDRESS_ALIGNMENT)?, || {
                room.take(layout.decoded_range(0..layout.tiles).len())
            }),
            stream: Place::of(usable_target(&job.target, ALIGNMENT)?, || room.take(plan.target_len())),
            summaries: room.take(layout.blocks() * SUMMARY_BYTES),
            variable_len: plan.variable_limit(),
        });
    }
    Ok(works)
}

/// Launches a kernel over all works and waits for it.
fn launch(
    batch: &mut Batch<'_>,
    works: &[Work<'_>],
    scratch: Span<'_>,
    records: Span<'_>,
    kernel: &crate::acl::binary::Kernel,
) -> Result<()> {
    if works.is_empty() {
        return Ok(());
    }
    let (mut bytes, mut items) = (Vec::with_capacity(works.len() * abi::JOB_BYTES), 0);
    for work in works {
        let record = EncodeRecord {
            first_item: items,
            first_segment: work.plan.first_segment(),
            windows: work.windows,
            sections: Sections { layout: work.plan.layout(), stream: work.stream.span(scratch) },
            variable_len: work.variable_len,
            source: work.source.span(scratch),
            summary: scratch.slice(work.summaries.clone()),
        };
        bytes.extend(record.to_bytes());
        items += work.plan.layout().blocks() as u64;
    }
    let records = records.slice(0..bytes.len());
    batch.done(batch.entered.upload(&bytes, records))?;
    // SAFETY: each record's places have the planned sizes: the batch has checked those of the job, `prepare` has taken the others. The
    // variable section of a stream has room for its limit behind its offset, and `choose` only lowers it. All live until `timed` has
    // waited.
    batch.timed(|batch| unsafe { batch.launch(kernel, records, items) })
}

/// Makes the tables of the jobs whose coding is worth it, and returns these.
fn choose<'j>(
    batch: &mut Batch<'_>,
    works: Vec<Work<'j>>,
    scratch: Span<'_>,
    outcomes: &mut [EncodeOutcome],
) -> Result<Vec<Work<'j>>> {
    let mut coded = Vec::with_capacity(works.len());
    for mut work in works {
        let mut summaries = vec![0; work.summaries.len()];
        batch.done(batch.entered.download(scratch.slice(work.summaries.clone()), &mut summaries))?;
        let (outcome, table) = table(work.plan, work.windows, &summaries).map_err(|broken| batch.broken(broken))?;
        outcomes[work.job] = outcome;
        if let EncodeOutcome::Coded { variable_len } = outcome {
            work.variable_len = variable_len;
            let layout = work.plan.written(outcome)?;
            let stream = work.stream.span(scratch);
            batch.done(batch.entered.upload(&table, stream.slice(layout.table.offset..layout.table.padding().end)))?;
            for section in [layout.mask, layout.byte_plane, layout.extra_plane, layout.low_plane, layout.variable] {
                batch.done(batch.entered.queue_clear(stream.slice(section.padding()), batch.stream))?;
            }
            coded.push(work);
        }
    }
    Ok(coded)
}
