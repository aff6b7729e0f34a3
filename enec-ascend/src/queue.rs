//! The queue of an opened device: its stream, its kernels, scratch memory, and the time that they took.

use std::ffi::CStr;
use std::sync::Arc;
use std::time::Duration;

use enec_core::{DeviceMemory, Error, Result};

use crate::abi;
use crate::acl::binary::{Binary, Kernel};
use crate::acl::device::{Device, Entered};
use crate::acl::error::Result as AclResult;
use crate::acl::memory::{Memory, Span};
use crate::acl::stream::{Event, Stream};
use crate::kernels::KernelSource;

/// Everything that one call at a time may use.
#[derive(Debug)]
pub(crate) struct Queue {
    device: Arc<Device>,
    /// For messages.
    name: String,
    stream: Stream,
    start: Event,
    end: Event,
    kernels: Kernels,
    cores: Cores,
    /// Kept from batch to batch: allocating takes long.
    scratch: Option<Arc<Memory>>,
    /// Of the last call that succeeded.
    pub(crate) time: Option<Duration>,
}

/// The entry points of a loaded object.
#[derive(Debug)]
pub(crate) struct Kernels {
    pub(crate) analyse: Kernel,
    pub(crate) encode: Kernel,
    pub(crate) decode: Kernel,
}

/// On how many cores kernels are launched.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Cores {
    /// One per work item, but not more than there are.
    AtMost(u32),
    /// So many, whatever there is to do.
    Exactly(u32),
}

/// One call's use of the queue. Work is in the stream only while it lives, and has been waited for when [`Queue::run`] returns.
pub(crate) struct Batch<'q> {
    pub(crate) entered: Entered<'q>,
    pub(crate) stream: &'q Stream,
    pub(crate) kernels: &'q Kernels,
    start: &'q Event,
    end: &'q Event,
    cores: Cores,
    name: &'q str,
    device: &'q Arc<Device>,
    scratch: &'q mut Option<Arc<Memory>>,
    time: Duration,
}

impl Queue {
    /// A queue of a device, with the kernels loaded.
    ///
    /// # Errors
    ///
    /// A sentence with AscendCL's reason.
    pub(crate) fn new(
        device: &Arc<Device>,
        name: &str,
        source: &KernelSource,
        cores: Cores,
    ) -> std::result::Result<Self, String> {
        let failed = |error: crate::acl::error::AclError| error.to_string();
        let binary = source.with_file(|path| {
            Binary::load(device, path).map_err(|error| format!("kernel object `{}`: {error}", path.display()))
        })?;
        let kernel = |name: &CStr| {
            let missing = |error| {
                format!("the kernel object is of another version of this crate: `{}`: {error}", name.to_string_lossy())
            };
            binary.kernel(name).map_err(missing)
        };
        Ok(Self {
            device: Arc::clone(device),
            name: name.to_owned(),
            stream: Stream::new(device).map_err(failed)?,
            start: Event::new(device).map_err(failed)?,
            end: Event::new(device).map_err(failed)?,
            kernels: Kernels {
                analyse: kernel(abi::ANALYSE)?,
                encode: kernel(abi::ENCODE)?,
                decode: kernel(abi::DECODE)?,
            },
            cores,
            scratch: None,
            time: None,
        })
    }

    /// Runs one call. Whatever becomes of it, no work is left in the stream afterwards.
    ///
    /// # Errors
    ///
    /// The call's, or [`Error::Device`].
    pub(crate) fn run<T>(&mut self, call: impl FnOnce(&mut Batch<'_>) -> Result<T>) -> Result<T> {
        let device = Arc::clone(&self.device);
        let entered = device.enter().map_err(|error| device_error(&self.name, &error))?;
        let mut batch = Batch {
            entered,
            stream: &self.stream,
            kernels: &self.kernels,
            start: &self.start,
            end: &self.end,
            cores: self.cores,
            name: &self.name,
            device: &device,
            scratch: &mut self.scratch,
            time: Duration::ZERO,
        };
        match call(&mut batch).and_then(|value| batch.wait().map(|()| value)) {
            Ok(value) => {
                self.time = Some(batch.time);
                Ok(value)
            }
            Err(error) => {
                // What is queued may use memory that the caller frees next.
                let _ = batch.stream.synchronize(&batch.entered);
                Err(error)
            }
        }
    }
}

impl Batch<'_> {
    /// An error of AscendCL as one of the device.
    pub(crate) fn done<T>(&self, result: AclResult<T>) -> Result<T> {
        result.map_err(|error| device_error(self.name, &error))
    }

    /// An error of the device that AscendCL does not know of.
    pub(crate) fn broken(&self, message: String) -> Error {
        Error::Device { device: self.name.to_owned(), message }
    }

    /// Waits for everything in the stream.
    pub(crate) fn wait(&self) -> Result<()> {
        self.done(self.stream.synchronize(&self.entered))
    }

    /// At least so many bytes of scratch memory, with whatever is in it. The queue keeps it, so that it outlives what uses it.
    pub(crate) fn scratch(&mut self, len: usize) -> Result<Arc<Memory>> {
        if let Some(memory) = &*self.scratch
            && memory.len() >= len
        {
            return Ok(Arc::clone(memory));
        }
        // The small one goes first: there may be no room for both.
        *self.scratch = None;
        let memory = Arc::new(self.done(Memory::new(self.device, len))?);
        Ok(Arc::clone(self.scratch.insert(memory)))
    }

    /// Runs what `queue` puts into the stream, waits for it, and adds its time.
    pub(crate) fn timed(&mut self, queue: impl FnOnce(&Self) -> Result<()>) -> Result<()> {
        self.done(self.start.record(self.stream, &self.entered))?;
        queue(self)?;
        self.done(self.end.record(self.stream, &self.entered))?;
        self.wait()?;
        self.time += self.done(self.start.until(self.end, &self.entered))?;
        Ok(())
    }

    /// Queues a launch over the jobs of `records`, which lie at `jobs`.
    ///
    /// # Safety
    ///
    /// The records name device memory only that lives until the stream has been waited for, in the sizes that `kernels/abi.h` asks for.
    pub(crate) unsafe fn launch(&self, kernel: &Kernel, jobs: Span<'_>, items: u64) -> Result<()> {
        let cores = match self.cores {
            Cores::Exactly(cores) => cores,
            Cores::AtMost(cores) => u32::try_from(items).unwrap_or(cores).clamp(1, cores),
        };
        let arguments = [jobs.address(), (jobs.len() / abi::JOB_BYTES) as u64, items];
        // SAFETY: these are the arguments of every entry point; the caller vouches for what they lead to.
        self.done(unsafe { kernel.launch(cores, &arguments, self.stream, &self.entered) })
    }
}

/// What AscendCL says, as an error of a device.
pub(crate) fn device_error(device: &str, error: &crate::acl::error::AclError) -> Error {
    Error::Device { device: device.to_owned(), message: error.to_string() }
}
