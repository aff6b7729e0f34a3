//! Device memory: allocated here, or somebody else's.

use std::any::Any;
use std::fmt;
use std::sync::Arc;

use enec_core::{DeviceMemory, DeviceSlice, Error, Result};

use super::launcher::{Address, Launcher};

/// A range of device memory.
pub(crate) struct CudaMemory {
    launcher: Arc<dyn Launcher>,
    address: Address,
    len: usize,
    /// Whoever keeps imported memory alive; `None` if it was allocated here.
    owner: Option<Box<dyn Any + Send + Sync>>,
}

impl CudaMemory {
    /// Allocates `len` bytes with unspecified contents.
    pub(crate) fn allocate(launcher: &Arc<dyn Launcher>, len: usize) -> super::launcher::Result<Self> {
        // Without bytes there is nothing to allocate, and nothing to free.
        let address = if len == 0 { 0 } else { launcher.allocate(len)? };
        Ok(Self { launcher: Arc::clone(launcher), address, len, owner: None })
    }

    /// Memory that `owner` keeps alive.
    pub(crate) fn import(
        launcher: &Arc<dyn Launcher>,
        address: Address,
        len: usize,
        owner: Box<dyn Any + Send + Sync>,
    ) -> Self {
        Self { launcher: Arc::clone(launcher), address, len, owner: Some(owner) }
    }

    pub(crate) fn address(&self) -> Address {
        self.address
    }
}

/// Where the bytes of a slice of this backend's memory lie.
///
/// # Errors
///
/// [`Error::Argument`] if the memory is not this backend's.
pub(crate) fn address(slice: &DeviceSlice) -> Result<Address> {
    let memory: Option<&CudaMemory> = slice.buffer().downcast();
    let memory = memory.ok_or_else(|| Error::Argument("device memory of another kind of backend".into()))?;
    Ok(memory.address + slice.range().start as u64)
}

impl Drop for CudaMemory {
    #[allow(unsafe_code, reason = "freeing is a promise that nobody uses the memory any more")]
    fn drop(&mut self) {
        if self.owner.is_none() && self.len > 0 {
            // SAFETY: it was allocated by this launcher, and every call of the backend that uses memory holds it until its operations
            // have run.
            unsafe { self.launcher.free(self.address) }
        }
    }
}

impl fmt::Debug for CudaMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "CudaMemory({:#x}, {} bytes)", self.address, self.len)
    }
}

impl DeviceMemory for CudaMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
