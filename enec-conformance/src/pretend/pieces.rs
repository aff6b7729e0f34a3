//! Reporting pieces, with faults.

use std::ops::Range;

use enec_core::PieceSink;
use enec_format::geometry::BLOCK_ELEMENTS;
use enec_format::{BlockEntry, Layout, segment};

use super::Fault;

/// What a job has to report.
pub(super) struct Pieces<'a> {
    pub(super) layout: &'a Layout,
    pub(super) first_segment: u64,
    pub(super) blocks: Range<usize>,
    /// The stream, unless its blocks are not in it.
    pub(super) payload: Option<&'a [u8]>,
}

/// Reports the blocks of a job; `elements` are those from the first block to the end of the job.
pub(super) fn report(fault: Option<Fault>, job: &Pieces<'_>, elements: &[u8], sink: &dyn PieceSink) {
    let layout = job.layout;
    let block_bytes = BLOCK_ELEMENTS * layout.dtype.element_bytes();
    let shifted = |block: usize, by: Fault| if fault == Some(by) { block.saturating_sub(1) } else { block };
    let times = if fault == Some(Fault::PiecesReportedTwice) { 2 } else { 1 };
    if fault == Some(Fault::StoredPiecesReported) && layout.blocks() == 0 {
        sink.content(0, elements);
    }
    for block in job.blocks.clone() {
        let start = (block - job.blocks.start) * block_bytes;
        let mut end = if block + 1 == layout.blocks() { elements.len() } else { start + block_bytes };
        if fault == Some(Fault::ContentWithoutTail) && block + 1 == layout.blocks() {
            end -= layout.tail.len;
        }
        let Some(content) = elements.get(start..end.min(elements.len())) else { return };
        let payload = job.payload.map(|stream| payload(job, stream, block));
        for _ in 0..times {
            sink.content(shifted(block, Fault::ContentOfWrongBlock), content);
            if let Some(mut parts) = payload {
                if fault == Some(Fault::PayloadWithoutSegment) {
                    parts[5] = &[];
                }
                sink.payload(shifted(block, Fault::PayloadOfWrongBlock), &parts);
            }
        }
    }
}

fn payload<'a>(job: &Pieces<'_>, stream: &'a [u8], block: usize) -> [&'a [u8]; 6] {
    let (layout, ranges) = (job.layout, job.layout.block(block));
    let table = &stream[layout.table.range()];
    let first = job.first_segment;
    let start = if block == 0 { first } else { BlockEntry::start(table, block) };
    let end = BlockEntry::read(table, block).end;
    let segment = segment(&stream[layout.variable.range()], start.saturating_sub(first), end.saturating_sub(first));
    let part = |range: Range<usize>| &stream[range];
    [
        part(ranges.entry),
        part(ranges.mask),
        part(ranges.byte_plane),
        part(ranges.extra_plane),
        part(ranges.low_plane),
        segment,
    ]
}
