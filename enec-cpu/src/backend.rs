//! The backend: opening it, its memory, and which kernels run a batch.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::{fmt, panic, thread};

use enec_core::{
    Backend, BackendId, Codecs, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, Driver, EncodeBatch, Error,
    OpenOptions, Result, Source, TargetMut,
};

use crate::memory::{self, HostMemory};
use crate::schedule::STREAM_BYTES;
use crate::variant::{Variant, with_kernels};
use crate::workers::Workers;
use crate::{decode, encode};

/// The driver of this backend.
pub static DRIVER: Driver = Driver {
    name: "cpu",
    probe: || Ok(vec![describe(Variant::choose(None)?, None)]),
    open: |options| Ok(Arc::new(CpuBackend::open(options)?)),
};

/// Encodes and decodes on the host's cores. Its device memory is host memory.
pub struct CpuBackend {
    info: DeviceInfo,
    variant: Variant,
    workers: Workers,
    /// Held by whoever touches device memory: one backend is one ordered queue.
    queue: Mutex<()>,
}

impl CpuBackend {
    /// Opens the backend with the threads and kernels that the options ask for.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] for a device other than 0, for kernels that this processor cannot run, and if no threads can be started.
    pub fn open(options: &OpenOptions) -> Result<Self> {
        if options.device != 0 {
            let reason = format!("device {} asked for, there is only device 0", options.device);
            return Err(Error::Unavailable { backend: "cpu".into(), reason });
        }
        let variant = Variant::choose(options.variant.as_deref())?;
        let workers = Workers::new(options.threads)?;
        Ok(Self { info: describe(variant, Some(workers.threads())), variant, workers, queue: Mutex::new(()) })
    }

    /// Waits for device memory. What a panicking thread left there is bytes like any other.
    fn lock(&self) -> MutexGuard<'_, ()> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Runs a batch, alone if it uses device memory.
    fn in_turn(&self, uses_device: bool, run: impl FnOnce() -> Result<()> + Send) -> Result<()> {
        if !uses_device {
            return run();
        }
        let alone = || {
            let _queue = self.lock();
            run()
        };
        if rayon::current_thread_index().is_none() {
            return alone();
        }
        // A thread of the caller's pool takes up other work of that pool while it waits for ours. That may want the lock, which it would
        // then hold already. A thread of no pool just waits.
        thread::scope(|scope| scope.spawn(alone).join().unwrap_or_else(|panicked| panic::resume_unwind(panicked)))
    }
}

impl fmt::Debug for CpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CpuBackend").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Backend for CpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, len: usize) -> Result<DeviceBuf> {
        Ok(DeviceBuf::new(Arc::new(HostMemory::new(len)?), self.info.id))
    }

    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()> {
        self.info.check_transfer(target, source.len())?;
        let _queue = self.lock();
        let target = memory::bytes(target)?;
        // SAFETY: the memory is this backend's, its lock is held, and nothing else uses it meanwhile.
        unsafe { &mut *target }.copy_from_slice(source);
        Ok(())
    }

    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()> {
        self.info.check_transfer(source, target.len())?;
        let _queue = self.lock();
        let source = memory::bytes(source)?;
        // SAFETY: the memory is this backend's, its lock is held, and nothing else uses it meanwhile.
        target.copy_from_slice(unsafe { &*source });
        Ok(())
    }

    fn batch_bytes(&self) -> usize {
        STREAM_BYTES.saturating_mul(self.workers.threads())
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let team = self.workers.beside(batch.busy_cores());
        let mut checked: Vec<_> = batch.checked_jobs().collect();
        let uses_device = checked.iter_mut().any(|job| {
            let (_, source, target, _) = job.split();
            uses_device(source, &target)
        });
        // SAFETY: the lock of this backend's memory is held if a job uses any.
        self.in_turn(uses_device, || unsafe {
            with_kernels!(self.variant, kernels => encode::run(kernels, team, &mut checked))
        })
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let team = self.workers.beside(batch.busy_cores());
        let mut checked: Vec<_> = batch.checked_jobs().collect();
        let uses_device = checked.iter_mut().any(|job| {
            let (_, source, target, _) = job.split();
            uses_device(source, &target)
        });
        // SAFETY: the lock of this backend's memory is held if a job uses any.
        self.in_turn(uses_device, || unsafe {
            with_kernels!(self.variant, kernels => decode::run(kernels, team, &mut checked))
        })
    }
}

fn uses_device(source: &Source<'_>, target: &TargetMut<'_>) -> bool {
    matches!(source, Source::Device(_)) || matches!(target, TargetMut::Device(_))
}

fn describe(variant: Variant, threads: Option<usize>) -> DeviceInfo {
    let threads = threads.map_or(String::new(), |threads| format!(" threads={threads}"));
    DeviceInfo {
        id: BackendId::unique(),
        backend: "cpu",
        index: 0,
        name: format!("{} processor", std::env::consts::ARCH),
        fingerprint: format!("{} {}{threads}", std::env::consts::ARCH, variant.name()),
        memory: None,
        codecs: Codecs::ALL,
        variant: variant.name(),
        variants: Variant::available().into_iter().map(Variant::name).collect(),
    }
}
