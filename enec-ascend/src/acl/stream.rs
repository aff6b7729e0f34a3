//! Streams and events: the queue of a device, and marks of time in it.

use std::ptr;
use std::sync::Arc;
use std::time::Duration;

use super::device::{Device, Entered};
use super::error::Result;
use super::symbols::{Handle, TIMED_EVENT};

/// A queue of work.
#[derive(Debug)]
pub(crate) struct Stream {
    device: Arc<Device>,
    pub(super) handle: Handle,
}

// SAFETY: a stream may be used from any thread on which its device is current; every use takes an `Entered`.
unsafe impl Send for Stream {}

impl Stream {
    /// A new queue.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self> {
        let entered = device.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is to a variable of the type that the function writes.
        let code = unsafe { (entered.library().symbols().create_stream)(&raw mut handle) };
        entered.library().check("aclrtCreateStream", code)?;
        Ok(Self { device: Arc::clone(device), handle })
    }

    /// Waits for all work. A fault of a kernel shows here.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn synchronize(&self, entered: &Entered<'_>) -> Result {
        let library = entered.library();
        // SAFETY: the handle is a stream that has not been destroyed.
        library.check("aclrtSynchronizeStream", unsafe { (library.symbols().synchronize_stream)(self.handle) })
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        let _entered = self.device.enter();
        // SAFETY: the handle is a stream that has not been destroyed, and nothing uses it any more.
        let _ = unsafe { (self.device.library().symbols().destroy_stream)(self.handle) };
    }
}

/// A mark in a stream that takes the time.
#[derive(Debug)]
pub(crate) struct Event {
    device: Arc<Device>,
    handle: Handle,
}

// SAFETY: as for `Stream`.
unsafe impl Send for Event {}

impl Event {
    /// A new mark.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn new(device: &Arc<Device>) -> Result<Self> {
        let entered = device.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the pointer is to a variable of the type that the function writes.
        let code = unsafe { (entered.library().symbols().create_event)(&raw mut handle, TIMED_EVENT) };
        entered.library().check("aclrtCreateEventWithFlag", code)?;
        Ok(Self { device: Arc::clone(device), handle })
    }

    /// Puts the mark behind all work that is in the stream.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn record(&self, stream: &Stream, entered: &Entered<'_>) -> Result {
        let library = entered.library();
        // SAFETY: both handles are alive.
        library.check("aclrtRecordEvent", unsafe { (library.symbols().record_event)(self.handle, stream.handle) })
    }

    /// The time from this mark to a later one; the stream has been synchronised since.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn until(&self, later: &Self, entered: &Entered<'_>) -> Result<Duration> {
        let library = entered.library();
        let mut milliseconds = 0.0_f32;
        // SAFETY: both handles are alive, and the pointer is to a variable of the type that the function writes.
        let code = unsafe { (library.symbols().elapsed_time)(&raw mut milliseconds, self.handle, later.handle) };
        library.check("aclrtEventElapsedTime", code)?;
        Ok(Duration::try_from_secs_f64(f64::from(milliseconds) / 1e3).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let _entered = self.device.enter();
        // SAFETY: the handle is an event that has not been destroyed, and nothing uses it any more.
        let _ = unsafe { (self.device.library().symbols().destroy_event)(self.handle) };
    }
}
