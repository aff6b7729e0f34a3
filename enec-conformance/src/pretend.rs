//! A pretend backend: its own memory, the reference codec, and faults to be caught by the suite.

mod cascade;
mod decode;
mod encode;
mod fault;
mod memory;
mod pieces;

use std::num::NonZeroUsize;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, OnceLock};
use std::thread::ThreadId;

use enec_core::{
    Backend, BackendId, Codecs, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, Driver, EncodeBatch, Error,
    OpenOptions, Result, Source, TargetMut,
};

pub use fault::Fault;
use memory::{Pool, PretendMemory};

/// The pretend backend without a fault.
pub const DRIVER: Driver =
    Driver { name: NAME, probe: || Ok(vec![info(0, VARIANTS[0], 1)]), open: |options| open(options, None) };

const NAME: &str = "pretend";
const VARIANTS: [&str; 2] = ["plain", "reversed"];

/// Opens the pretend backend with a fault.
///
/// # Errors
///
/// [`Error::Unavailable`] unless the device is 0, [`Error::Argument`] if there is no such variant.
pub fn open(options: &OpenOptions, fault: Option<Fault>) -> Result<Arc<dyn Backend>> {
    if options.device != 0 && fault != Some(Fault::AnyDeviceOpens) {
        let reason = format!("device {} of 1", options.device);
        return Err(Error::Unavailable { backend: NAME.into(), reason });
    }
    let asked = options.variant.as_deref().unwrap_or(VARIANTS[0]);
    let mut variant = VARIANTS.into_iter().find(|variant| *variant == asked);
    match fault {
        Some(Fault::AnyVariantOpens) => variant = variant.or(Some(VARIANTS[0])),
        Some(Fault::VariantIgnored) => variant = variant.map(|_| VARIANTS[1]),
        _ => {}
    }
    let Some(variant) = variant else {
        return Err(Error::Argument(format!("variant `{asked}` of `{NAME}`, expected one of {VARIANTS:?}")));
    };
    let threads = options.threads.map_or(1, NonZeroUsize::get);
    let mut info = info(options.device, variant, threads);
    if fault == Some(Fault::FingerprintChanges) {
        static OPENED: AtomicUsize = AtomicUsize::new(0);
        info.fingerprint += &OPENED.fetch_add(1, Ordering::Relaxed).to_string();
    }
    Ok(Arc::new(Pretend { info, threads, fault, pool: Pool::default(), first_thread: OnceLock::new() }))
}

fn info(index: usize, variant: &'static str, threads: usize) -> DeviceInfo {
    DeviceInfo {
        id: BackendId::unique(),
        backend: NAME,
        index,
        name: "the reference codec with memory of its own".into(),
        fingerprint: format!("{NAME} {variant}, {threads} threads"),
        memory: None,
        variant,
        codecs: Codecs::ALL,
        variants: VARIANTS.into(),
    }
}

#[derive(Debug)]
struct Pretend {
    info: DeviceInfo,
    threads: usize,
    fault: Option<Fault>,
    pool: Pool,
    first_thread: OnceLock<ThreadId>,
}

impl Backend for Pretend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    /// So few that calls with several tensors are cut into several batches.
    fn batch_bytes(&self) -> usize {
        1 << 14
    }

    fn alloc(&self, len: usize) -> Result<DeviceBuf> {
        let fill = if self.has(Fault::AllocNotZeroed) { 0xCD } else { 0 };
        if self.has(Fault::HugeAllocPanics) {
            assert!(len < isize::MAX.unsigned_abs(), "capacity overflow");
        }
        let memory = if self.has(Fault::ReuseNotZeroed) { self.pool.alloc(len) } else { PretendMemory::new(len, fill) };
        let memory = memory.ok_or_else(|| self.fault_of_device(format!("cannot allocate {len} bytes")))?;
        Ok(DeviceBuf::new(Arc::new(memory), self.info.id))
    }

    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()> {
        self.check_transfer(target, source.len())?;
        self.with_memory(target, |memory| {
            let range = if self.has(Fault::TransferOffsetIgnored) { 0..target.len() } else { target.range() };
            let len = source.len().min(range.len());
            memory[range.start..range.start + len].copy_from_slice(&source[..len]);
        })
    }

    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()> {
        self.check_transfer(source, target.len())?;
        self.with_memory(source, |memory| {
            let len = source.len().min(target.len());
            target[..len].copy_from_slice(&memory[source.range()][..len]);
        })
    }

    fn copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.info.check_copy(source, target)?;
        let bytes = self.with_memory(source, |memory| memory[source.range()].to_vec())?;
        let start = if self.has(Fault::CopyOffsetIgnored) { 0 } else { target.range().start };
        self.with_memory(target, |memory| memory[start..start + bytes.len()].copy_from_slice(&bytes))
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        let thread = std::thread::current().id();
        if *self.first_thread.get_or_init(|| thread) != thread && self.has(Fault::OtherThreadsFail) {
            return Err(self.fault_of_device("no current context".into()));
        }
        if batch.jobs().is_empty() && self.has(Fault::EmptyBatchFails) {
            return Err(self.fault_of_device("a launch of no blocks".into()));
        }
        self.info.check_batch(batch.device())?;
        let mut jobs: Vec<_> = batch.checked_jobs().collect();
        let count = jobs.len();
        for index in self.order(count) {
            let result = self.encode_job(&mut jobs[index]);
            if !(self.has(Fault::StatusForgotten) && index + 1 == count && count > 1) {
                jobs[index].finish(result);
            }
        }
        Ok(())
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut jobs: Vec<_> = batch.checked_jobs().collect();
        let (count, mut spoiled) = (jobs.len(), false);
        for index in self.order(count) {
            let mut result = self.decode_job(&mut jobs[index]);
            if let (Ok(changed), Fault::BadJobSpoilsBatch) = (&result, self.fault.unwrap_or(Fault::AllocNotZeroed)) {
                spoiled |= changed;
                if spoiled {
                    result = Err(self.fault_of_device("illegal address".into()));
                }
            }
            if !(self.has(Fault::EmptyJobForgotten) && jobs[index].plan().target_len() == 0) {
                jobs[index].finish(result.map(|_| ()));
            }
        }
        Ok(())
    }
}

impl Pretend {
    fn has(&self, fault: Fault) -> bool {
        self.fault == Some(fault)
    }

    /// The variants differ in the order of jobs.
    fn order(&self, jobs: usize) -> Vec<usize> {
        if self.info.variant == VARIANTS[0] { (0..jobs).collect() } else { (0..jobs).rev().collect() }
    }

    fn fault_of_device(&self, message: String) -> Error {
        Error::Device { device: self.info.name.clone(), message }
    }

    fn check_transfer(&self, device: &DeviceSlice, host_len: usize) -> Result<()> {
        match self.fault {
            Some(Fault::TransferLengthsUnchecked) => self.info.check_transfer(device, device.len()),
            Some(Fault::ForeignMemoryAccepted) if device.buffer().backend() != self.info.id => Ok(()),
            _ => self.info.check_transfer(device, host_len),
        }
    }

    fn with_memory<T>(&self, slice: &DeviceSlice, work: impl FnOnce(&mut [u8]) -> T) -> Result<T> {
        let memory = slice.buffer().downcast::<PretendMemory>();
        let memory =
            memory.ok_or_else(|| Error::Argument(format!("device memory of another backend given to `{NAME}`")))?;
        Ok(memory.with(work))
    }

    fn read(&self, source: &Source<'_>) -> Result<Vec<u8>> {
        match source {
            Source::Host(bytes) => Ok(bytes.to_vec()),
            Source::Device(slice) => self.with_memory(slice, |memory| {
                let range = if self.has(Fault::SourceOffsetIgnored) { 0..slice.len() } else { slice.range() };
                let bytes = memory[range].to_vec();
                if let (true, Some(first)) = (self.has(Fault::SourceTouched), memory.get_mut(slice.range().start)) {
                    *first ^= 1;
                }
                bytes
            }),
        }
    }

    /// Writes `bytes` into a target from byte `at`; `end` is where the plan ends.
    fn write(&self, target: TargetMut<'_>, at: usize, bytes: &[u8], end: usize) -> Result<()> {
        match target {
            TargetMut::Host(target) => {
                target[at..at + bytes.len()].copy_from_slice(bytes);
                if let (true, Some(beyond)) = (self.has(Fault::SpareTouched), target.get_mut(end)) {
                    *beyond = 0;
                }
                Ok(())
            }
            TargetMut::Device(slice) => self.with_memory(slice, |memory| {
                let start = if self.has(Fault::TargetOffsetIgnored) { 0 } else { slice.range().start };
                memory[start + at..start + at + bytes.len()].copy_from_slice(bytes);
                let end = start + end;
                let stray = match self.fault {
                    Some(Fault::BytePastEndWritten) => end..end + 1,
                    Some(Fault::ByteBeforeStartWritten) => start.max(1) - 1..start,
                    Some(Fault::WholeWordsWritten) => end..end.next_multiple_of(4),
                    _ => 0..0,
                };
                if let Some(stray) = memory.get_mut(stray) {
                    stray.fill(0);
                }
            }),
        }
    }
}
