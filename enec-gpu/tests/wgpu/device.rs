//! Windows of a small device, devices that are lost, and memory that is shared with other users of a device.

use std::error::Error as StdError;
use std::process::ExitCode;
use std::sync::{Arc, Mutex, PoisonError, RwLock, RwLockReadGuard};

use enec_conformance::REQUIRE;
use enec_conformance::inputs::Input;
use enec_core::search::search;
use enec_core::{
    Backend, Codec, DecodeBatch, DecodeJob, DeviceSlice, EncodeBatch, EncodeJob, Error, KernelTime, OpenOptions,
    Source, Target,
};
use enec_format::geometry::{BLOCK_ELEMENTS, HEADER_BYTES, TILE_ELEMENTS};
use enec_format::{Coding, DecodePlan, Dtype, EncodePlan, Stream, TwoWindows, reference};
use enec_gpu::wgpu::{DRIVER, WgpuBackend, api};
use libtest_mimic::{Arguments, Failed, Trial};

type Check = fn() -> Result;
/// A plan, elements, and the stream that the reference makes of them.
type Tensor = (EncodePlan, Vec<u8>, Vec<u8>);
type Result<T = ()> = std::result::Result<T, Box<dyn StdError>>;

/// A binding of the small device: far less than the tensors that it is given.
const SMALL_BINDING: u64 = 256 << 10;
/// Workgroups of one dimension of the small device: fewer than a window of small tensors has blocks.
const SMALL_DIMENSION: u32 = 12;

/// Takes a gigabyte and a while: run with `--ignored`.
const LARGE: &str = "windows/beyond_a_binding_300_mb";

/// Whoever uses the device that all backends of the adapter share holds it for reading, and whoever destroys it for writing.
static ADAPTER: RwLock<()> = RwLock::new(());

/// Runs the checks; without a device they are ignored by name, or fail if one is required.
pub(crate) fn main() -> ExitCode {
    let checks: [(&str, Check); 11] = [
        ("windows/host_to_host", || windows(false, false)),
        ("windows/host_to_device", || windows(false, true)),
        ("windows/device_to_host", || windows(true, false)),
        ("windows/device_to_device", || windows(true, true)),
        ("windows/one_buffer", one_buffer),
        ("windows/late_stored", late_stored),
        ("windows/small_tensors", small_tensors),
        (LARGE, beyond_a_binding),
        ("device/lost", lost),
        ("device/shared", shared),
        ("device/own_buffers", own_buffers),
    ];
    let required = std::env::var(REQUIRE).is_ok_and(|list| list.split(',').any(|name| name.trim() == DRIVER.name));
    let absent = (DRIVER.probe)().err();
    let trials = checks.map(|(name, check)| {
        let title = match &absent {
            None => format!("wgpu/{name}"),
            Some(error) => format!("wgpu/{name} [{error}]"),
        };
        let trial = Trial::test(title, move || check().map_err(|error| Failed::from(error.to_string())));
        trial.with_ignored_flag((absent.is_some() && !required) || name == LARGE)
    });
    libtest_mimic::run(&Arguments::from_args(), trials.into()).exit_code()
}

fn shared_device() -> RwLockReadGuard<'static, ()> {
    ADAPTER.read().unwrap_or_else(PoisonError::into_inner)
}

/// A device of the first adapter, opened by us.
fn open(limits: impl FnOnce(&mut api::Limits)) -> Result<(api::Device, api::Queue)> {
    let instance = api::Instance::new(api::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.enumerate_adapters(api::Backends::all())).into_iter().next();
    let adapter = adapter.ok_or("no adapter")?;
    let mut required_limits = api::Limits::downlevel_defaults();
    limits(&mut required_limits);
    let descriptor = api::DeviceDescriptor { required_limits, ..api::DeviceDescriptor::default() };
    Ok(pollster::block_on(adapter.request_device(&descriptor))?)
}

/// A backend whose tensors need many windows, and dispatches of two dimensions.
fn small() -> Result<Arc<WgpuBackend>> {
    static SMALL: Mutex<Option<Arc<WgpuBackend>>> = Mutex::new(None);
    let mut small = SMALL.lock().unwrap_or_else(PoisonError::into_inner);
    if let Some(backend) = &*small {
        return Ok(Arc::clone(backend));
    }
    let (device, queue) = open(|limits| {
        limits.max_storage_buffer_binding_size = SMALL_BINDING;
        limits.max_compute_workgroups_per_dimension = SMALL_DIMENSION;
    })?;
    let backend = Arc::new(WgpuBackend::with_device(device, queue, &OpenOptions::default())?);
    *small = Some(Arc::clone(&backend));
    Ok(backend)
}

/// About a megabyte of each type with a tail, and what the reference makes of them.
fn tensors() -> Result<Vec<Tensor>> {
    let tensor = |dtype: Dtype| {
        let elements = 1_000_000 / dtype.element_bytes() / TILE_ELEMENTS * TILE_ELEMENTS + 3 * TILE_ELEMENTS / 2 + 1;
        let top = u64::from(dtype.exponent_mask() / 2);
        let bytes = Input::Weights { seed: 7, top, zeros: 2 }.bytes(dtype, elements);
        let plan = EncodePlan::new(dtype, Coding::TwoWindows(search(dtype, &bytes)), elements)?;
        let stream = reference::encode_plan(&plan, &bytes)?;
        Ok((plan, bytes, stream))
    };
    Dtype::FLOATS.into_iter().map(tensor).collect()
}

/// Device memory at an offset that is no word, if `odd`.
fn on_device(backend: &WgpuBackend, bytes: &[u8], odd: bool) -> Result<DeviceSlice> {
    let start = if odd { 3 } else { 0 };
    let slice = backend.alloc(start + bytes.len() + 2)?.slice(start..start + bytes.len())?;
    backend.upload(bytes, &slice)?;
    Ok(slice)
}

fn downloaded(backend: &WgpuBackend, slice: &DeviceSlice) -> Result<Vec<u8>> {
    let mut bytes = vec![0; slice.len()];
    backend.download(slice, &mut bytes)?;
    Ok(bytes)
}

fn same(found: &[u8], expected: &[u8], what: &str) -> Result {
    match found.iter().zip(expected).position(|(found, expected)| found != expected) {
        Some(at) => Err(format!("{what}: byte {at} of {} differs", expected.len()).into()),
        None if found.len() != expected.len() => Err(format!("{what}: {} bytes", found.len()).into()),
        None => Ok(()),
    }
}

fn encode(backend: &WgpuBackend, plan: &EncodePlan, source: Source<'_>, target: Target<'_>) -> Result<usize> {
    let mut batch = EncodeBatch::new(backend.info());
    batch.push(EncodeJob::new(plan.clone(), source, target))?;
    backend.encode(&mut batch)?;
    let outcome = batch.into_results().next().ok_or("no job")??;
    Ok(plan.written(outcome)?.stream_len)
}

fn decode(backend: &WgpuBackend, plan: &DecodePlan, source: Source<'_>, target: Target<'_>) -> Result {
    let mut batch = DecodeBatch::new(backend.info());
    batch.push(DecodeJob::new(plan.clone(), source, target))?;
    backend.decode(&mut batch)?;
    Ok(batch.into_results().next().ok_or("no job")??)
}

/// Tensors of several bindings, from and to both kinds of memory, whole and in part.
fn windows(from_device: bool, to_device: bool) -> Result {
    let backend = small()?;
    for (plan, elements, stream) in tensors()? {
        for odd in [false, true] {
            let source = on_device(&backend, &elements, odd)?;
            let from = || if from_device { Source::Device(source.clone()) } else { Source::Host(&elements) };
            let target = on_device(&backend, &vec![0xEE; plan.target_len()], odd)?;
            let mut host = vec![0xEE; plan.target_len()];
            let to = if to_device { Target::Device(target.clone()) } else { Target::Host(&mut host) };
            let len = encode(&backend, &plan, from(), to)?;
            let written = if to_device { downloaded(&backend, &target)? } else { host };
            same(&written[HEADER_BYTES..len], &stream[HEADER_BYTES..], "encoded")?;
            same(&written[..HEADER_BYTES], &[0xEE; HEADER_BYTES], "header")?;

            let source = on_device(&backend, &stream, odd)?;
            let from = || if from_device { Source::Device(source.clone()) } else { Source::Host(&stream) };
            let opened = Stream::open(&stream)?;
            let (whole, tiles) = (DecodePlan::whole(&opened), opened.layout().tiles);
            for plan in [whole.clone(), whole.with_tiles(13..tiles - 9, false)?] {
                let target = on_device(&backend, &vec![0xEE; plan.target_len()], odd)?;
                let mut host = vec![0xEE; plan.target_len()];
                let to = if to_device { Target::Device(target.clone()) } else { Target::Host(&mut host) };
                decode(&backend, &plan, from(), to)?;
                let start = opened.layout().decoded_range(0..plan.tiles().start).end;
                let decoded = if to_device { downloaded(&backend, &target)? } else { host };
                same(&decoded, &elements[start..start + decoded.len()], "decoded")?;
            }
        }
    }
    Ok(())
}

/// Source and target in the same buffer, which no kernel may bind twice.
fn one_buffer() -> Result {
    let _shared = shared_device();
    for backend in [small()?, Arc::new(WgpuBackend::open(&OpenOptions::default())?)] {
        for (plan, elements, stream) in tensors()? {
            let second = elements.len().next_multiple_of(64);
            let buffer = backend.alloc(second + plan.target_len())?;
            let (first, second) = (buffer.slice(0..elements.len())?, buffer.slice(second..buffer.len())?);
            backend.upload(&elements, &first)?;
            let len = encode(&backend, &plan, Source::Device(first.clone()), Target::Device(second.clone()))?;
            same(&downloaded(&backend, &second)?[HEADER_BYTES..len], &stream[HEADER_BYTES..], "encoded")?;
            backend.upload(&vec![0xEE; elements.len()], &first)?;
            let source = Source::Device(second.slice(0..len)?);
            decode(&backend, &DecodePlan::whole(&Stream::open(&stream)?), source, Target::Device(first.clone()))?;
            same(&downloaded(&backend, &first)?, &elements, "decoded")?;
            let copy = buffer.slice(buffer.len() - elements.len()..buffer.len())?;
            if !copy.overlaps(&first) {
                backend.copy(&first, &copy)?;
                same(&downloaded(&backend, &copy)?, &elements, "copied")?;
            }
        }
    }
    Ok(())
}

/// 300 MB in one tensor, which is more than software devices bind at once.
fn beyond_a_binding() -> Result {
    let _shared = shared_device();
    let backend = WgpuBackend::open(&OpenOptions::default())?;
    let elements = Input::Weights { seed: 10, top: 120, zeros: 1 }.bytes(Dtype::Bf16, 150_000_001);
    let coding = Coding::TwoWindows(search(Dtype::Bf16, &elements));
    let plan = EncodePlan::new(Dtype::Bf16, coding, elements.len() / 2)?;
    let stream = reference::encode_plan(&plan, &elements)?;
    let whole = DecodePlan::whole(&Stream::open(&stream)?);

    let mut encoded = vec![0xEE; plan.target_len()];
    let len = encode(&backend, &plan, Source::Host(&elements), Target::Host(&mut encoded))?;
    same(&encoded[HEADER_BYTES..len], &stream[HEADER_BYTES..], "encoded on the host")?;
    let mut decoded = vec![0xEE; elements.len()];
    decode(&backend, &whole, Source::Host(&stream), Target::Host(&mut decoded))?;
    same(&decoded, &elements, "decoded on the host")?;

    let source = on_device(&backend, &elements, false)?;
    let target = backend.alloc(plan.target_len())?.full();
    let len = encode(&backend, &plan, Source::Device(source.clone()), Target::Device(target.clone()))?;
    same(&downloaded(&backend, &target)?[HEADER_BYTES..len], &stream[HEADER_BYTES..], "encoded on the device")?;
    backend.upload(&vec![0xEE; elements.len()], &source)?;
    decode(&backend, &whole, Source::Device(target.slice(0..len)?), Target::Device(source.clone()))?;
    same(&downloaded(&backend, &source)?, &elements, "decoded on the device")
}

/// Windows that gain, followed by some that lose more: the job ends as stored after much of it has been written.
fn late_stored() -> Result {
    let backend = small()?;
    let dtype = Dtype::Bf16;
    let mut elements = Input::Weights { seed: 8, top: 120, zeros: 0 }.bytes(dtype, BLOCK_ELEMENTS);
    elements.extend(Input::Uniform { seed: 9 }.bytes(dtype, 90 * BLOCK_ELEMENTS + 5));
    let plan = EncodePlan::new(dtype, Coding::TwoWindows(TwoWindows::new(dtype, 120, 3)?), elements.len() / 2)?;
    let stream = reference::encode_plan(&plan, &elements)?;
    assert_eq!(Stream::open(&stream)?.coding(), Coding::Stored);
    for odd in [false, true] {
        let source = on_device(&backend, &elements, odd)?;
        let target = on_device(&backend, &vec![0xEE; plan.target_len()], odd)?;
        encode(&backend, &plan, Source::Device(source), Target::Device(target.clone()))?;
        same(&downloaded(&backend, &target)?[HEADER_BYTES..], &stream[HEADER_BYTES..], "stored on the device")?;
        let mut target = vec![0xEE; plan.target_len()];
        encode(&backend, &plan, Source::Host(&elements), Target::Host(&mut target))?;
        same(&target[HEADER_BYTES..], &stream[HEADER_BYTES..], "stored on the host")?;
    }
    Ok(())
}

/// More tensors of one tile than a dispatch has workgroups in one dimension, in one batch.
fn small_tensors() -> Result {
    let codec = Codec::new(small()?);
    let input = |seed| Input::Weights { seed, top: 110, zeros: 0 }.bytes(Dtype::Bf16, TILE_ELEMENTS);
    let tensors: Vec<Vec<u8>> = (0..50).map(input).collect();
    let mut targets = vec![vec![0; 64 + 2 * TILE_ELEMENTS]; tensors.len()];
    let jobs = tensors.iter().zip(&mut targets).map(|(elements, target)| (Dtype::Bf16, &elements[..], &mut target[..]));
    let lengths = codec.encode_batch(jobs)?;
    for ((elements, target), len) in tensors.iter().zip(&mut targets).zip(lengths) {
        target.truncate(len);
        let expected = reference::encode_stream(Dtype::Bf16, codec.coding(Dtype::Bf16, elements), elements)?;
        same(target, &expected, "encoded")?;
    }
    let streams = targets.iter().map(|stream| Stream::open(stream)).collect::<std::result::Result<Vec<_>, _>>()?;
    let mut decoded = vec![vec![0; 2 * TILE_ELEMENTS]; tensors.len()];
    let jobs = streams.iter().zip(&mut decoded).map(|(stream, target)| (stream, &mut target[..]));
    codec.decode_batch(jobs)?.into_iter().collect::<enec_core::Result<Vec<()>>>()?;
    decoded.iter().zip(&tensors).try_for_each(|(decoded, elements)| same(decoded, elements, "decoded"))
}

/// A lost device is an error that names it, for everything; opening it again gives a device that works.
fn lost() -> Result {
    let _alone = ADAPTER.write().unwrap_or_else(PoisonError::into_inner);
    let (_, elements, stream) = tensors()?.swap_remove(0);
    let first = Arc::new(WgpuBackend::open(&OpenOptions::default())?);
    let memory = on_device(&first, &elements, false)?;
    first.device().destroy();
    let codec = Codec::new(first.clone());
    let errors = [
        codec.encode(Dtype::Bf16, &elements).err(),
        codec.decode(&stream).err(),
        first.alloc(100).err(),
        first.upload(&elements, &memory).err(),
        first.download(&memory, &mut vec![0; elements.len()]).err(),
    ];
    for error in errors {
        match error {
            Some(Error::Device { device, .. }) if device == first.info().name => {}
            other => return Err(format!("expected an error of `{}`, found {other:?}", first.info().name).into()),
        }
    }
    let second = Codec::new((DRIVER.open)(&OpenOptions::default())?);
    same(&second.encode(Dtype::Bf16, &elements)?, &stream, "encoded by a device that was opened again")?;
    same(&second.decode(&stream)?, &elements, "decoded by it")
}

/// Backends of one adapter have one device, and so compile each kernel once; kernels are timed where the device has a clock.
fn shared() -> Result {
    let _shared = shared_device();
    let (first, second) = (WgpuBackend::open(&OpenOptions::default())?, WgpuBackend::open(&OpenOptions::default())?);
    assert_eq!(first.device(), second.device());
    let (_, elements, stream) = tensors()?.swap_remove(0);
    let memory = on_device(&first, &stream, false)?;
    let target = first.alloc(elements.len())?.full();
    assert_eq!(first.kernel_time(), None);
    decode(&first, &DecodePlan::whole(&Stream::open(&stream)?), Source::Device(memory), Target::Device(target))?;
    let has_clock = first.device().features().contains(api::Features::TIMESTAMP_QUERY);
    match first.kernel_time() {
        Some(KernelTime::Measured(time)) if has_clock && !time.is_zero() => Ok(()),
        None if !has_clock => Ok(()),
        other => Err(format!("kernel time {other:?}, clock {has_clock}").into()),
    }
}

/// Buffers that somebody else made are decoded into, and others are refused.
fn own_buffers() -> Result {
    let _shared = shared_device();
    let (device, queue) = open(|_| {})?;
    let backend = Arc::new(WgpuBackend::with_device(device.clone(), queue.clone(), &OpenOptions::default())?);
    let (_, elements, stream) = tensors()?.swap_remove(0);
    let descriptor =
        |size: usize, usage| api::BufferDescriptor { label: None, size: size as u64, usage, mapped_at_creation: false };
    let usage = api::BufferUsages::STORAGE | api::BufferUsages::COPY_SRC | api::BufferUsages::COPY_DST;
    let size = elements.len().next_multiple_of(4);
    let refused = device.create_buffer(&descriptor(64, api::BufferUsages::STORAGE));
    assert!(matches!(backend.import(refused), Err(Error::Argument(_))));
    let buffer = device.create_buffer(&descriptor(size, usage));
    let memory = backend.import(buffer.clone())?;
    assert_eq!(backend.buffer(&memory)?, &buffer);
    let codec = Codec::new(backend.clone());
    let resident = codec.upload(&Stream::open(&stream)?)?;
    codec.decode_device(&resident, Target::Device(memory.slice(0..elements.len())?))?;

    // What the caller submits next sees the elements.
    let readable = device.create_buffer(&descriptor(size, api::BufferUsages::MAP_READ | api::BufferUsages::COPY_DST));
    let mut commands = device.create_command_encoder(&api::CommandEncoderDescriptor::default());
    commands.copy_buffer_to_buffer(&buffer, 0, &readable, 0, size as u64);
    queue.submit([commands.finish()]);
    readable.map_async(api::MapMode::Read, .., |_| {});
    device.poll(api::PollType::wait_indefinitely())?;
    same(&readable.get_mapped_range(..)?[..elements.len()], &elements, "decoded into a buffer of the caller")?;

    let other = WgpuBackend::open(&OpenOptions::default())?;
    let foreign = other.alloc(64)?;
    assert!(matches!(backend.buffer(&foreign), Err(Error::Argument(_))));
    Ok(())
}
