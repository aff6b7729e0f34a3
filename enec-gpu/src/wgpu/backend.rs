//! The backend: opening it, its memory, and its queue.

use std::fmt;
use std::sync::{Arc, Mutex};

use enec_core::{
    Backend, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, Driver, EncodeBatch, Error, KernelTime, OpenOptions,
    Result,
};

use crate::wgpu::adapter;
use crate::wgpu::gpu::{Gpu, lock};
use crate::wgpu::memory::{Bytes, USAGE, WgpuMemory};
use crate::wgpu::pipelines::{Choice, Variant};
use crate::wgpu::ring::Ring;
use crate::wgpu::transfer::{self, Destination};
use crate::wgpu::window::Origin;
use crate::wgpu::{decode, encode};

/// The driver of this backend.
pub static DRIVER: Driver = Driver {
    name: "wgpu",
    probe: || {
        adapter::adapter(0)?;
        let describe = |(index, adapter): (usize, &wgpu::Adapter)| {
            let (info, limits) = (adapter.get_info(), adapter.limits());
            adapter::describe(index, &info, &limits, adapter.features(), Variant::ALL[0])
        };
        Ok(adapter::adapters().iter().enumerate().map(describe).collect())
    },
    open: |options| Ok(Arc::new(WgpuBackend::open(options)?)),
};

/// Encodes and decodes on a device with Vulkan, Metal or DX12. Its device memory is wgpu buffers.
pub struct WgpuBackend {
    info: DeviceInfo,
    gpu: Arc<Gpu>,
    /// One backend is one ordered queue.
    ring: Mutex<Ring>,
}

impl WgpuBackend {
    /// Opens an adapter. Backends of the same adapter share the wgpu device, and so the compiled kernels.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if there is no such adapter, if its driver does not open it, and for unknown kernels.
    pub fn open(options: &OpenOptions) -> Result<Self> {
        let kernels = Choice::new(variant(options)?);
        Ok(Self::new(Gpu::of_adapter(options.device)?, options.device, kernels))
    }

    /// Uses a device that the caller has opened, so that what is decoded can be bound by the caller's own shaders.
    ///
    /// The device is opened with the limits that matter to the caller: buffers and bindings up to them can be used, in windows, so larger ones
    /// mean fewer submissions. With [`Features::TIMESTAMP_QUERY`](wgpu::Features::TIMESTAMP_QUERY) kernels are timed. `options` choose the
    /// kernels. Reacting to a lost device is the caller's business.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if the limits are below what the kernels need, and for unknown kernels.
    pub fn with_device(device: wgpu::Device, queue: wgpu::Queue, options: &OpenOptions) -> Result<Self> {
        let kernels = Choice::new(variant(options)?);
        if let Some(missing) = adapter::missing(&device.limits()) {
            return Err(Error::Unavailable { backend: "wgpu".into(), reason: format!("the device has {missing}") });
        }
        Ok(Self::new(Arc::new(Gpu::new(device, queue)), options.device, kernels))
    }

    fn new(gpu: Arc<Gpu>, index: usize, kernels: Choice) -> Self {
        let (adapter, limits, features) = (gpu.device.adapter_info(), gpu.device.limits(), gpu.device.features());
        let info = adapter::describe(index, &adapter, &limits, features, kernels.variant());
        Self { info, ring: Mutex::new(Ring::new(Arc::clone(&gpu), kernels)), gpu }
    }

    /// The wgpu device.
    #[must_use]
    pub fn device(&self) -> &wgpu::Device {
        &self.gpu.device
    }

    /// The queue that everything is submitted to. What is submitted after a call of the backend has returned sees its results.
    #[must_use]
    pub fn queue(&self) -> &wgpu::Queue {
        &self.gpu.queue
    }

    /// The wgpu buffer of this backend's memory, to bind or to copy from. Its size is that of the memory rounded up to whole words.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the memory is another backend's.
    pub fn buffer<'a>(&self, memory: &'a DeviceBuf) -> Result<&'a wgpu::Buffer> {
        let own = memory.downcast::<WgpuMemory>().filter(|_| memory.backend() == self.info.id);
        let own = own.ok_or_else(|| Error::Argument("device memory of another backend given to `wgpu`".into()))?;
        Ok(&own.buffer)
    }

    /// Memory that somebody else has made of this backend's device.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] unless the buffer can be used as `STORAGE`, `COPY_SRC` and `COPY_DST` and has whole words.
    pub fn import(&self, buffer: wgpu::Buffer) -> Result<DeviceBuf> {
        let len = usize::try_from(buffer.size()).unwrap_or(usize::MAX);
        if !buffer.usage().contains(USAGE) || !len.is_multiple_of(4) {
            let message = format!(
                "a buffer of {len} bytes with {:?}: a multiple of 4 and `STORAGE`, `COPY_SRC` and `COPY_DST` are needed",
                buffer.usage()
            );
            return Err(Error::Argument(message));
        }
        Ok(DeviceBuf::new(Arc::new(WgpuMemory { buffer, len }), self.info.id))
    }
}

fn variant(options: &OpenOptions) -> Result<Option<Variant>> {
    let Some(name) = &options.variant else { return Ok(None) };
    Variant::ALL.into_iter().find(|variant| variant.name() == name).map(Some).ok_or_else(|| {
        let known: Vec<String> = Variant::ALL.iter().map(|variant| format!("`{}`", variant.name())).collect();
        let reason = format!("there are no kernels `{name}`; use one of {}", known.join(", "));
        Error::Unavailable { backend: "wgpu".into(), reason }
    })
}

impl fmt::Debug for WgpuBackend {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("WgpuBackend").field("info", &self.info).finish_non_exhaustive()
    }
}

impl Backend for WgpuBackend {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, len: usize) -> Result<DeviceBuf> {
        let limit = self.gpu.device.limits().max_buffer_size;
        if len as u64 > limit - limit % 4 {
            return Err(self.gpu.error(format!("cannot allocate {len} bytes: its buffers have at most {limit}")));
        }
        // wgpu zeroes memory before its first use.
        let buffer = self.gpu.checked(|| Ok(self.gpu.buffer("enec memory", len as u64, USAGE)))?;
        Ok(DeviceBuf::new(Arc::new(WgpuMemory { buffer, len }), self.info.id))
    }

    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()> {
        self.info.check_transfer(target, source.len())?;
        let target = Destination::Memory(Bytes::of(target)?);
        transfer::run(&mut lock(&self.ring), &Origin::Host(source), target, source.len())
    }

    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()> {
        self.info.check_transfer(source, target.len())?;
        let (source, len) = (Origin::Memory(Bytes::of(source)?), target.len());
        transfer::run(&mut lock(&self.ring), &source, Destination::Host(target), len)
    }

    fn copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.info.check_copy(source, target)?;
        let (source, target) = (Bytes::of(source)?, Bytes::of(target)?);
        lock(&self.ring).timed(|ring| transfer::copy(ring, &source, &target))
    }

    fn kernel_time(&self) -> Option<KernelTime> {
        lock(&self.ring).kernel_time()
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut jobs: Vec<_> = batch.checked_jobs().collect();
        lock(&self.ring).timed(|ring| encode::run(ring, &mut jobs))
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.info.check_batch(batch.device())?;
        let mut jobs: Vec<_> = batch.checked_jobs().collect();
        lock(&self.ring).timed(|ring| decode::run(ring, &mut jobs))
    }
}
