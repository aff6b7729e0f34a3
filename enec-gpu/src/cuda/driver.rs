//! The launcher over NVIDIA's driver, which is loaded when it is first asked for.

#![allow(unsafe_code, reason = "the driver's interface is C")]

use std::collections::HashMap;
use std::ffi::c_void;
use std::fmt;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, result, sys};
use cudarc::nvrtc::Ptx;
use enec_core::{Driver, Error, OpenOptions};

use super::device::{Device, VARIANT, describe, probe, unavailable};
use super::launcher::{Address, Description, Event, Failure, Launch, Launcher, Queue, Result};
use super::{CudaBackend, Kernel, Names, Settings};

/// The driver of this backend.
pub static DRIVER: Driver = Driver { name: "cuda", probe, open: |options| Ok(Arc::new(CudaBackend::open(options)?)) };

/// The compiled kernels, by `cargo xtask codegen`.
const PTX: [&str; 3] = [
    include_str!("../../kernels/copy.ptx"),
    include_str!("../../kernels/encode.ptx"),
    include_str!("../../kernels/decode.ptx"),
];

impl CudaBackend {
    /// Opens a device, on a stream of its own.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] without a driver, without such a device, for a device older than compute capability 8.0, and for other kernels than
    /// there are; [`Error::Device`] if the device fails.
    pub fn open(options: &OpenOptions) -> enec_core::Result<Self> {
        Self::open_with(options, |context| context.new_stream())
    }

    /// Opens a device whose kernels run on a stream of the caller's: what the caller has put there before a call is done before the call touches
    /// memory that the caller knows, and what it puts there afterwards finds the call's work done. Calls still wait for their
    /// work. `stream` is a `CUstream` or `cudaStream_t`; null is the default stream.
    ///
    /// # Safety
    ///
    /// The stream is one of the device's primary context, the one that CUDA's runtime and all frameworks on it use, and it is not destroyed before
    /// the backend and all of its memory have been dropped.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open).
    pub unsafe fn on_stream(options: &OpenOptions, stream: *mut c_void) -> enec_core::Result<Self> {
        // SAFETY: as the caller promises.
        Self::open_with(options, |context| Ok(unsafe { context.wrap_borrowed_stream(stream.cast()) }))
    }

    fn open_with(
        options: &OpenOptions,
        compute: impl FnOnce(&Arc<CudaContext>) -> Result<Arc<CudaStream>, DriverError>,
    ) -> enec_core::Result<Self> {
        if let Some(variant) = options.variant.as_deref().filter(|variant| *variant != VARIANT) {
            return Err(unavailable(format!("kernels `{variant}` asked for, there are `{VARIANT}`")));
        }
        let device = Device::find(options.device)?;
        let launcher = DriverLauncher::new(&device, compute)
            .map_err(|failure| Error::Device { device: format!("cuda:{}", options.device), message: failure.0 })?;
        Self::new(Arc::new(launcher), names(), Settings::new(options.threads))
    }
}

fn names() -> Names {
    Names { backend: "cuda", variant: VARIANT, variants: vec![VARIANT] }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Failure(describe(error))
    }
}

/// A device through the driver, with its streams.
struct DriverLauncher {
    description: Description,
    context: Arc<CudaContext>,
    /// In the order of [`Queue::ALL`].
    streams: [Arc<CudaStream>; 4],
    functions: HashMap<Kernel, CudaFunction>,
    events: Mutex<Vec<u64>>,
}

impl DriverLauncher {
    fn new(
        device: &Device,
        compute: impl FnOnce(&Arc<CudaContext>) -> Result<Arc<CudaStream>, DriverError>,
    ) -> Result<Self> {
        let context = CudaContext::new(device.index)?;
        let streams = [context.new_stream()?, compute(&context)?, context.new_stream()?, context.new_stream()?];
        let modules =
            PTX.iter().map(|text| context.load_module(Ptx::from_src(*text))).collect::<Result<Vec<_>, _>>()?;
        let mut functions = HashMap::new();
        for kernel in Kernel::ALL {
            let function = modules.iter().find_map(|module| module.load_function(kernel.name()).ok());
            let missing = || Failure(format!("the kernels lack `{}`; run `cargo xtask codegen`", kernel.name()));
            functions.insert(kernel, function.ok_or_else(missing)?);
        }
        let description = device.description.clone();
        Ok(Self { description, context, streams, functions, events: Mutex::default() })
    }

    /// The stream of a queue, with the device's context current in this thread.
    fn stream(&self, queue: Queue) -> Result<sys::CUstream> {
        self.context.bind_to_thread()?;
        Ok(self.streams[queue as usize].cu_stream())
    }
}

/// An event's handle as the driver has it.
fn handle(event: Event) -> sys::CUevent {
    ptr::with_exposed_provenance_mut(usize::try_from(event.0).unwrap_or_default())
}

impl Launcher for DriverLauncher {
    fn description(&self) -> &Description {
        &self.description
    }

    fn allocate(&self, len: usize) -> Result<Address> {
        let stream = self.stream(Queue::Compute)?;
        // A plain error here, an overflow in some drivers.
        if len > isize::MAX.unsigned_abs() / 2 {
            return Err(Failure(format!("cannot allocate {len} bytes")));
        }
        let no_room = |error| Failure(format!("cannot allocate {len} bytes: {}", describe(error)));
        if !self.context.has_async_alloc() {
            // SAFETY: the memory is used with this context only.
            return unsafe { result::malloc_sync(len) }.map_err(no_room);
        }
        // SAFETY: as above; it can be used by any stream once the allocation has been waited for.
        let address = unsafe { result::malloc_async(stream, len) }.map_err(no_room)?;
        // SAFETY: the stream lives.
        unsafe { result::stream::synchronize(stream)? };
        Ok(address)
    }

    unsafe fn free(&self, address: Address) {
        let Ok(stream) = self.stream(Queue::Compute) else { return };
        // SAFETY: allocated in the same way, and used no more, as the caller promises. A failure would be an earlier operation's.
        let _ = unsafe {
            if self.context.has_async_alloc() {
                result::free_async(address, stream)
            } else {
                result::free_sync(address)
            }
        };
    }

    fn allocate_pinned(&self, len: usize) -> Result<NonNull<u8>> {
        self.context.bind_to_thread()?;
        // SAFETY: no flags, and the memory is initialised below.
        let start = unsafe { result::malloc_host(len, 0)? };
        let start = NonNull::new(start.cast::<u8>()).ok_or_else(|| Failure("no page-locked memory".into()))?;
        // SAFETY: just allocated with this length.
        unsafe { start.as_ptr().write_bytes(0, len) };
        Ok(start)
    }

    unsafe fn free_pinned(&self, start: NonNull<u8>, _len: usize) {
        if self.context.bind_to_thread().is_ok() {
            // SAFETY: as the caller promises. A failure would be an earlier operation's.
            let _ = unsafe { result::free_host(start.as_ptr().cast()) };
        }
    }

    unsafe fn upload(&self, queue: Queue, source: *const u8, target: Address, len: usize) -> Result<()> {
        let stream = self.stream(queue)?;
        // SAFETY: as the caller promises.
        unsafe { result::memcpy_htod_async(target, slice::from_raw_parts(source, len), stream) }.map_err(Failure::from)
    }

    unsafe fn download(&self, queue: Queue, source: Address, target: *mut u8, len: usize) -> Result<()> {
        let stream = self.stream(queue)?;
        // SAFETY: as the caller promises.
        unsafe { result::memcpy_dtoh_async(slice::from_raw_parts_mut(target, len), source, stream) }
            .map_err(Failure::from)
    }

    unsafe fn copy(&self, queue: Queue, source: Address, target: Address, len: usize) -> Result<()> {
        let stream = self.stream(queue)?;
        // SAFETY: as the caller promises.
        unsafe { result::memcpy_dtod_async(target, source, len, stream) }.map_err(Failure::from)
    }

    unsafe fn zero(&self, queue: Queue, target: Address, len: usize) -> Result<()> {
        let stream = self.stream(queue)?;
        // SAFETY: as the caller promises.
        unsafe { result::memset_d8_async(target, 0, len, stream) }.map_err(Failure::from)
    }

    unsafe fn launch(&self, launch: &Launch) -> Result<()> {
        let stream = self.stream(Queue::Compute)?;
        let function = self.functions.get(&launch.kernel);
        let function = function.ok_or_else(|| Failure(format!("no kernel `{}`", launch.kernel.name())))?;
        let (mut units, mut count) = (launch.units, launch.count);
        let mut arguments = [(&raw mut units).cast::<c_void>(), (&raw mut count).cast()];
        let (grid, block) = ((launch.blocks, 1, 1), (Kernel::BLOCK_THREADS, 1, 1));
        // SAFETY: every kernel takes an address and a number, which the driver has copied when the call returns; what the units name is
        // the caller's promise.
        let launched = unsafe { result::launch_kernel(function.cu_function(), grid, block, 0, stream, &mut arguments) };
        launched.map_err(|error| Failure(format!("launching `{}`: {}", launch.kernel.name(), describe(error))))
    }

    fn event(&self) -> Result<Event> {
        self.context.bind_to_thread()?;
        let event = result::event::create(sys::CUevent_flags::CU_EVENT_DEFAULT)?;
        let event = event.expose_provenance() as u64;
        self.events.lock().unwrap_or_else(PoisonError::into_inner).push(event);
        Ok(Event(event))
    }

    fn record(&self, queue: Queue, event: Event) -> Result<()> {
        let stream = self.stream(queue)?;
        // SAFETY: events live as long as the launcher.
        unsafe { result::event::record(handle(event), stream) }.map_err(Failure::from)
    }

    fn wait(&self, queue: Queue, event: Event) -> Result<()> {
        let stream = self.stream(queue)?;
        let flags = sys::CUevent_wait_flags::CU_EVENT_WAIT_DEFAULT;
        // SAFETY: events live as long as the launcher.
        unsafe { result::stream::wait_event(stream, handle(event), flags) }.map_err(Failure::from)
    }

    fn synchronise(&self, event: Event) -> Result<()> {
        self.context.bind_to_thread()?;
        // SAFETY: events live as long as the launcher.
        unsafe { result::event::synchronize(handle(event)) }.map_err(Failure::from)
    }

    fn drain(&self) {
        for queue in Queue::ALL {
            if let Ok(stream) = self.stream(queue) {
                // SAFETY: the stream lives. What failed has been reported by whoever asks to drain.
                let _ = unsafe { result::stream::synchronize(stream) };
            }
        }
    }

    fn elapsed(&self, start: Event, end: Event) -> Result<Option<Duration>> {
        self.context.bind_to_thread()?;
        // SAFETY: events live as long as the launcher.
        let milliseconds = unsafe { result::event::elapsed(handle(start), handle(end))? };
        Ok(Some(Duration::from_secs_f64(f64::from(milliseconds).max(0.0) / 1e3)))
    }
}

impl Drop for DriverLauncher {
    fn drop(&mut self) {
        self.drain();
        if self.context.bind_to_thread().is_ok() {
            for event in self.events.get_mut().unwrap_or_else(PoisonError::into_inner).drain(..) {
                // SAFETY: made by `event`, and everything that waits for it has been waited for.
                let _ = unsafe { result::event::destroy(handle(Event(event))) };
            }
        }
    }
}

impl fmt::Debug for DriverLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DriverLauncher").field("description", &self.description).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn other_kernels_are_refused() {
        let options = OpenOptions { variant: Some("sm_999".into()), ..OpenOptions::default() };
        assert!(matches!(CudaBackend::open(&options), Err(Error::Unavailable { .. })));
    }
}
