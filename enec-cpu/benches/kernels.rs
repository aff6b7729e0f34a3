//! The kernels on one thread and data in cache: `cargo bench -p enec-cpu`.
//!
//! `cargo xtask bench` compares with copies and peers and is where figures to quote come from; this is for working on a kernel: small, quick to
//! run again, and with criterion's comparison to the run before.

#![allow(clippy::unwrap_used, clippy::print_stderr, missing_docs, reason = "a benchmark")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use criterion::{Criterion, Throughput, criterion_group, criterion_main};
use enec_core::search::{search, search_cascade};
use enec_core::{Backend, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, OpenOptions, Source, Target};
use enec_format::{Cascade, Coding, DecodePlan, Dtype, EncodePlan, Stream, TwoWindows, reference};

/// Sixteen blocks of BF16: elements and stream fit a second-level cache of 1 MiB, and a block at a time fits any.
const BYTES: usize = 512 << 10;

/// What trained weights look like: exponents fall off by halves. What depends on the data is how many lanes are wide, about
/// 5 %, and how many elements reach each level of the cascade.
fn weights(dtype: Dtype) -> Vec<u8> {
    elements(dtype, |random| 120 - (random >> 32).trailing_zeros().min(14))
}

/// Every lane is wide and the segment as long as it gets: the most that compacting and expanding can cost.
fn scattered(dtype: Dtype) -> Vec<u8> {
    elements(dtype, |random| u32::try_from(random >> 56).unwrap() % 100)
}

fn elements(dtype: Dtype, exponent: impl Fn(u64) -> u32) -> Vec<u8> {
    let mut state = 1_u64;
    let mut random = move || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        state ^ (state >> 29)
    };
    let mut bytes = Vec::with_capacity(BYTES);
    while bytes.len() < BYTES {
        let (exponent, rest) = (exponent(random()), random());
        match dtype {
            Dtype::F32 => {
                bytes.extend((exponent << 23 | u32::try_from(rest >> 41).unwrap()).to_le_bytes());
            }
            Dtype::F16 => {
                bytes.extend(
                    u16::try_from((exponent % 32) << 10 | u32::try_from(rest >> 54).unwrap()).unwrap().to_le_bytes(),
                );
            }
            Dtype::Bf16 | Dtype::Opaque => {
                bytes.extend(u16::try_from(exponent << 7 | u32::try_from(rest >> 57).unwrap()).unwrap().to_le_bytes());
            }
        }
    }
    bytes
}

fn open(variant: &str) -> Option<Arc<dyn Backend>> {
    let options =
        OpenOptions { threads: NonZeroUsize::new(1), variant: Some(variant.to_owned()), ..OpenOptions::default() };
    (enec_cpu::DRIVER.open)(&options).ok()
}

fn encode(backend: &dyn Backend, plan: &EncodePlan, source: &[u8], target: &mut [u8]) {
    let mut batch = EncodeBatch::new(backend.info());
    batch.push(EncodeJob::new(plan.clone(), Source::Host(source), Target::Host(target))).unwrap();
    backend.encode(&mut batch).unwrap();
}

fn decode(backend: &dyn Backend, stream: &Stream<'_>, target: &mut [u8]) {
    let mut batch = DecodeBatch::new(backend.info());
    let job = DecodeJob::new(DecodePlan::whole(stream), Source::Host(stream.bytes()), Target::Host(target));
    batch.push(job).unwrap();
    backend.decode(&mut batch).unwrap();
}

fn kernels(criterion: &mut Criterion) {
    // BF16 is what most checkpoints are; F16 has its packed extra plane and F32 its words of mantissa, so each has code of its own.
    for dtype in Dtype::FLOATS {
        let source = weights(dtype);
        // The vectors of x86 are what servers run; portable is what every other processor gets. Scalar is only for reading.
        for variant in ["avx512", "avx2", "portable"] {
            let name = format!("{}/{variant}", dtype.name());
            bench(criterion, &name, variant, dtype, search(dtype, &source), &source);
            // The other codec moves bits between levels, which takes other instructions and, in the portable kernels, tables.
            bench(criterion, &format!("cascade/{name}"), variant, dtype, search_cascade(dtype, &source), &source);
        }
    }
    // The worst cases must stay within sight of the usual one: a hostile or odd tensor must not stall a loader.
    let source = scattered(Dtype::Bf16);
    let windows = TwoWindows::new(Dtype::Bf16, 99, 0).unwrap();
    bench(criterion, "BF16 all wide/avx2", "avx2", Dtype::Bf16, windows, &source);
    // No element stays on a level and every exponent is raw: raw exponents are set one by one.
    let cascade = Cascade::new(Dtype::Bf16, &(200..215).collect::<Vec<_>>()).unwrap();
    bench(criterion, "cascade/BF16 all raw/avx2", "avx2", Dtype::Bf16, cascade, &source);
}

fn bench(criterion: &mut Criterion, name: &str, variant: &str, dtype: Dtype, coding: impl Into<Coding>, source: &[u8]) {
    let Some(backend) = open(variant) else {
        eprintln!("{name}: not measured, this processor cannot run `{variant}`");
        return;
    };
    let elements = source.len() / dtype.element_bytes();
    let plan = EncodePlan::window(dtype, coding, elements, 0).unwrap();
    let stream = reference::encode_plan(&plan, source).unwrap();
    let stream = Stream::open(&stream).unwrap();
    let mut encoded = vec![1; plan.target_len()];
    let mut decoded = vec![1; source.len()];
    let mut group = criterion.benchmark_group(name);
    group.throughput(Throughput::Bytes(source.len() as u64));
    // Encoding is the analysis of each block and the packing, which read the same block one after the other.
    group.bench_function("encode", |bencher| bencher.iter(|| encode(&*backend, &plan, source, &mut encoded)));
    group.bench_function("decode", |bencher| bencher.iter(|| decode(&*backend, &stream, &mut decoded)));
    group.finish();
    assert_eq!(decoded, source);
}

criterion_group!(benches, kernels);
criterion_main!(benches);
