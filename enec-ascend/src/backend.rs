//! The backend: an opened device as one queue.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use enec_core::{
    Backend, DecodeBatch, DeviceBuf, DeviceInfo, DeviceMemory, DeviceSlice, Driver, EncodeBatch, Error, KernelTime,
    OpenOptions, Result,
};

use crate::acl::device::Device;
use crate::acl::memory::Memory;
use crate::configuration::Configuration;
use crate::place::span;
use crate::probe::{self, Found};
use crate::queue::{Cores, Queue, device_error};
use crate::{decode, encode};

/// The driver of this backend.
pub static DRIVER: Driver = Driver {
    name: "ascend",
    probe: || AscendBackend::probe(&Configuration::of_environment()?),
    open: |options| Ok(Arc::new(AscendBackend::open(&Configuration::of_environment()?, options)?)),
};

/// Encodes and decodes on an Ascend NPU of the 910B family.
#[derive(Debug)]
pub struct AscendBackend {
    info: DeviceInfo,
    configuration: Configuration,
    device: Arc<Device>,
    queue: Mutex<Queue>,
}

impl AscendBackend {
    /// The devices that can be opened.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] with the reason why there is none: AscendCL or the driver not installed, no device, no permission, a chip that the
    /// kernels are not made for, or no kernels in this build.
    pub fn probe(configuration: &Configuration) -> Result<Vec<DeviceInfo>> {
        let machine = probe::machine(configuration)?;
        (0..machine.devices).map(|index| Ok(probe::device(configuration, &machine, index)?.info)).collect()
    }

    /// Opens a device and loads the kernels.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] as [`probe`](Self::probe), if there is no such device, or if it refuses the kernels; [`Error::Argument`] for an
    /// unknown variant.
    pub fn open(configuration: &Configuration, options: &OpenOptions) -> Result<Self> {
        if let Some(variant) = options.variant.as_deref().filter(|variant| *variant != configuration.variant) {
            let known = configuration.variants;
            let message = format!("variant `{variant}` of `{}`, expected one of {known:?}", configuration.backend);
            return Err(Error::Argument(message));
        }
        let machine = probe::machine(configuration)?;
        let Found { device, info, cores, kernels } = probe::device(configuration, &machine, options.device)?;
        let cores = if configuration.cores.is_some() { Cores::Exactly(cores) } else { Cores::AtMost(cores) };
        let queue =
            Queue::new(&device, &info.name, &kernels, cores).map_err(|reason| configuration.unavailable(reason))?;
        Ok(Self { info, configuration: configuration.clone(), device, queue: Mutex::new(queue) })
    }

    /// Waits for the queue. What a panicking thread left in device memory is bytes like any other.
    fn lock(&self) -> MutexGuard<'_, Queue> {
        self.queue.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Backend for AscendBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, len: usize) -> Result<DeviceBuf> {
        let refused = |error| device_error(&self.info.name, &error);
        let memory = Memory::new(&self.device, len).map_err(refused)?;
        let entered = self.device.enter().map_err(refused)?;
        entered.clear(memory.span(0..memory.len())).map_err(refused)?;
        Ok(DeviceBuf::new(Arc::new(memory), self.info.id))
    }

    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()> {
        self.info.check_transfer(target, source.len())?;
        let target = span(target)?;
        self.lock().run(|batch| batch.done(batch.entered.upload(source, target)))
    }

    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()> {
        self.info.check_transfer(source, target.len())?;
        let source = span(source)?;
        self.lock().run(|batch| batch.done(batch.entered.download(source, target)))
    }

    fn copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.info.check_copy(source, target)?;
        let (source, target) = (span(source)?, span(target)?);
        self.lock()
            .run(|batch| batch.timed(|batch| batch.done(batch.entered.copy_within(source, target, batch.stream))))
    }

    fn kernel_time(&self) -> Option<KernelTime> {
        self.lock().time.map(self.configuration.time)
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut checked: Vec<_> = batch.checked_jobs().collect();
        let mut jobs: Vec<encode::Job<'_, '_>> = Vec::with_capacity(checked.len());
        for job in &mut checked {
            let (plan, source, target, _) = job.split();
            jobs.push(encode::Job { plan, source, target });
        }
        let outcomes = self.lock().run(|batch| encode::run(batch, &mut jobs))?;
        drop(jobs);
        for (job, outcome) in checked.iter_mut().zip(outcomes) {
            job.finish(Ok(outcome));
        }
        Ok(())
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut checked: Vec<_> = batch.checked_jobs().collect();
        let mut jobs: Vec<decode::Job<'_, '_>> = Vec::with_capacity(checked.len());
        for job in &mut checked {
            let (plan, source, target, _) = job.split();
            jobs.push(decode::Job { plan, source, target });
        }
        self.lock().run(|batch| decode::run(batch, &mut jobs))?;
        drop(jobs);
        for job in &mut checked {
            job.finish(Ok(()));
        }
        Ok(())
    }
}
