//! Device memory, and copies to, from and within it.

use std::any::Any;
use std::ffi::c_void;
use std::marker::PhantomData;
use std::ops::Range;
use std::ptr;
use std::sync::Arc;

use enec_core::DeviceMemory;

use super::device::{Device, Entered};
use super::error::Result;
use super::stream::Stream;
use super::symbols::{HUGE_PAGES_FIRST, copy_kind};

/// Memory of a device.
#[derive(Debug)]
pub(crate) struct Memory {
    device: Arc<Device>,
    start: *mut c_void,
    len: usize,
}

// SAFETY: the pointer is an address of the device, used by no host code; calls that use it take an `Entered`.
unsafe impl Send for Memory {}
// SAFETY: as above.
unsafe impl Sync for Memory {}

impl Memory {
    /// Allocates bytes whose contents are undefined, on a boundary of 64.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn new(device: &Arc<Device>, len: usize) -> Result<Self> {
        let mut start = ptr::null_mut();
        if len > 0 {
            let entered = device.enter()?;
            // SAFETY: the pointer is to a variable of the type that the function writes.
            let code = unsafe { (entered.library().symbols().malloc)(&raw mut start, len, HUGE_PAGES_FIRST) };
            entered.library().check("aclrtMalloc", code)?;
        }
        Ok(Self { device: Arc::clone(device), start, len })
    }

    /// A part of the memory.
    ///
    /// # Panics
    ///
    /// If the range does not lie within the memory.
    pub(crate) fn span(&self, range: Range<usize>) -> Span<'_> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        Span { start: self.start.wrapping_byte_add(range.start), len: range.len(), memory: PhantomData }
    }
}

impl Drop for Memory {
    fn drop(&mut self) {
        if self.len > 0 {
            let _entered = self.device.enter();
            // SAFETY: allocated in `new`, and no work that uses it is queued: batches wait for theirs.
            let _ = unsafe { (self.device.library().symbols().free)(self.start) };
        }
    }
}

impl DeviceMemory for Memory {
    fn len(&self) -> usize {
        self.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// A range of device memory, known to lie within it.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Span<'m> {
    start: *mut c_void,
    len: usize,
    memory: PhantomData<&'m Memory>,
}

impl<'m> Span<'m> {
    /// The device's address, as kernels take it.
    pub(crate) fn address(self) -> u64 {
        self.start.addr() as u64
    }

    /// Bytes.
    pub(crate) fn len(self) -> usize {
        self.len
    }

    /// Whether the address is a multiple of `alignment`.
    pub(crate) fn is_aligned(self, alignment: usize) -> bool {
        self.start.addr().is_multiple_of(alignment)
    }

    /// A part of it.
    ///
    /// # Panics
    ///
    /// If the range does not lie within it.
    pub(crate) fn slice(self, range: Range<usize>) -> Span<'m> {
        assert!(range.start <= range.end && range.end <= self.len, "{range:?} of {} bytes", self.len);
        Span { start: self.start.wrapping_byte_add(range.start), len: range.len(), memory: PhantomData }
    }
}

impl Entered<'_> {
    /// Copies host bytes to the device, at once.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub(crate) fn upload(&self, source: &[u8], target: Span<'_>) -> Result {
        assert_eq!(source.len(), target.len, "lengths of a copy");
        self.copy(target.start, source.as_ptr().cast(), target.len, copy_kind::HOST_TO_DEVICE)
    }

    /// Copies device bytes to the host, at once.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub(crate) fn download(&self, source: Span<'_>, target: &mut [u8]) -> Result {
        assert_eq!(source.len, target.len(), "lengths of a copy");
        self.copy(target.as_mut_ptr().cast(), source.start, source.len, copy_kind::DEVICE_TO_HOST)
    }

    fn copy(&self, target: *mut c_void, source: *const c_void, len: usize, kind: i32) -> Result {
        if len == 0 {
            return Ok(());
        }
        // SAFETY: both ranges have `len` bytes, one lies on the host and one on the device, and the call returns when it is done.
        let code = unsafe { (self.library().symbols().memcpy)(target, len, source, len, kind) };
        self.library().check("aclrtMemcpy", code)
    }

    /// Queues a copy within the device.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    ///
    /// # Panics
    ///
    /// If the lengths differ.
    pub(crate) fn copy_within(&self, source: Span<'_>, target: Span<'_>, stream: &Stream) -> Result {
        assert_eq!(source.len, target.len, "lengths of a copy");
        if source.len == 0 {
            return Ok(());
        }
        let (kind, len) = (copy_kind::DEVICE_TO_DEVICE, source.len);
        // SAFETY: both ranges have `len` bytes of device memory; whoever queues waits for the stream before either is freed.
        let code = unsafe {
            (self.library().symbols().memcpy_async)(target.start, len, source.start, len, kind, stream.handle)
        };
        self.library().check("aclrtMemcpyAsync", code)
    }

    /// Sets bytes to zero, at once.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn clear(&self, target: Span<'_>) -> Result {
        if target.len == 0 {
            return Ok(());
        }
        // SAFETY: the range is device memory.
        let code = unsafe { (self.library().symbols().memset)(target.start, target.len, 0, target.len) };
        self.library().check("aclrtMemset", code)
    }

    /// Queues setting bytes to zero.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn queue_clear(&self, target: Span<'_>, stream: &Stream) -> Result {
        if target.len == 0 {
            return Ok(());
        }
        // SAFETY: the range is device memory; whoever queues waits for the stream before it is freed.
        let code =
            unsafe { (self.library().symbols().memset_async)(target.start, target.len, 0, target.len, stream.handle) };
        self.library().check("aclrtMemsetAsync", code)
    }
}
