//! The kernels on many numbers of cores and under every scheduling: same bytes as the reference codec. A pairwise subset by default; the full
//! product with `--ignored`, which `cargo xtask ascend-matrix` runs under compilers and sanitizers.

mod pairs;

use std::num::NonZeroU32;
use std::sync::OnceLock;

use enec_ascend::{AscendBackend, Configuration};
use enec_conformance::inputs;
use enec_conformance::jobs::same;
use enec_core::search::search;
use enec_core::{Backend, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, OpenOptions, Source, Target};
use enec_format::geometry::{BLOCK_ELEMENTS, HEADER_BYTES, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, EncodePlan, Stream, reference};

/// Environment variable: `K/N` runs every N-th combination from the K-th on, counted from 0, so that machines can share the product.
const PART_VARIABLE: &str = "ENEC_ASCEND_MATRIX_PART";

const CORES: [u32; 9] = [1, 2, 7, 24, 47, 48, 49, 96, 1000];
const DTYPES: [Dtype; 3] = Dtype::FLOATS;
const ELEMENTS: [usize; 2] = [TILE_ELEMENTS, 100 * BLOCK_ELEMENTS + 3 * TILE_ELEMENTS + 5];
const ORDERS: [&str; 4] = ["forward", "reversed", "shuffled", "threads"];
const COPIES: [&str; 2] = ["eager", "lazy"];
const READS: [&str; 2] = ["snapshot", "sequential"];
const AUTO_SYNC: [&str; 2] = ["0", "1"];

/// How many values each factor has, in the order in which `check` takes them.
const FACTORS: [usize; 7] =
    [CORES.len(), ORDERS.len(), DTYPES.len(), ELEMENTS.len(), COPIES.len(), READS.len(), AUTO_SYNC.len()];

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn every_pair_of_settings() {
    run(pairs::rows(&FACTORS));
}

#[test]
#[ignore = "the full product takes long: `cargo xtask ascend-matrix` runs it"]
fn every_combination_of_settings() {
    let (part, parts) = match std::env::var(PART_VARIABLE) {
        Ok(text) => {
            let numbers =
                text.split_once('/').and_then(|(part, parts)| Some((part.parse().ok()?, parts.parse().ok()?)));
            numbers.filter(|&(part, parts): &(usize, usize)| part < parts).expect("K/N")
        }
        Err(_) => (0, 1),
    };
    run(pairs::product(&FACTORS).into_iter().skip(part).step_by(parts).collect());
}

fn run(rows: Vec<Vec<usize>>) {
    let count = rows.len();
    let failures: Vec<String> =
        rows.into_iter().filter_map(|row| check(&row).err().map(|error| error.to_string())).collect();
    assert!(failures.is_empty(), "{} of {count} combinations fail:\n{}", failures.len(), failures.join("\n"));
}

fn check(row: &[usize]) -> enec_conformance::Result {
    let &[cores, order, dtype, elements, copies, reads, auto_sync] = row else { panic!("a row of {}", row.len()) };
    // What memory holds that nobody has written: two values that follow from the rest, so that both are met with everything else.
    let poison = if row.iter().sum::<usize>().is_multiple_of(2) { 0xA5 } else { 0 };
    let cores = CORES[cores];
    let settings = format!(
        "order={} copies={} reads={} auto_sync={} poison={poison} seed={cores}",
        ORDERS[order], COPIES[copies], READS[reads], AUTO_SYNC[auto_sync]
    );
    let name = format!("{} of {} on {cores} cores, {settings}", ELEMENTS[elements], DTYPES[dtype].name());
    let configuration = Configuration {
        kernels: Some(enec_ascend_model::object(&settings)),
        cores: NonZeroU32::new(cores),
        ..enec_ascend_model::configuration(None)?
    };
    let backend = AscendBackend::open(&configuration, &OpenOptions::default())?;
    let inputs = INPUTS.get_or_init(|| DTYPES.map(|dtype| ELEMENTS.map(|elements| Input::new(dtype, elements))));
    inputs[dtype][elements].check(&backend).map_err(|error| format!("{name}: {error}").into())
}

/// One for each type and size, made once: the reference codec takes longer than the kernels on the model.
static INPUTS: OnceLock<[[Input; ELEMENTS.len()]; DTYPES.len()]> = OnceLock::new();

/// Elements, and the stream that the reference codec makes of them.
struct Input {
    elements: Vec<u8>,
    encode: EncodePlan,
    stream: Vec<u8>,
}

impl Input {
    fn new(dtype: Dtype, count: usize) -> Self {
        let top = u64::from(dtype.exponent_mask() / 2);
        let elements = inputs::Input::Weights { seed: count as u64, top, zeros: 40 }.bytes(dtype, count);
        let coding = Coding::TwoWindows(search(dtype, &elements));
        let encode = EncodePlan::new(dtype, coding, count).expect("the coding is of this type");
        let stream = reference::encode_plan(&encode, &elements).expect("the elements are those of the plan");
        Self { elements, encode, stream }
    }

    fn check(&self, backend: &AscendBackend) -> enec_conformance::Result {
        let mut written = vec![0x5A; self.encode.target_len()];
        let mut batch = EncodeBatch::new(backend.info());
        let (source, target) = (Source::Host(&self.elements), Target::Host(&mut written));
        batch.push(EncodeJob::new(self.encode.clone(), source, target))?;
        backend.encode(&mut batch)?;
        batch.into_results().try_for_each(|result| result.map(|_| ()))?;
        let body = HEADER_BYTES..self.stream.len();
        same(&written[body.clone()], &self.stream[body], |at| format!("encoded byte {}", HEADER_BYTES + at))?;

        let mut decoded = vec![0x5A; self.elements.len()];
        let mut batch = DecodeBatch::new(backend.info());
        let plan = DecodePlan::whole(&Stream::open(&self.stream)?);
        batch.push(DecodeJob::new(plan, Source::Host(&self.stream), Target::Host(&mut decoded)))?;
        backend.decode(&mut batch)?;
        batch.into_results().try_for_each(|result| result)?;
        same(&decoded, &self.elements, |at| format!("decoded byte {at}"))
    }
}
