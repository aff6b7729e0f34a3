//! `--backend ascend-model`: what the Ascend kernels would take on a 910B2 by the cost formula of docs/ascend.md. Nothing is measured.

use std::sync::Arc;

use enec::{Codec, Dtype};
use enec_ascend_model::Cost;
use enec_core::OpenOptions;

use crate::Result;
use crate::arguments::Arguments;
use crate::case::{Case, Place};
use crate::report;
use crate::resident::Resident;

/// The backend that this is for.
pub(crate) const BACKEND: &str = "ascend-model";

/// Decoded bytes of a case: enough blocks for 48 cores to be equally busy, and soon done on the host model.
const CASE_BYTES: usize = 48 * 8 * (32 << 10);

/// Of a 910B2 (docs/ascend.md): vector cores, their clock in Hz, bytes per second of device memory.
const CORES: f64 = 48.0;
const CLOCK: f64 = 1.8e9;
const MEMORY: f64 = 1.6e12;

/// The paper's own kernels by the same formula, compression and decompression in GB/s. For BF16 it is computed from their instructions, for the
/// others it was computed once (docs/ascend.md).
fn reference(dtype: Dtype) -> Result<Option<(f64, f64)>> {
    Ok(match dtype {
        Dtype::Bf16 => Some(enec_ascend_model::reference_gbps()?),
        Dtype::F16 => Some((308.0, 194.0)),
        Dtype::F32 => Some((451.0, 315.0)),
        Dtype::Opaque => None,
    })
}

/// Prints the estimates of all cases.
pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let options = OpenOptions { variant: arguments.variant.clone(), ..OpenOptions::default() };
    let backend = Arc::new(enec_ascend_model::open(&options)?);
    let codec = Codec::new(backend.clone());
    let mut estimates = Vec::new();
    for case in Case::all(&arguments.data, &arguments.dtype)? {
        let case = case.head(CASE_BYTES, Place::InCache);
        let plans = case.plans(&codec)?;
        let resident = Resident::new(&*backend, &case, &plans)?;
        let before = Kernels::so_far()?;
        resident.encode()?;
        resident.decode()?;
        let after = Kernels::so_far()?;
        let blocks = plans.iter().map(|plan| plan.layout().blocks()).sum::<usize>();
        let (dtype, bytes) = (case.dtype, case.source.bytes().len());
        let analyse = Estimate::new("analyse", &case, bytes, blocks, after.analyse - before.analyse, None);
        let encode = Estimate::new("encode", &case, bytes, blocks, after.encode - before.encode, None);
        let reference = reference(dtype)?;
        let compress = analyse.and(&encode, "compress", reference.map(|(compress, _)| compress));
        let decompress = reference.map(|(_, decompress)| decompress);
        let decode = Estimate::new("decompress", &case, bytes, blocks, after.decode - before.decode, decompress);
        estimates.extend([analyse, encode, compress, decode]);
    }
    print(&estimates);
    if let Some(path) = &arguments.out {
        report::write(path, &estimates).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// What each kernel has cost so far.
struct Kernels {
    analyse: Cost,
    encode: Cost,
    decode: Cost,
}

impl Kernels {
    fn so_far() -> Result<Self> {
        Ok(Self {
            analyse: Cost::so_far("enec_analyse_v1")?,
            encode: Cost::so_far("enec_encode_v1")?,
            decode: Cost::so_far("enec_decode_v1")?,
        })
    }
}

/// One line of the table: kernels, or all that a direction takes. Throughput counts uncompressed bytes.
#[derive(Debug, Clone, serde::Serialize)]
struct Estimate {
    /// Always `model`: nothing is measured.
    kind: &'static str,
    device: &'static str,
    data: String,
    dtype: &'static str,
    what: &'static str,
    bytes: usize,
    instructions_per_block: f64,
    cycles_per_block: f64,
    copied_bytes_per_block: f64,
    /// If copies took no time.
    vector_bound_gbps: f64,
    /// If vector instructions took no time.
    copy_bound_gbps: f64,
    gbps: f64,
    reference_gbps: Option<f64>,
}

impl Estimate {
    fn new(what: &'static str, case: &Case, bytes: usize, blocks: usize, cost: Cost, reference: Option<f64>) -> Self {
        let per_block = |total: u64| total as f64 / blocks as f64;
        let gbps = |seconds: f64| bytes as f64 / seconds / 1e9;
        let copied = cost.bytes_in + cost.bytes_out;
        Self {
            kind: "model",
            device: "910B2",
            data: case.name.clone(),
            dtype: case.dtype.name(),
            what,
            bytes,
            instructions_per_block: per_block(cost.instructions),
            cycles_per_block: per_block(cost.vector_cycles),
            copied_bytes_per_block: per_block(copied),
            vector_bound_gbps: gbps(cost.vector_cycles as f64 / CORES / CLOCK),
            copy_bound_gbps: gbps(copied as f64 / MEMORY),
            gbps: gbps(cost.seconds),
            reference_gbps: reference,
        }
    }

    /// This and another, one after the other.
    fn and(&self, other: &Self, what: &'static str, reference: Option<f64>) -> Self {
        let both = |one: f64, two: f64| 1.0 / (1.0 / one + 1.0 / two);
        Self {
            what,
            instructions_per_block: self.instructions_per_block + other.instructions_per_block,
            cycles_per_block: self.cycles_per_block + other.cycles_per_block,
            copied_bytes_per_block: self.copied_bytes_per_block + other.copied_bytes_per_block,
            vector_bound_gbps: both(self.vector_bound_gbps, other.vector_bound_gbps),
            copy_bound_gbps: both(self.copy_bound_gbps, other.copy_bound_gbps),
            gbps: both(self.gbps, other.gbps),
            reference_gbps: reference,
            ..self.clone()
        }
    }
}

fn print(estimates: &[Estimate]) {
    println!(
        "model of a 910B2, not measured: the cost formula of docs/ascend.md on the kernels' instructions; GB/s of uncompressed bytes"
    );
    println!("reference: the same formula on the paper's own kernels, which do not overlap copies with computing");
    let width = estimates.iter().map(|estimate| estimate.data.len()).max().unwrap_or(4);
    println!(
        "{:width$}  {:4}  {:10}  {:>13}  {:>12}  {:>12}  {:>12}  {:>10}  {:>10}  {:>16}",
        "data",
        "type",
        "kernels",
        "instr./block",
        "cycles/block",
        "copied/block",
        "vector bound",
        "copy bound",
        "model",
        "reference (x)"
    );
    for estimate in estimates {
        let reference = estimate.reference_gbps.map(|gbps| format!("{gbps:.0} ({:.2})", estimate.gbps / gbps));
        println!(
            "{:width$}  {:4}  {:10}  {:13.1}  {:12.0}  {:12.0}  {:12.0}  {:10.0}  {:10.0}  {:>16}",
            estimate.data,
            estimate.dtype,
            estimate.what,
            estimate.instructions_per_block,
            estimate.cycles_per_block,
            estimate.copied_bytes_per_block,
            estimate.vector_bound_gbps,
            estimate.copy_bound_gbps,
            estimate.gbps,
            reference.unwrap_or_default(),
        );
    }
}
