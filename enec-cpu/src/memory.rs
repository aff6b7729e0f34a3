//! Device memory of this backend: host memory on 64-byte boundaries.

use std::alloc::{Layout, alloc_zeroed, dealloc};
use std::any::Any;
use std::ptr::{NonNull, slice_from_raw_parts_mut};

use enec_core::{DeviceMemory, DeviceSlice, Error, Result};
use enec_format::geometry::ALIGNMENT;

/// Zeroed memory that the backend's queue lock guards.
#[derive(Debug)]
pub(crate) struct HostMemory {
    start: NonNull<u8>,
    layout: Layout,
}

// SAFETY: it owns its allocation; whoever uses what `bytes` points to holds the queue lock.
unsafe impl Send for HostMemory {}
// SAFETY: as above.
unsafe impl Sync for HostMemory {}

impl HostMemory {
    /// Allocates `len` zeroed bytes.
    ///
    /// # Errors
    ///
    /// [`Error::Device`] if there is not that much memory.
    pub(crate) fn new(len: usize) -> Result<Self> {
        let refused = || Error::Device { device: "cpu".into(), message: format!("cannot allocate {len} bytes") };
        let layout = Layout::from_size_align(len, ALIGNMENT).map_err(|_| refused())?;
        if len == 0 {
            return Ok(Self { start: NonNull::dangling(), layout });
        }
        // SAFETY: the size is not zero.
        let start = NonNull::new(unsafe { alloc_zeroed(layout) }).ok_or_else(refused)?;
        Ok(Self { start, layout })
    }
}

/// Where the bytes of a slice of this backend's memory lie.
///
/// They are initialised and live as long as the slice's buffer. Who reads or writes them holds the queue lock of the backend.
///
/// # Errors
///
/// [`Error::Argument`] if the memory is not this backend's.
pub(crate) fn bytes(slice: &DeviceSlice) -> Result<*mut [u8]> {
    let memory: Option<&HostMemory> = slice.buffer().downcast();
    let memory = memory.ok_or_else(|| Error::Argument("device memory that is not host memory".into()))?;
    Ok(slice_from_raw_parts_mut(memory.start.as_ptr().wrapping_add(slice.range().start), slice.len()))
}

impl Drop for HostMemory {
    fn drop(&mut self) {
        if self.layout.size() > 0 {
            // SAFETY: allocated in `new` with this layout.
            unsafe { dealloc(self.start.as_ptr(), self.layout) }
        }
    }
}

impl DeviceMemory for HostMemory {
    fn len(&self) -> usize {
        self.layout.size()
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn memory_is_aligned_zeroed_and_may_be_empty() {
        for len in [0, 1, 63, 64, 100_000] {
            let memory = HostMemory::new(len).unwrap();
            assert_eq!(memory.len(), len);
            assert!(len == 0 || memory.start.as_ptr().addr().is_multiple_of(ALIGNMENT));
        }
    }

    #[test]
    fn absurd_sizes_are_an_error() {
        assert!(matches!(HostMemory::new(usize::MAX), Err(Error::Device { .. })));
        assert!(matches!(HostMemory::new(isize::MAX as usize - 4096), Err(Error::Device { .. })));
    }
}
