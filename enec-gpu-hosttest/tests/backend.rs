//! The backend around the kernels: memory of others, staging buffers of all sizes, queues in all orders.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]

use std::num::NonZeroUsize;
use std::process::ExitCode;
use std::sync::Arc;

use enec_conformance::inputs::Input;
use enec_core::search::search;
use enec_core::{Backend, DecodeBatch, DecodeJob, DeviceSlice, EncodeBatch, EncodeJob, Error, Result, Source, Target};
use enec_format::geometry::{BLOCK_ELEMENTS, HEADER_BYTES, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, EncodeOutcome, EncodePlan, Stream, reference};
use enec_gpu::cuda::launcher::Queue;
use enec_gpu::cuda::{CudaBackend, Settings};
use enec_gpu_hosttest::{ABSENT, backend};
use libtest_mimic::{Arguments, Trial};

const SETTINGS: Settings =
    Settings { turns: 3, buffer_bytes: Settings::SMALLEST_BUFFER, threads: NonZeroUsize::new(2).unwrap() };

/// Lists the tests by the names of their functions.
macro_rules! trials {
    ($($test:ident,)*) => {
        [$((stringify!($test), $test as fn())),*]
    };
}

fn main() -> ExitCode {
    let trials = trials![
        staging_buffers_of_any_size_and_number_give_the_same_bytes,
        settings_that_are_too_small_are_refused,
        a_queue_that_does_not_wait_is_caught,
        large_host_tensors_are_encoded_into_device_memory,
        large_tensors_that_end_as_stored_are_stored,
        memory_of_others_is_used_in_place_and_kept_alive,
        memory_that_cannot_be_is_refused,
    ];
    let trials = trials.map(|(name, test)| match ABSENT {
        Some(reason) => Trial::test(format!("{name} [{reason}]"), || Ok(())).with_ignored_flag(true),
        None => Trial::test(name, move || {
            test();
            Ok(())
        }),
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn open(settings: Settings, seed: u64, heedless: &[Queue]) -> CudaBackend {
    backend(None, "forward", settings, seed, heedless).unwrap()
}

fn tensor(dtype: Dtype, count: usize) -> (EncodePlan, Vec<u8>, Vec<u8>) {
    let elements = Input::Weights { seed: 7, top: u64::from(dtype.exponent_mask() / 2), zeros: 1 }.bytes(dtype, count);
    let plan = EncodePlan::new(dtype, Coding::TwoWindows(search(dtype, &elements)), count).unwrap();
    let stream = reference::encode_plan(&plan, &elements).unwrap();
    (plan, elements, stream)
}

/// Encodes and decodes in host memory; whether both came out right.
fn round_trip(backend: &CudaBackend, (plan, elements, stream): &(EncodePlan, Vec<u8>, Vec<u8>)) -> Result<bool> {
    let mut encoded = vec![0xEE; plan.target_len()];
    let mut batch = EncodeBatch::new(backend.info());
    batch.push(EncodeJob::new(plan.clone(), Source::Host(elements), Target::Host(&mut encoded)))?;
    backend.encode(&mut batch)?;
    let outcome = batch.into_results().next().unwrap()?;
    let len = plan.written(outcome)?.stream_len;

    let mut decoded = vec![0xEE; elements.len()];
    let mut batch = DecodeBatch::new(backend.info());
    let whole = DecodePlan::whole(&Stream::open(stream)?);
    batch.push(DecodeJob::new(whole, Source::Host(stream), Target::Host(&mut decoded)))?;
    backend.decode(&mut batch)?;
    batch.into_results().next().unwrap()?;
    Ok(encoded[HEADER_BYTES..len] == stream[HEADER_BYTES..] && decoded == *elements)
}

fn staging_buffers_of_any_size_and_number_give_the_same_bytes() {
    let tensors: Vec<_> =
        Dtype::FLOATS.into_iter().map(|dtype| tensor(dtype, 9 * BLOCK_ELEMENTS + 3 * TILE_ELEMENTS + 41)).collect();
    for (turns, buffer_bytes) in [(1, 128 << 10), (2, 200_001), (3, 1 << 20), (5, 140_000)] {
        for seed in 1..4 {
            let backend = open(Settings { turns, buffer_bytes, ..SETTINGS }, seed, &[]);
            for tensor in &tensors {
                assert!(round_trip(&backend, tensor).unwrap(), "{turns} of {buffer_bytes} bytes, seed {seed}");
            }
        }
    }
}

fn settings_that_are_too_small_are_refused() {
    for settings in
        [Settings { turns: 0, ..SETTINGS }, Settings { buffer_bytes: SETTINGS.buffer_bytes - 1, ..SETTINGS }]
    {
        assert!(matches!(backend(None, "forward", settings, 1, &[]), Err(Error::Argument(_))));
    }
}

/// Without its waits the backend must fail here: otherwise the launcher does not test them.
fn a_queue_that_does_not_wait_is_caught() {
    let tensor = tensor(Dtype::Bf16, 12 * BLOCK_ELEMENTS);
    for queue in [Queue::Compute, Queue::Download] {
        let caught = (1..20).any(|seed| !matches!(round_trip(&open(SETTINGS, seed, &[queue]), &tensor), Ok(true)));
        assert!(caught, "{queue:?} goes on without waiting, and nothing fails");
    }
}

/// A tensor that is larger than a staging buffer, from host memory into device memory: it is gathered there first.
fn large_host_tensors_are_encoded_into_device_memory() {
    for (dtype, zeros) in [(Dtype::Bf16, 1), (Dtype::F32, 1), (Dtype::F16, 90)] {
        let count = 20 * BLOCK_ELEMENTS + TILE_ELEMENTS + 3;
        let top = u64::from(dtype.exponent_mask() / 2);
        let elements = Input::Weights { seed: 8, top, zeros }.bytes(dtype, count);
        let plan = EncodePlan::new(dtype, Coding::TwoWindows(search(dtype, &elements)), count).unwrap();
        let stream = reference::encode_plan(&plan, &elements).unwrap();
        let backend = open(SETTINGS, 5, &[]);
        let target = backend.alloc(plan.target_len()).unwrap().full();
        let mut batch = EncodeBatch::new(backend.info());
        batch.push(EncodeJob::new(plan.clone(), Source::Host(&elements), Target::Device(target.clone()))).unwrap();
        backend.encode(&mut batch).unwrap();
        let outcome = batch.into_results().next().unwrap().unwrap();
        assert_eq!(plan.written(outcome).unwrap().stream_len, stream.len());
        let mut found = vec![0; stream.len()];
        backend.download(&target.slice(0..stream.len()).unwrap(), &mut found).unwrap();
        assert!(found[HEADER_BYTES..] == stream[HEADER_BYTES..], "{dtype:?}");
    }
}

/// Tensors of many pieces that end as stored, found out in the last of them.
fn large_tensors_that_end_as_stored_are_stored() {
    let dtype = Dtype::Bf16;
    let elements = Input::Uniform { seed: 3 }.bytes(dtype, 30 * BLOCK_ELEMENTS + 5);
    let windows = enec_format::TwoWindows::new(dtype, 127, 3).unwrap();
    let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows), elements.len() / 2).unwrap();
    let stream = reference::encode_plan(&plan, &elements).unwrap();
    let backend = open(SETTINGS, 6, &[]);
    let source = backend.alloc(elements.len()).unwrap().full();
    backend.upload(&elements, &source).unwrap();
    for from_device in [false, true] {
        let mut target = vec![0xEE; plan.target_len()];
        let mut batch = EncodeBatch::new(backend.info());
        let source = if from_device { Source::Device(source.clone()) } else { Source::Host(&elements) };
        batch.push(EncodeJob::new(plan.clone(), source, Target::Host(&mut target))).unwrap();
        backend.encode(&mut batch).unwrap();
        assert_eq!(batch.into_results().next().unwrap().unwrap(), EncodeOutcome::Stored);
        assert!(target[HEADER_BYTES..] == stream[HEADER_BYTES..], "from device: {from_device}");
    }
}

/// Memory that stands for another library's: bytes on the heap, which are device memory here.
#[repr(align(256))]
struct Foreign([u8; 64 << 10]);

#[allow(unsafe_code, reason = "importing is a promise")]
fn import(backend: &CudaBackend, memory: &Arc<Foreign>, offset: usize, len: usize) -> DeviceSlice {
    let address = memory.0.as_ptr().expose_provenance() as u64 + offset as u64;
    // SAFETY: on the host any memory is device memory; the owner keeps it alive.
    unsafe { backend.import(address, len, Box::new(Arc::clone(memory))) }.unwrap().full()
}

fn memory_of_others_is_used_in_place_and_kept_alive() {
    let backend = open(SETTINGS, 2, &[]);
    let (plan, elements, stream) = tensor(Dtype::Bf16, BLOCK_ELEMENTS + 7);
    for offset in [0, 16, 3] {
        let mut memory = Foreign([0; 64 << 10]);
        memory.0[offset..offset + elements.len()].copy_from_slice(&elements);
        let memory = Arc::new(memory);
        let source = import(&backend, &memory, offset, elements.len());
        assert_eq!(backend.address(&source).unwrap(), memory.0.as_ptr().addr() as u64 + offset as u64);
        let mut encoded = vec![0; plan.target_len()];
        let mut batch = EncodeBatch::new(backend.info());
        batch.push(EncodeJob::new(plan.clone(), Source::Device(source.clone()), Target::Host(&mut encoded))).unwrap();
        backend.encode(&mut batch).unwrap();
        batch.into_results().for_each(|result| assert!(result.is_ok()));
        assert!(encoded[HEADER_BYTES..stream.len()] == stream[HEADER_BYTES..], "offset {offset}");
        assert_eq!(Arc::strong_count(&memory), 2);
        drop(source);
        assert_eq!(Arc::strong_count(&memory), 1, "the owner outlives the last handle");
    }
}

#[allow(unsafe_code, reason = "importing is a promise")]
fn memory_that_cannot_be_is_refused() {
    let backend = open(SETTINGS, 2, &[]);
    for (address, len) in [(0, 1), (u64::MAX, 2)] {
        // SAFETY: it is refused.
        let refused = unsafe { backend.import(address, len, Box::new(())) };
        assert!(matches!(refused, Err(Error::Argument(_))), "{len} bytes at {address:#x}");
    }
    let other = open(SETTINGS, 3, &[]);
    let memory = other.alloc(8).unwrap().full();
    assert!(matches!(backend.address(&memory), Err(Error::Argument(_))));
}
