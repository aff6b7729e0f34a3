//! One tensor of each size, and many small ones: whether the cost is linear in the bytes.

use crate::Result;
use crate::arguments::{Arguments, Data};
use crate::case::Case;
use crate::report;
use crate::throughput::Opened;

/// The smallest size; the next ones are four times as large each.
const SMALLEST: usize = 1_000_000;

/// Small tensors: how many, in cache and out of it, and the elements of each, 64 x 64.
const SMALL_TENSORS: [usize; 2] = [100, 10_000];
const SMALL_ELEMENTS: usize = 64 * 64;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let [Data::Synthetic(largest)] = arguments.data[..] else {
        return Err("`--sizes` wants `--data synthetic:SIZE`, the largest size".into());
    };
    let opened = Opened::all(arguments)?;
    let mut records = Vec::new();
    let sizes = std::iter::successors(Some(SMALLEST), |size| Some(4 * size)).take_while(|&size| size < largest);
    for &dtype in &arguments.dtype {
        // One after the other: the largest may need most of the memory.
        for bytes in sizes.clone().chain([largest]) {
            let case = Case::repeated(dtype, vec![bytes / dtype.element_bytes() * dtype.element_bytes()]);
            for opened in &opened {
                for &choice in &arguments.codec {
                    records.extend(opened.measure(&case, choice, arguments.repetitions)?);
                }
            }
        }
        for count in SMALL_TENSORS {
            let case = Case::repeated(dtype, vec![SMALL_ELEMENTS * dtype.element_bytes(); count]);
            for opened in &opened {
                for &choice in &arguments.codec {
                    records.extend(opened.measure(&case, choice, arguments.repetitions)?);
                }
            }
        }
    }
    report::print(&records);
    if let Some(path) = &arguments.out {
        report::write(path, &records).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}
