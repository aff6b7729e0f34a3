//! What the fuzz targets do with their bytes. The targets themselves are in `fuzz/` and only name the backends; ordinary tests
//! replay the committed corpora through the same functions.
//!
//! A function that returns at all found no fault; it panics over one.

mod container;
mod roundtrip;
mod stream;

use std::fs;

use enec_core::{Backend, DecodeBatch, DecodeJob, Source, Target};
use enec_format::DecodePlan;

pub use container::{container, container_seeds};
pub use roundtrip::{roundtrip, roundtrip_seeds};
pub use stream::{stream, stream_seeds};

use crate::Result;

/// What a fuzzer may do with an input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Verdict {
    /// Go on from it.
    Keep,
    /// Forget it: it does not get past the door.
    Reject,
}

/// The committed inputs of a target, with their file names, in order.
///
/// # Errors
///
/// If there are none, or they cannot be read.
pub fn corpus(target: &str) -> Result<Vec<(String, Vec<u8>)>> {
    let folder = crate::checkout().join("fuzz/corpus").join(target);
    let entries = fs::read_dir(&folder).map_err(|error| format!("cannot read {}: {error}", folder.display()))?;
    let mut inputs = Vec::new();
    for entry in entries {
        let path = entry?.path();
        let name = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
        inputs.push((name, fs::read(path)?));
    }
    inputs.sort();
    if inputs.is_empty() {
        return Err(format!("no inputs in {}", folder.display()).into());
    }
    Ok(inputs)
}

/// Decodes by a plan from host to host memory that held `poison` before.
fn decode(backend: &dyn Backend, plan: &DecodePlan, bytes: &[u8], poison: u8) -> Vec<u8> {
    let mut target = vec![poison; plan.target_len()];
    let mut batch = DecodeBatch::new(backend.info());
    let job = DecodeJob::new(plan.clone(), Source::Host(bytes), Target::Host(&mut target));
    batch.push(job).expect("a planned job");
    backend.decode(&mut batch).expect("the device works");
    for result in batch.into_results() {
        result.expect("a validated stream decodes");
    }
    target
}
