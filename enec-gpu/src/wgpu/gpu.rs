//! One opened device, shared by the backends of a process: its queue, its pipelines, and its errors as ours.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use enec_core::{Error, Result};

use crate::wgpu::adapter;
use crate::wgpu::pipelines::Pipelines;

/// Storage bindings begin at multiples of this on every device.
pub(crate) const BINDING_ALIGNMENT: u64 = 256;
/// Decoded bytes of a window: enough to be worth a submission, little enough that three of them overlap.
const WINDOW_BYTES: u64 = 16 << 20;
/// More than this is not bound at once: word offsets must fit 32 bits with room to add them.
const LARGEST_BINDING: u64 = 1 << 31;

/// A wgpu device with what is made once for it.
#[derive(Debug)]
pub(crate) struct Gpu {
    pub(crate) name: String,
    pub(crate) device: wgpu::Device,
    pub(crate) queue: wgpu::Queue,
    /// Most bytes of a storage binding.
    pub(crate) binding_limit: u64,
    /// Decoded bytes of a window that goes through a slot.
    pub(crate) window_bytes: usize,
    /// Most workgroups of each dimension of a dispatch.
    pub(crate) dimension: u32,
    /// Nanoseconds per tick of the device's clock, if it has one.
    pub(crate) tick: Option<f64>,
    pub(crate) pipelines: Pipelines,
    lost: Arc<Mutex<Option<String>>>,
}

impl Gpu {
    /// The device of an adapter: opened by the first who asks and shared from then on, until it is lost.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] if there is no such adapter or it does not open.
    pub(crate) fn of_adapter(index: usize) -> Result<Arc<Self>> {
        static OPENED: Mutex<Vec<(usize, Arc<Gpu>)>> = Mutex::new(Vec::new());
        let adapter = adapter::adapter(index)?;
        let mut opened = lock(&OPENED);
        opened.retain(|(_, gpu)| gpu.lost().is_none());
        if let Some((_, gpu)) = opened.iter().find(|(other, _)| *other == index) {
            return Ok(Arc::clone(gpu));
        }
        let gpu = Arc::new(Self::open(adapter)?);
        opened.push((index, Arc::clone(&gpu)));
        Ok(gpu)
    }

    fn open(adapter: &wgpu::Adapter) -> Result<Self> {
        let limits = adapter.limits();
        let descriptor = wgpu::DeviceDescriptor {
            label: Some("enec"),
            required_features: adapter.features() & wgpu::Features::TIMESTAMP_QUERY,
            // Only what is needed beyond what every adapter has.
            required_limits: wgpu::Limits {
                max_storage_buffer_binding_size: limits.max_storage_buffer_binding_size,
                max_buffer_size: limits.max_buffer_size,
                ..wgpu::Limits::downlevel_defaults().or_worse_values_from(&limits)
            },
            ..wgpu::DeviceDescriptor::default()
        };
        let (device, queue) = pollster::block_on(adapter.request_device(&descriptor)).map_err(|error| {
            let reason = format!("`{}` does not open: {error}", adapter.get_info().name);
            Error::Unavailable { backend: "wgpu".into(), reason }
        })?;
        let gpu = Self::new(device, queue);
        let lost = Arc::clone(&gpu.lost);
        gpu.device.set_device_lost_callback(move |reason, message| {
            *lock(&lost) = Some(format!("{reason:?}: {message}"));
        });
        // All calls are made in error scopes. What escapes them, from other threads of the driver, must not be a panic.
        let lost = Arc::clone(&gpu.lost);
        gpu.device.on_uncaptured_error(Arc::new(move |error: wgpu::Error| {
            lock(&lost).get_or_insert_with(|| error.to_string());
        }));
        Ok(gpu)
    }

    /// A device that somebody else has opened and looks after.
    pub(crate) fn new(device: wgpu::Device, queue: wgpu::Queue) -> Self {
        let (limits, features) = (device.limits(), device.features());
        let clock = features.contains(wgpu::Features::TIMESTAMP_QUERY);
        let binding_limit = limits.max_storage_buffer_binding_size.min(limits.max_buffer_size).min(LARGEST_BINDING);
        Self {
            name: device.adapter_info().name,
            binding_limit,
            // What a window is encoded to, or was, may be longer than it by a tenth.
            window_bytes: usize::try_from(WINDOW_BYTES.min(binding_limit / 2)).unwrap_or(usize::MAX),
            dimension: limits.max_compute_workgroups_per_dimension,
            tick: clock.then(|| f64::from(queue.get_timestamp_period())),
            pipelines: Pipelines::new(&device),
            lost: Arc::default(),
            device,
            queue,
        }
    }

    /// Why the device is of no more use, if it is not.
    pub(crate) fn lost(&self) -> Option<String> {
        lock(&self.lost).clone()
    }

    /// An error of this device.
    pub(crate) fn error(&self, message: impl Into<String>) -> Error {
        Error::Device { device: self.name.clone(), message: message.into() }
    }

    /// Calls the device and turns what it complains about into our errors.
    ///
    /// # Errors
    ///
    /// The first complaint, or else the error of `call`.
    pub(crate) fn checked<T>(&self, call: impl FnOnce() -> Result<T>) -> Result<T> {
        if let Some(reason) = self.lost() {
            return Err(self.error(format!("device lost ({reason}); open it again")));
        }
        let scopes = [wgpu::ErrorFilter::Internal, wgpu::ErrorFilter::OutOfMemory, wgpu::ErrorFilter::Validation];
        let scopes = scopes.map(|filter| self.device.push_error_scope(filter));
        let result = call();
        // A loss is told by a callback, and to nobody by an error scope.
        let _ = self.device.poll(wgpu::PollType::Poll);
        // Scopes end in the reverse order; all of them have to.
        let complaints: Vec<_> = scopes.into_iter().rev().filter_map(|scope| pollster::block_on(scope.pop())).collect();
        if let Some(reason) = self.lost() {
            return Err(self.error(format!("device lost ({reason}); open it again")));
        }
        match complaints.into_iter().next() {
            None => result,
            Some(wgpu::Error::OutOfMemory { .. }) => Err(self.error("out of memory")),
            Some(wgpu::Error::Validation { description, .. }) => {
                Err(self.error(format!("refused a call: {}", one_line(&description))))
            }
            Some(wgpu::Error::Internal { description, .. }) => {
                Err(self.error(format!("internal error: {}", one_line(&description))))
            }
        }
    }

    /// A buffer of at least `len` bytes, a multiple of 4. Not checked: the caller is within [`checked`](Self::checked).
    pub(crate) fn buffer(&self, label: &str, len: u64, usage: wgpu::BufferUsages) -> wgpu::Buffer {
        let size = len.next_multiple_of(4).max(4);
        self.device.create_buffer(&wgpu::BufferDescriptor {
            label: Some(label),
            size,
            usage,
            mapped_at_creation: false,
        })
    }
}

/// Whatever a panicking thread left is as good as before: every change is one assignment.
pub(crate) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn one_line(text: &str) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}
