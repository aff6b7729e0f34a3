//! A job's target, written by several threads at disjoint places.

use std::marker::PhantomData;
use std::ops::Range;

use enec_core::{Result, Source, TargetMut};

use crate::memory;

/// Bytes of a target that threads share, each writing ranges of its own.
#[derive(Debug, Clone, Copy)]
pub(crate) struct SharedTarget<'a> {
    start: *mut u8,
    len: usize,
    lifetime: PhantomData<&'a mut [u8]>,
}

// SAFETY: it stands for a `&mut [u8]`, which may be sent; what threads do with a shared one is governed by the contract of `range`.
unsafe impl Send for SharedTarget<'_> {}
// SAFETY: as above.
unsafe impl Sync for SharedTarget<'_> {}

impl<'a> SharedTarget<'a> {
    /// A target that may be shared until the borrow ends.
    pub(crate) fn new(target: &'a mut [u8]) -> Self {
        Self { start: target.as_mut_ptr(), len: target.len(), lifetime: PhantomData }
    }

    /// The bytes of a range.
    ///
    /// # Safety
    ///
    /// While the result lives, no other range of this target that overlaps it is in use.
    ///
    /// # Panics
    ///
    /// If the range does not lie within the target.
    pub(crate) unsafe fn range(&self, range: Range<usize>) -> &'a mut [u8] {
        assert!(range.start <= range.end && range.end <= self.len, "bytes {range:?} of a target of {}", self.len);
        // SAFETY: the range lies within the borrowed slice, and the caller promises that nobody else uses it.
        unsafe { std::slice::from_raw_parts_mut(self.start.add(range.start), range.len()) }
    }
}

/// The bytes of a job's source.
///
/// # Errors
///
/// [`Error::Argument`](enec_core::Error::Argument) if it is device memory of another kind.
///
/// # Safety
///
/// While the result lives, the caller holds the lock of the device memory, and nobody writes to the source.
pub(crate) unsafe fn source_bytes<'a>(source: &'a Source<'_>) -> Result<&'a [u8]> {
    match source {
        Source::Host(bytes) => Ok(bytes),
        // SAFETY: initialised memory that lives as long as the slice; the caller rules out writers.
        Source::Device(slice) => Ok(unsafe { &*memory::bytes(slice)? }),
    }
}

/// The bytes of a job's target.
///
/// # Errors
///
/// [`Error::Argument`](enec_core::Error::Argument) if it is device memory of another kind.
///
/// # Safety
///
/// While the result lives, the caller holds the lock of the device memory, and nobody else uses the target.
pub(crate) unsafe fn target_bytes(target: TargetMut<'_>) -> Result<&mut [u8]> {
    match target {
        TargetMut::Host(bytes) => Ok(bytes),
        // SAFETY: initialised memory that lives as long as the slice; the caller rules out other users.
        TargetMut::Device(slice) => Ok(unsafe { &mut *memory::bytes(slice)? }),
    }
}
