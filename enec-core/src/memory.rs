//! Device memory: one erased handle for all backends.

use std::any::Any;
use std::fmt;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use crate::{Error, Result};

/// Tells one opened backend from another: memory of one is of no use to the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct BackendId(u64);

impl BackendId {
    /// An id that no other backend of this process has.
    #[must_use]
    pub fn unique() -> Self {
        static NEXT: AtomicU64 = AtomicU64::new(0);
        Self(NEXT.fetch_add(1, Ordering::Relaxed))
    }
}

/// A backend's own memory. The backend that made it gets its type back through [`as_any`](Self::as_any).
pub trait DeviceMemory: fmt::Debug + Send + Sync + 'static {
    /// Bytes.
    fn len(&self) -> usize;

    /// Whether it has no bytes.
    fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The concrete type.
    fn as_any(&self) -> &dyn Any;
}

/// A buffer in device memory. Clones share the memory, which is freed with the last of them.
#[derive(Debug, Clone)]
pub struct DeviceBuf {
    memory: Arc<dyn DeviceMemory>,
    backend: BackendId,
}

impl DeviceBuf {
    /// Wraps memory of the backend with this id.
    #[must_use]
    pub fn new(memory: Arc<dyn DeviceMemory>, backend: BackendId) -> Self {
        Self { memory, backend }
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.memory.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The backend that it belongs to.
    #[must_use]
    pub fn backend(&self) -> BackendId {
        self.backend
    }

    /// The memory as the backend's own type, `None` if it is another's.
    #[must_use]
    pub fn downcast<M: DeviceMemory>(&self) -> Option<&M> {
        self.memory.as_any().downcast_ref()
    }

    /// The whole buffer.
    #[must_use]
    pub fn full(&self) -> DeviceSlice {
        DeviceSlice { buffer: self.clone(), range: 0..self.len() }
    }

    /// A part of the buffer.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the range does not lie within the buffer.
    pub fn slice(&self, range: Range<usize>) -> Result<DeviceSlice> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Argument(format!("bytes {range:?} of a device buffer of {} bytes", self.len())));
        }
        Ok(DeviceSlice { buffer: self.clone(), range })
    }

    fn same_memory(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.memory, &other.memory)
    }
}

/// A range of bytes of a device buffer, known to lie within it.
#[derive(Debug, Clone)]
pub struct DeviceSlice {
    buffer: DeviceBuf,
    range: Range<usize>,
}

impl DeviceSlice {
    /// The buffer.
    #[must_use]
    pub fn buffer(&self) -> &DeviceBuf {
        &self.buffer
    }

    /// The bytes, as a range of the buffer.
    #[must_use]
    pub fn range(&self) -> Range<usize> {
        self.range.clone()
    }

    /// Bytes.
    #[must_use]
    pub fn len(&self) -> usize {
        self.range.len()
    }

    /// Whether it has no bytes.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.range.is_empty()
    }

    /// A part of the slice.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the range does not lie within the slice.
    pub fn slice(&self, range: Range<usize>) -> Result<DeviceSlice> {
        if range.start > range.end || range.end > self.len() {
            return Err(Error::Argument(format!("bytes {range:?} of a device slice of {} bytes", self.len())));
        }
        let start = self.range.start;
        Ok(Self { buffer: self.buffer.clone(), range: start + range.start..start + range.end })
    }

    /// Whether the two have a byte in common.
    #[must_use]
    pub fn overlaps(&self, other: &Self) -> bool {
        let (a, b) = (&self.range, &other.range);
        self.buffer.same_memory(&other.buffer) && a.start.max(b.start) < a.end.min(b.end)
    }
}
