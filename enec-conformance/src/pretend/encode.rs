//! Encoding with faults.

use enec_core::{CheckedEncodeJob, Error, Result, Source, TargetMut};
use enec_format::geometry::{HEADER_BYTES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use enec_format::{
    BlockEntry, Coding, EncodeOutcome, EncodePlan, Layout, padded_lanes, reference, segment_len, wide_lanes,
};

use super::cascade;
use super::pieces::{Pieces, report};
use super::{Fault, Pretend};

impl Pretend {
    pub(super) fn encode_job(&self, job: &mut CheckedEncodeJob<'_, '_>) -> Result<EncodeOutcome> {
        let (plan, source, target, pieces) = job.split();
        let elements = self.read(source)?;
        let mut bytes = vec![0; plan.target_len()];
        let mut outcome = reference::encode(plan, &elements, &mut bytes)?;
        let from_device = matches!(source, Source::Device(_));
        self.damage(plan, &elements, &mut bytes, &mut outcome)?;
        let layout = plan.written(outcome)?;
        if self.has(Fault::DeviceEncodeEmpty) && from_device {
            bytes[HEADER_BYTES..layout.stream_len].fill(0);
        }
        if let (Some(pieces), false, TargetMut::Host(_)) = (pieces, from_device, &target) {
            if self.has(Fault::ReportingChangesBytes) {
                bytes[HEADER_BYTES] ^= 1;
            }
            // Of a stream that ends as stored, the payload would be that of blocks that are gone.
            let payload = (outcome != EncodeOutcome::Stored).then_some(&bytes[..]);
            let job =
                Pieces { layout: &layout, first_segment: plan.first_segment(), blocks: 0..layout.blocks(), payload };
            if plan.coding() != Coding::Stored || self.has(Fault::StoredPiecesReported) {
                report(self.fault, &job, &elements, pieces);
            }
        }
        let start = match self.fault {
            Some(Fault::HeaderTouched) => 0,
            Some(Fault::CascadeSymbolsTouched) => HEADER_BYTES,
            _ => layout.front_len(),
        };
        self.write(target, start, &bytes[start..layout.stream_len], plan.target_len())?;
        match (self.fault, outcome) {
            (Some(Fault::OutcomeLengthWrong), EncodeOutcome::Coded { variable_len }) => {
                let table = &bytes[layout.table.range()];
                let start = BlockEntry::start(table, layout.blocks() - 1).saturating_sub(plan.first_segment());
                let start = usize::try_from(start).map_err(|_| Error::Argument("a segment beyond memory".into()))?;
                Ok(EncodeOutcome::Coded { variable_len: variable_len - start * SEGMENT_UNIT })
            }
            _ => Ok(outcome),
        }
    }

    fn damage(&self, plan: &EncodePlan, elements: &[u8], bytes: &mut [u8], outcome: &mut EncodeOutcome) -> Result<()> {
        let store = |bytes: &mut [u8]| {
            bytes.fill(0);
            bytes[HEADER_BYTES..HEADER_BYTES + elements.len()].copy_from_slice(elements);
        };
        match (self.fault, *outcome, plan.coding()) {
            (Some(Fault::StoredTooEarly), EncodeOutcome::Coded { variable_len }, Coding::TwoWindows(_))
                if variable_len + 64 > plan.variable_limit() =>
            {
                store(bytes);
                *outcome = EncodeOutcome::Stored;
            }
            (Some(Fault::StoredTooLate), EncodeOutcome::Stored, coding @ Coding::TwoWindows(_))
            | (Some(Fault::CascadeStoredTooLate), EncodeOutcome::Stored, coding @ Coding::Cascade(_)) => {
                let forced = EncodePlan::window(plan.dtype(), coding, plan.layout().elements, plan.first_segment())?;
                let mut coded = vec![0; forced.target_len()];
                let coded_outcome = reference::encode(&forced, elements, &mut coded)?;
                let len = forced.written(coded_outcome)?.stream_len;
                if len <= bytes.len() {
                    bytes[..len].copy_from_slice(&coded[..len]);
                    *outcome = coded_outcome;
                }
            }
            _ => {}
        }
        let layout = plan.written(*outcome)?;
        match self.fault {
            Some(Fault::SectionPaddingLeft) => {
                for (_, section) in
                    layout.sections().into_iter().filter(|(_, section)| section.offset != layout.tail.offset)
                {
                    bytes[section.padding()].fill(0xCD);
                }
            }
            Some(Fault::StoredPaddingLeft) if *outcome == EncodeOutcome::Stored => {
                bytes[layout.tail.padding()].fill(0xCD);
            }
            Some(Fault::EncodedTailOmitted) => bytes[layout.tail.range()].fill(0),
            Some(Fault::MaskBitFlipped) if layout.mask.len > 0 => bytes[layout.mask.range().end - 1] ^= 0x80,
            Some(Fault::EncodedRankWrong) => exchange_wide_lanes(&layout, plan.first_segment(), bytes),
            Some(Fault::RowPaddingLeft) => each_segment(&layout, plan.first_segment(), bytes, |lanes, row| {
                row[2 * lanes..].fill(0xCD);
            }),
            Some(Fault::CascadeEntryBytesUsed) if layout.coding.cascade().is_some() => {
                each_entry(&layout, bytes, |entry| entry.wide_width = 2);
            }
            Some(Fault::CascadeEncodedOrderWrong) => {
                cascade::each_segment(&layout, plan.first_segment(), bytes, |levels, segment| {
                    if levels.codes(1) > levels.raw_count() && !segment.is_empty() {
                        segment[0] = segment[0] & 0xF0 | segment[0] << 2 & 0x0C | segment[0] >> 2 & 0x03;
                    }
                });
            }
            Some(Fault::CascadePaddingLeft) => {
                cascade::each_segment(&layout, plan.first_segment(), bytes, |levels, segment| {
                    segment[levels.raw().end..].fill(0xCD);
                });
            }
            Some(Fault::FirstSegmentIgnored) => {
                each_entry(&layout, bytes, |entry| entry.end -= plan.first_segment());
            }
            Some(Fault::EntryEndCutTo32Bits) => {
                each_entry(&layout, bytes, |entry| entry.end &= u64::from(u32::MAX));
            }
            Some(Fault::ThreadsChangeBytes) if self.threads > 1 && layout.blocks() > 1 => {
                bytes[layout.byte_plane.range().end - 1] ^= 1;
            }
            _ => {}
        }
        Ok(())
    }
}

fn each_entry(layout: &Layout, bytes: &mut [u8], change: impl Fn(&mut BlockEntry)) {
    let table = &mut bytes[layout.table.range()];
    for index in 0..layout.blocks() {
        let mut entry = BlockEntry::read(table, index);
        change(&mut entry);
        table[index * TABLE_ENTRY_BYTES..][..TABLE_ENTRY_BYTES].copy_from_slice(&entry.to_bytes());
    }
}

/// Calls `change` with every row of every high segment.
fn each_segment(layout: &Layout, first_segment: u64, bytes: &mut [u8], change: impl Fn(usize, &mut [u8])) {
    let Coding::TwoWindows(windows) = layout.coding else { return };
    for index in 0..layout.blocks() {
        let lanes = wide_lanes(&bytes[layout.block(index).mask]);
        let table = &bytes[layout.table.range()];
        let (entry, start) =
            (BlockEntry::read(table, index), BlockEntry::start(table, index).saturating_sub(first_segment));
        let high_width = entry.wide_width.saturating_sub(windows.common_width()).min(8);
        let start = usize::try_from(start).unwrap_or(usize::MAX).saturating_mul(SEGMENT_UNIT);
        let segment =
            bytes[layout.variable.range()].get_mut(start..start.saturating_add(segment_len(lanes, high_width)));
        if let (Some(segment), true) = (segment, lanes > 0) {
            segment.chunks_exact_mut(2 * padded_lanes(lanes)).for_each(|row| change(lanes, row));
        }
    }
}

/// Exchanges the first two wide lanes of every segment.
pub(super) fn exchange_wide_lanes(layout: &Layout, first_segment: u64, bytes: &mut [u8]) {
    each_segment(layout, first_segment, bytes, |lanes, row| {
        if lanes > 1 {
            row[..4].rotate_left(2);
        }
    });
}
