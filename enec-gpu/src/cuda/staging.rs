//! A pair of buffers that bytes cross the bus through: page-locked host memory and device memory of the same length.

#![allow(unsafe_code, reason = "page-locked memory comes as an address")]

use std::ops::Range;
use std::ptr::NonNull;
use std::slice;
use std::sync::Arc;

use super::launcher::{Address, Event, Launcher, Queue, Result};

/// A pair of buffers; offsets are the same in both.
#[derive(Debug)]
pub(super) struct Staging {
    launcher: Arc<dyn Launcher>,
    host: NonNull<u8>,
    device: Address,
    len: usize,
}

// SAFETY: it owns both buffers, and hands out the host's as Rust lends any field.
unsafe impl Send for Staging {}

impl Staging {
    /// Allocates a pair.
    pub(super) fn new(launcher: &Arc<dyn Launcher>, len: usize) -> Result<Self> {
        let host = launcher.allocate_pinned(len)?;
        let device = launcher.allocate(len).inspect_err(|_| {
            // SAFETY: just allocated with this length, and not used yet.
            unsafe { launcher.free_pinned(host, len) }
        })?;
        Ok(Self { launcher: Arc::clone(launcher), host, device, len })
    }

    pub(super) fn len(&self) -> usize {
        self.len
    }

    /// Address of the device's byte `offset`.
    pub(super) fn address(&self, offset: usize) -> Address {
        assert!(offset <= self.len, "byte {offset} of a staging buffer of {}", self.len);
        self.device + offset as u64
    }

    /// The host's bytes.
    ///
    /// # Safety
    ///
    /// No operation on these buffers is under way.
    pub(super) unsafe fn host(&mut self) -> &mut [u8] {
        // SAFETY: allocated with this length, zeroed, borrowed as `self` is, and nothing else uses it, as the caller guarantees.
        unsafe { slice::from_raw_parts_mut(self.host.as_ptr(), self.len) }
    }

    /// Copies bytes of the host's buffer to the device's.
    ///
    /// # Safety
    ///
    /// Nothing else uses the range of either buffer until the operation has run, which `self` outlives.
    pub(super) unsafe fn upload(&self, range: Range<usize>) -> Result<()> {
        self.check(&range);
        if range.is_empty() {
            return Ok(());
        }
        let source = self.host.as_ptr().wrapping_add(range.start);
        // SAFETY: the range lies within both buffers; the rest is the caller's promise.
        unsafe { self.launcher.upload(Queue::Upload, source, self.address(range.start), range.len()) }
    }

    /// Copies bytes of the device's buffer to the host's.
    ///
    /// # Safety
    ///
    /// As [`upload`](Self::upload).
    pub(super) unsafe fn download(&self, queue: Queue, range: Range<usize>) -> Result<()> {
        self.check(&range);
        if range.is_empty() {
            return Ok(());
        }
        let target = self.host.as_ptr().wrapping_add(range.start);
        // SAFETY: the range lies within both buffers; the rest is the caller's promise.
        unsafe { self.launcher.download(queue, self.address(range.start), target, range.len()) }
    }

    fn check(&self, range: &Range<usize>) {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of a staging buffer of {}", self.len);
    }
}

impl Drop for Staging {
    fn drop(&mut self) {
        // SAFETY: allocated in `new` with this length; whoever dropped this has waited for its operations.
        unsafe {
            self.launcher.free_pinned(self.host, self.len);
            self.launcher.free(self.device);
        }
    }
}

/// The events of one turn through a pair of staging buffers.
#[derive(Debug, Clone, Copy)]
pub(super) struct Events {
    pub(super) uploaded: Event,
    pub(super) started: Event,
    pub(super) computed: Event,
    pub(super) downloaded: Event,
    pub(super) completed: Event,
}

impl Events {
    pub(super) fn new(launcher: &dyn Launcher) -> Result<Self> {
        Ok(Self {
            uploaded: launcher.event()?,
            started: launcher.event()?,
            computed: launcher.event()?,
            downloaded: launcher.event()?,
            completed: launcher.event()?,
        })
    }
}
