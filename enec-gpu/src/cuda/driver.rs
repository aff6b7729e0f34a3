//! The launcher over NVIDIA's driver, which is loaded when it is first asked for.

#![allow(unsafe_code, reason = "the driver's interface is C")]

use std::collections::HashMap;
use std::ffi::{CStr, c_void};
use std::fmt;
use std::panic::catch_unwind;
use std::ptr::{self, NonNull};
use std::slice;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use cudarc::driver::{CudaContext, CudaFunction, CudaStream, DriverError, result, sys};
use cudarc::nvrtc::Ptx;
use enec_core::{BackendId, Codecs, DeviceInfo, Driver, Error, OpenOptions};

use super::launcher::{Address, Description, Event, Failure, Launch, Launcher, Queue, Result};
use super::{CudaBackend, Kernel, Names, Settings};

/// The driver of this backend.
pub static DRIVER: Driver = Driver { name: "cuda", probe, open: |options| Ok(Arc::new(CudaBackend::open(options)?)) };

/// The kernels: PTX for devices of compute capability 8.0 or newer, which the driver compiles for the device that it has.
const VARIANT: &str = "ptx80";
const OLDEST_DEVICE: (i32, i32) = (8, 0);
/// Drivers know the version of CUDA that they support as a number: 1000 times the major one, plus 10 times the minor one.
const OLDEST_DRIVER: i32 = 12_000;

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

fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { backend: "cuda".into(), reason: reason.into() }
}

fn probe() -> enec_core::Result<Vec<DeviceInfo>> {
    let count = device_count()?;
    let mut refused = Vec::new();
    let mut devices = Vec::new();
    for index in 0..count {
        match Device::find(index) {
            Ok(device) => devices.push(device.info()),
            Err(Error::Unavailable { reason, .. }) => refused.push(reason),
            Err(error) => refused.push(error.to_string()),
        }
    }
    if devices.is_empty() { Err(unavailable(refused.join("; "))) } else { Ok(devices) }
}

/// Loads the driver and counts its devices.
fn device_count() -> enec_core::Result<usize> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(load).clone().map_err(unavailable)?;
    let count = result::device::get_count().map_err(|error| unavailable(describe(error)))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(unavailable("the driver has no device")),
    }
}

/// Loads and initialises the driver.
fn load() -> Result<(), String> {
    // SAFETY: loading a library runs its initialisers; this one is the driver's, or whatever the user has put in its place.
    if !unsafe { sys::is_culib_present() } {
        return Err(absent());
    }
    // Asked before anything else: a function that an older driver lacks would be a panic in the bindings.
    let version = catch_unwind(|| {
        let mut version = 0;
        // SAFETY: the function writes one number, and may be called at any time.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result().map(|()| version)
    });
    let version = version.map_err(|_| "the driver's library lacks `cuDriverGetVersion`; is it a driver?")?;
    let version = version.map_err(describe)?;
    if version < OLDEST_DRIVER {
        let (found, oldest) = (decimal(version), decimal(OLDEST_DRIVER));
        return Err(format!(
            "the driver supports CUDA {found}; update it to one that supports {oldest} (525 or newer)"
        ));
    }
    result::init().map_err(describe)
}

fn decimal(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Why there is no driver: what was looked for, and where.
fn absent() -> String {
    let (library, variable) = if cfg!(windows) { ("nvcuda.dll", "PATH") } else { ("libcuda.so.1", "LD_LIBRARY_PATH") };
    let folders = match std::env::var(variable) {
        Ok(folders) if !folders.is_empty() => format!("`{variable}` is `{folders}`"),
        _ => format!("`{variable}` is not set"),
    };
    format!("no NVIDIA driver: the loader does not find `{library}` ({folders}); install it, or name its folder there")
}

/// The driver's name and text of an error.
fn describe(error: DriverError) -> String {
    let text = |text: Result<&CStr, DriverError>| text.ok().map(|text| text.to_string_lossy().into_owned());
    match (text(error.error_name()), text(error.error_string())) {
        (Some(name), Some(text)) => format!("`{name}`: {text}"),
        _ => format!("error {:?} of the driver", error.0 as u32),
    }
}

impl From<DriverError> for Failure {
    fn from(error: DriverError) -> Self {
        Failure(describe(error))
    }
}

/// A device that the kernels can run on.
struct Device {
    index: usize,
    description: Description,
}

impl Device {
    fn find(index: usize) -> enec_core::Result<Self> {
        let count = device_count()?;
        if index >= count {
            return Err(unavailable(format!("device {index} asked for, the driver has {count}, numbered from 0")));
        }
        let ordinal = i32::try_from(index).map_err(|_| unavailable(format!("device {index} asked for")))?;
        Self::describe(index, ordinal).map_err(|error| unavailable(format!("device {index}: {}", describe(error))))?
    }

    fn describe(index: usize, ordinal: i32) -> Result<enec_core::Result<Self>, DriverError> {
        use sys::CUdevice_attribute_enum as Attribute;

        let device = result::device::get(ordinal)?;
        // SAFETY: the device has just been given out by the driver.
        let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let (major, minor) = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let name = result::device::get_name(device)?;
        if (major, minor) < OLDEST_DEVICE {
            let (oldest, _) = OLDEST_DEVICE;
            let reason =
                format!("device {index}, {name}, has compute capability {major}.{minor}; {oldest}.0 is needed");
            return Ok(Err(unavailable(reason)));
        }
        let processors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let mut version = 0;
        // SAFETY: the function writes one number.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
        // SAFETY: as for the attributes.
        let memory = unsafe { result::device::total_mem(device)? };
        let fingerprint = format!("sm_{major}{minor} x{processors} driver {}", decimal(version));
        Ok(Ok(Self { index, description: Description { index, name, fingerprint, memory: Some(memory as u64) } }))
    }

    fn info(self) -> DeviceInfo {
        let Description { index, name, fingerprint, memory } = self.description;
        DeviceInfo {
            id: BackendId::unique(),
            backend: "cuda",
            index,
            name,
            fingerprint: format!("{fingerprint} {VARIANT}"),
            memory,
            variant: VARIANT,
            variants: vec![VARIANT],
            codecs: Codecs::ENEC,
        }
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
    fn versions_are_read_as_the_driver_writes_them() {
        assert_eq!((decimal(12_020), decimal(13_000), decimal(11_080)), ("12.2".into(), "13.0".into(), "11.8".into()));
    }

    /// Whatever this machine has, asking does not panic, and a refusal says what to do.
    #[test]
    fn asking_for_devices_does_not_panic() {
        match probe() {
            Ok(devices) => assert!(!devices.is_empty()),
            Err(Error::Unavailable { backend, reason }) => {
                assert_eq!(backend, "cuda");
                assert!(!reason.is_empty());
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn without_a_driver_the_reason_names_its_library() {
        let reason = absent();
        assert!(reason.contains("cuda") && reason.contains("PATH"), "{reason}");
    }

    #[test]
    fn other_kernels_are_refused() {
        let options = OpenOptions { variant: Some("sm_999".into()), ..OpenOptions::default() };
        assert!(matches!(CudaBackend::open(&options), Err(Error::Unavailable { .. })));
    }
}
