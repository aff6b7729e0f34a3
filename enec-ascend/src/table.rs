//! Between analysis and encoding: the block table, and whether the coding is worth it.

use enec_format::geometry::{LANES, SEGMENT_UNIT, TABLE_ENTRY_BYTES};
use enec_format::{BlockEntry, EncodeOutcome, EncodePlan, TwoWindows, segment_len};

use crate::abi::{BlockSummary, SUMMARY_BYTES};

/// The block table with its padding, and what the stored rule says.
///
/// # Errors
///
/// A sentence if the summaries are not of this plan: the kernel is broken.
pub(crate) fn table(
    plan: &EncodePlan,
    windows: TwoWindows,
    summaries: &[u8],
) -> Result<(EncodeOutcome, Vec<u8>), String> {
    let layout = plan.layout();
    let mut table = Vec::with_capacity(layout.table.padding().end - layout.table.offset);
    let mut variable_len = 0;
    for (block, bytes) in summaries.chunks_exact(SUMMARY_BYTES).enumerate() {
        let lanes = layout.block(block).tiles.len() * LANES;
        let summary = BlockSummary::from_bytes(bytes).filter(|summary| {
            let widths = windows.common_width()..=layout.dtype.exponent_bits();
            summary.wide_lanes <= lanes
                && widths.contains(&summary.wide_width)
                && summary.wide_base <= layout.dtype.exponent_mask()
        });
        let Some(BlockSummary { wide_base, wide_width, wide_lanes }) = summary else {
            return Err(format!("the analysis of block {block} cannot be: {:02x?}", &bytes[..12]));
        };
        variable_len += segment_len(wide_lanes, wide_width - windows.common_width());
        if variable_len > plan.variable_limit() {
            return Ok((EncodeOutcome::Stored, Vec::new()));
        }
        let end = plan.first_segment() + (variable_len / SEGMENT_UNIT) as u64;
        table.extend(BlockEntry { wide_base, wide_width, end }.to_bytes());
    }
    if table.len() != layout.blocks() * TABLE_ENTRY_BYTES {
        return Err(format!("{} summaries for {} blocks", summaries.len() / SUMMARY_BYTES, layout.blocks()));
    }
    table.resize(layout.table.padding().end - layout.table.offset, 0);
    Ok((EncodeOutcome::Coded { variable_len }, table))
}

#[cfg(test)]
mod tests {
    use enec_format::Dtype;
    use enec_format::geometry::BLOCK_ELEMENTS;

    use super::*;

    fn windows() -> TwoWindows {
        TwoWindows::new(Dtype::Bf16, 127, 3).unwrap()
    }

    fn summary(base: u8, width: u8, lanes: u32) -> Vec<u8> {
        let words = [base.into(), width.into(), lanes, 0, 0, 0, 0, 0];
        words.into_iter().flat_map(u32::to_le_bytes).collect()
    }

    #[test]
    fn ends_add_up_from_the_first_segment() {
        let plan = EncodePlan::window(Dtype::Bf16, windows(), 3 * BLOCK_ELEMENTS, 1 << 33).unwrap();
        let summaries = [summary(130, 5, 17), summary(0, 3, 0), summary(131, 4, 1)].concat();
        let (outcome, table) = table(&plan, windows(), &summaries).unwrap();
        assert_eq!(outcome, EncodeOutcome::Coded { variable_len: 160 });
        assert_eq!(table.len(), 64);
        let entries: Vec<_> = (0..3).map(|index| BlockEntry::read(&table, index)).collect();
        assert_eq!(entries[0], BlockEntry { wide_base: 130, wide_width: 5, end: (1 << 33) + 4 });
        assert_eq!(entries[1], BlockEntry { wide_base: 0, wide_width: 3, end: (1 << 33) + 4 });
        assert_eq!(entries[2], BlockEntry { wide_base: 131, wide_width: 4, end: (1 << 33) + 5 });
        assert!(table[24..].iter().all(|&byte| byte == 0));
    }

    #[test]
    fn what_would_not_gain_is_stored() {
        let plan = EncodePlan::new(Dtype::Bf16, enec_format::Coding::TwoWindows(windows()), BLOCK_ELEMENTS).unwrap();
        let (outcome, _) = table(&plan, windows(), &summary(255, 8, 1024)).unwrap();
        assert_eq!(outcome, EncodeOutcome::Stored);
    }

    #[test]
    fn summaries_that_cannot_be_are_an_error() {
        let plan = EncodePlan::window(Dtype::F16, windows_f16(), BLOCK_ELEMENTS, 0).unwrap();
        for bytes in [summary(0, 2, 0), summary(0, 6, 1), summary(32, 5, 1), summary(31, 5, 1025), vec![]] {
            assert!(table(&plan, windows_f16(), &bytes).is_err(), "{bytes:?}");
        }
    }

    fn windows_f16() -> TwoWindows {
        TwoWindows::new(Dtype::F16, 15, 3).unwrap()
    }
}
