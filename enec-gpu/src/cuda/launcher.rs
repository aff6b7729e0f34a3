//! The driver's calls that this backend is made of: memory, queues, events, launches.
//!
//! The [`Backend`](enec_core::Backend) over it does not know whether a driver stands behind the trait or the host executor that runs the
//! same kernel sources in tests: what is tested there is all of the backend but `driver`.

#![allow(
    unsafe_code,
    reason = "operations run after the calls that ask for them, on memory that the launcher does not own"
)]

use std::fmt;
use std::ptr::NonNull;
use std::time::Duration;

use super::Kernel;

/// An address in device memory.
pub type Address = u64;

/// One device, opened: what the backend asks of it.
///
/// Operations on one queue run in the order in which they were given; those of different queues in any order that events allow. An
/// operation may run at any time between its call and the return of the [`synchronise`](Self::synchronise) that covers it: until then the
/// host memory that it uses must stay alive and must not be written, and, if it is the target, not be read.
///
/// All methods may be called from any thread.
pub trait Launcher: fmt::Debug + Send + Sync + 'static {
    /// What the device is.
    fn description(&self) -> &Description;

    /// Allocates device memory with unspecified contents, on a multiple of 256 bytes. `len` is not 0.
    ///
    /// # Errors
    ///
    /// If there is not that much.
    fn allocate(&self, len: usize) -> Result<Address>;

    /// Frees device memory.
    ///
    /// # Safety
    ///
    /// `address` comes from [`allocate`](Self::allocate) of this launcher and is used no more, by no operation either.
    unsafe fn free(&self, address: Address);

    /// Allocates page-locked host memory, zeroed. `len` is not 0.
    ///
    /// # Errors
    ///
    /// If there is not that much.
    fn allocate_pinned(&self, len: usize) -> Result<NonNull<u8>>;

    /// Frees page-locked host memory.
    ///
    /// # Safety
    ///
    /// `start` and `len` are those of a call of [`allocate_pinned`](Self::allocate_pinned), and the memory is used no more, by no
    /// operation either.
    unsafe fn free_pinned(&self, start: NonNull<u8>, len: usize);

    /// Copies host memory to device memory.
    ///
    /// # Safety
    ///
    /// Both ranges of `len` bytes are valid until the operation has run, and nothing else uses the target meanwhile.
    unsafe fn upload(&self, queue: Queue, source: *const u8, target: Address, len: usize) -> Result<()>;

    /// Copies device memory to host memory.
    ///
    /// # Safety
    ///
    /// As [`upload`](Self::upload).
    unsafe fn download(&self, queue: Queue, source: Address, target: *mut u8, len: usize) -> Result<()>;

    /// Copies device memory to device memory, at any alignment.
    ///
    /// # Safety
    ///
    /// As [`upload`](Self::upload); the ranges do not overlap.
    unsafe fn copy(&self, queue: Queue, source: Address, target: Address, len: usize) -> Result<()>;

    /// Sets device memory to zero.
    ///
    /// # Safety
    ///
    /// As for the target of [`upload`](Self::upload).
    unsafe fn zero(&self, queue: Queue, target: Address, len: usize) -> Result<()>;

    /// Runs a kernel on the compute queue.
    ///
    /// # Safety
    ///
    /// `launch.units` is the address of as many units of the kernel's kind as `launch.count` says, in the form that `abi` describes; the
    /// memory that they name is valid until the operation has run, and nothing else uses what they write meanwhile.
    unsafe fn launch(&self, launch: &Launch) -> Result<()>;

    /// Makes an event. It lives as long as the launcher.
    ///
    /// # Errors
    ///
    /// The driver's.
    fn event(&self) -> Result<Event>;

    /// Marks the present end of a queue with an event, which stands for nothing else from now on.
    ///
    /// # Errors
    ///
    /// The driver's.
    fn record(&self, queue: Queue, event: Event) -> Result<()>;

    /// Lets a queue go on only when what the event marks has run.
    ///
    /// # Errors
    ///
    /// The driver's.
    fn wait(&self, queue: Queue, event: Event) -> Result<()>;

    /// Waits, on the host, until what the event marks has run, and with it everything that it waited for.
    ///
    /// # Errors
    ///
    /// The driver's; also those of the operations.
    fn synchronise(&self, event: Event) -> Result<()>;

    /// Waits for everything, whatever has failed.
    fn drain(&self);

    /// Time on the device between two recorded events of the compute queue, which have been waited for; `None` if nothing measures it.
    ///
    /// # Errors
    ///
    /// The driver's.
    fn elapsed(&self, start: Event, end: Event) -> Result<Option<Duration>>;
}

/// What a device is.
#[derive(Debug, Clone)]
pub struct Description {
    /// Index among the devices.
    pub index: usize,
    /// Its name, for people.
    pub name: String,
    /// Everything that can change speed: architecture, driver, how kernels are run.
    pub fingerprint: String,
    /// Bytes of device memory, if known.
    pub memory: Option<u64>,
}

/// The ordered queues (CUDA streams) of a backend.
///
/// Memory that callers know, their own or what a backend gave them, is touched by operations of [`Compute`](Self::Compute) only: that is the queue
/// which a caller's stream may stand for. The others move bytes between staging buffers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Queue {
    /// Staging buffers of the host to those of the device.
    Upload,
    /// Kernels, and whatever touches memory that callers know.
    Compute,
    /// Staging buffers of the device to those of the host.
    Download,
    /// The same, for what is known only when a kernel's result has been read: it must not wait behind the next downloads.
    Remainder,
}

impl Queue {
    /// All of them.
    pub const ALL: [Self; 4] = [Queue::Upload, Queue::Compute, Queue::Download, Queue::Remainder];
}

/// An event of one launcher: its own handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Event(pub u64);

/// One launch.
#[derive(Debug, Clone, Copy)]
pub struct Launch {
    /// Which kernel.
    pub kernel: Kernel,
    /// Device address of the units.
    pub units: Address,
    /// Number of units.
    pub count: u32,
    /// Thread blocks of [`Kernel::BLOCK_THREADS`] threads.
    pub blocks: u32,
}

/// What a device said when it failed. The backend adds the device's name.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Failure(pub String);

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Failure {}

/// Result of a launcher's call.
pub type Result<T, E = Failure> = std::result::Result<T, E>;
