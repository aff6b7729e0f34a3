//! The backend: opening it, its memory, memory and streams of others, batches.

use std::any::Any;
use std::fmt;
use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use enec_core::{
    Backend, BackendId, Codecs, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, EncodeBatch, Error, KernelTime, Result,
};

use super::decode::Decoding;
use super::encode::Encoding;
use super::launcher::{self, Address, Event, Failure, Launcher, Queue};
use super::memory::{self, CudaMemory};
use super::ring::{Ring, Work};
use super::transfer::{Bytes, Place, Transfer};

/// How a backend uses its device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Settings {
    /// Pairs of staging buffers that are filled in turn.
    pub turns: usize,
    /// Bytes of each staging buffer; at least [`SMALLEST_BUFFER`](Self::SMALLEST_BUFFER).
    pub buffer_bytes: usize,
    /// Host threads that copy to and from staging buffers.
    pub threads: NonZeroUsize,
}

impl Settings {
    /// The smallest staging buffer that takes a block of any type.
    pub const SMALLEST_BUFFER: usize = 128 << 10;

    /// Three buffers of 16 MiB each way, and up to four threads.
    #[must_use]
    pub fn new(threads: Option<NonZeroUsize>) -> Self {
        // A few cores saturate the bus.
        let all = || std::thread::available_parallelism().unwrap_or(NonZeroUsize::MIN).min(MOST_THREADS);
        Self { turns: 3, buffer_bytes: 16 << 20, threads: threads.unwrap_or_else(all) }
    }
}

const MOST_THREADS: NonZeroUsize = NonZeroUsize::new(4).unwrap();

/// What a backend is called, and what its kernels are.
#[derive(Debug, Clone)]
pub struct Names {
    /// The backend's name.
    pub backend: &'static str,
    /// The kernels in use.
    pub variant: &'static str,
    /// The kernels that there are.
    pub variants: Vec<&'static str>,
}

/// Encodes and decodes with CUDA kernels.
pub struct CudaBackend {
    info: DeviceInfo,
    launcher: Arc<dyn Launcher>,
    settings: Settings,
    /// Held by whoever gives the device anything to do: one backend is one ordered queue.
    queue: Mutex<State>,
}

struct State {
    /// Made by the first call that needs it.
    ring: Option<Ring>,
    started: Event,
    ended: Event,
    kernel_time: Option<Duration>,
}

impl CudaBackend {
    /// A backend over a launcher.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if the launcher cannot make events, [`Error::Argument`] if the settings are too small.
    pub fn new(launcher: Arc<dyn Launcher>, names: Names, settings: Settings) -> Result<Self> {
        if settings.turns == 0 || settings.buffer_bytes < Settings::SMALLEST_BUFFER {
            let smallest = Settings::SMALLEST_BUFFER;
            return Err(Error::Argument(format!("{settings:?}: expected one turn and {smallest} bytes at least")));
        }
        let description = launcher.description();
        let info = DeviceInfo {
            id: BackendId::unique(),
            backend: names.backend,
            index: description.index,
            name: description.name.clone(),
            fingerprint: format!("{} {}", description.fingerprint, names.variant),
            memory: description.memory,
            variant: names.variant,
            variants: names.variants,
            codecs: Codecs::ENEC,
        };
        let failed = |failure| device_error(&info, failure);
        let (started, ended) = (launcher.event().map_err(failed)?, launcher.event().map_err(failed)?);
        let queue = Mutex::new(State { ring: None, started, ended, kernel_time: None });
        Ok(Self { info, launcher, settings, queue })
    }

    /// Takes device memory of somebody else as memory of this backend, without copying it. `owner` is dropped with the last handle.
    ///
    /// The memory may have been allocated in any way that this process's kernels can reach on this device: by `cuMemAlloc`, `cudaMalloc`, or a pool
    /// such as PyTorch's. What others do to it is ordered with this backend's calls in one of two ways: their stream is the one that the
    /// backend uses (`on_stream`), or they have waited for it before the call. When a call returns, what it wrote
    /// is there for every stream.
    ///
    /// # Safety
    ///
    /// - From `address` on, `len` bytes are device memory of this backend's device, and stay so until `owner` is dropped.
    /// - Nobody else writes what a call reads, or uses what it writes, while the call runs.
    /// - Two imports whose bytes overlap are not used in one batch: overlaps are noticed within one import only.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the range is null or goes beyond the address space.
    #[allow(unsafe_code, reason = "nothing can check an address")]
    pub unsafe fn import(&self, address: Address, len: usize, owner: Box<dyn Any + Send + Sync>) -> Result<DeviceBuf> {
        if (address == 0 && len > 0) || address.checked_add(len as u64).is_none() {
            return Err(Error::Argument(format!("{len} bytes at {address:#x} cannot be device memory")));
        }
        Ok(DeviceBuf::new(Arc::new(CudaMemory::import(&self.launcher, address, len, owner)), self.info.id))
    }

    /// The device address of a slice of this backend's memory, for kernels of others. It is valid as long as the slice's buffer lives; what
    /// holds for the bytes of [`import`](Self::import) holds for these.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the memory is another backend's.
    pub fn address(&self, slice: &DeviceSlice) -> Result<Address> {
        self.info.check_transfer(slice, slice.len())?;
        memory::address(slice)
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        // What a panicking thread left under way goes into buffers that are only read after the next turn has been waited for.
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn threads(&self) -> usize {
        self.settings.threads.get()
    }

    fn failed(&self, failure: Failure) -> Error {
        device_error(&self.info, failure)
    }

    /// Takes work through the ring.
    fn run<W: Work>(&self, state: &mut State, work: &mut W) -> Result<Option<Duration>> {
        let ring = match &mut state.ring {
            Some(ring) => ring,
            none => {
                let ring = Ring::new(&self.launcher, self.settings.turns, self.settings.buffer_bytes);
                none.insert(ring.map_err(|failure| self.failed(failure))?)
            }
        };
        ring.run(work).map_err(|failure| self.failed(failure))
    }

    /// Runs operations on the compute queue, waits for them, and gives the time that they took.
    fn compute(&self, state: &State, operations: impl FnOnce() -> launcher::Result<()>) -> Result<Option<Duration>> {
        let run = || {
            self.launcher.record(Queue::Compute, state.started)?;
            operations()?;
            self.launcher.record(Queue::Compute, state.ended)?;
            self.launcher.synchronise(state.ended)?;
            self.launcher.elapsed(state.started, state.ended)
        };
        run().map_err(|failure| {
            self.launcher.drain();
            self.failed(failure)
        })
    }
}

fn device_error(info: &DeviceInfo, failure: Failure) -> Error {
    Error::Device { device: format!("{}:{}", info.backend, info.index), message: failure.0 }
}

impl fmt::Debug for CudaBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CudaBackend")
            .field("info", &self.info)
            .field("settings", &self.settings)
            .finish_non_exhaustive()
    }
}

#[allow(unsafe_code, reason = "operations run after the calls that ask for them")]
impl Backend for CudaBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, len: usize) -> Result<DeviceBuf> {
        let state = self.lock();
        let memory = CudaMemory::allocate(&self.launcher, len).map_err(|failure| self.failed(failure))?;
        if len > 0 {
            // SAFETY: just allocated with this length, and nobody else knows it before the operation has been waited for.
            self.compute(&state, || unsafe { self.launcher.zero(Queue::Compute, memory.address(), len) })?;
        }
        Ok(DeviceBuf::new(Arc::new(memory), self.info.id))
    }

    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()> {
        self.info.check_transfer(target, source.len())?;
        let target = Place::Device(memory::address(target)?);
        let mut transfer = Transfer::new(Bytes::Host(source), target, source.len(), self.threads());
        self.run(&mut self.lock(), &mut transfer)?;
        Ok(())
    }

    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()> {
        self.info.check_transfer(source, target.len())?;
        let (source, len) = (Bytes::Device(memory::address(source)?), target.len());
        let mut transfer = Transfer::new(source, Place::Host(target), len, self.threads());
        self.run(&mut self.lock(), &mut transfer)?;
        Ok(())
    }

    fn copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.info.check_copy(source, target)?;
        let (from, to, len) = (memory::address(source)?, memory::address(target)?, source.len());
        let mut state = self.lock();
        if len > 0 {
            // SAFETY: both slices are borrowed until the operation has been waited for; they do not overlap, and the lock is held.
            let copy = || unsafe { self.launcher.copy(Queue::Compute, from, to, len) };
            state.kernel_time = self.compute(&state, copy)?;
        }
        Ok(())
    }

    fn kernel_time(&self) -> Option<KernelTime> {
        self.lock().kernel_time.map(KernelTime::Measured)
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut checked: Vec<_> = batch.checked_jobs().collect();
        let mut state = self.lock();
        let mut encoding = Encoding::new(&self.launcher, &mut checked, self.threads())?;
        let mut time = self.run(&mut state, &mut encoding)?;
        if encoding.store() {
            time = time.zip(self.run(&mut state, &mut encoding)?).map(|(sum, time)| sum + time);
        }
        state.kernel_time = time;
        let results: Vec<_> = encoding.into_results().collect();
        checked.iter_mut().zip(results).for_each(|(job, result)| job.finish(result));
        Ok(())
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut checked: Vec<_> = batch.checked_jobs().collect();
        let mut state = self.lock();
        let mut decoding = Decoding::new(&mut checked, self.threads())?;
        state.kernel_time = self.run(&mut state, &mut decoding)?;
        let results: Vec<_> = decoding.into_results().collect();
        checked.iter_mut().zip(results).for_each(|(job, result)| job.finish(result));
        Ok(())
    }
}
