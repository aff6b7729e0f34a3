//! Device memory of this backend: one wgpu buffer each.

use std::any::Any;

use enec_core::{DeviceMemory, DeviceSlice, Error, Result};

/// How every buffer can be used that jobs read and write.
pub(crate) const USAGE: wgpu::BufferUsages =
    wgpu::BufferUsages::STORAGE.union(wgpu::BufferUsages::COPY_SRC).union(wgpu::BufferUsages::COPY_DST);

/// A buffer; its size is `len` rounded up to whole words.
#[derive(Debug)]
pub(crate) struct WgpuMemory {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) len: usize,
}

impl DeviceMemory for WgpuMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// Bytes of a buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Bytes {
    pub(crate) buffer: wgpu::Buffer,
    pub(crate) offset: u64,
    pub(crate) len: usize,
}

impl Bytes {
    /// The bytes of a slice of this backend's memory.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the memory is not this backend's.
    pub(crate) fn of(slice: &DeviceSlice) -> Result<Self> {
        let memory: Option<&WgpuMemory> = slice.buffer().downcast();
        let memory = memory.ok_or_else(|| Error::Argument("device memory that is not wgpu's".into()))?;
        Ok(Self { buffer: memory.buffer.clone(), offset: slice.range().start as u64, len: slice.len() })
    }

    /// A part of them.
    pub(crate) fn part(&self, range: std::ops::Range<usize>) -> Self {
        Self { buffer: self.buffer.clone(), offset: self.offset + range.start as u64, len: range.len() }
    }

    /// Whether they begin with a whole word.
    pub(crate) fn is_aligned(&self) -> bool {
        self.offset.is_multiple_of(4)
    }
}
