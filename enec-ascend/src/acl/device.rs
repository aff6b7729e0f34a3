//! A device in use, and the thread that uses it.

use std::ptr;
use std::sync::Arc;

use super::error::{NO_CONTEXT, NO_DEVICE, Result};
use super::library::Library;
use super::symbols::{Handle, MAIN_MEMORY, VECTOR_CORES};

/// A device with its default context, which all of a process share. Released when dropped.
#[derive(Debug)]
pub(crate) struct Device {
    library: Arc<Library>,
    index: i32,
    context: Handle,
}

// SAFETY: the context handle may be made current on any thread; the reference lets several do so at a time.
unsafe impl Send for Device {}
// SAFETY: as above.
unsafe impl Sync for Device {}

impl Device {
    /// Takes a device into use. The device that was current on this thread stays so.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn open(library: Arc<Library>, index: i32) -> Result<Arc<Self>> {
        let previous = library.current_context()?;
        // SAFETY: no pointer is passed.
        library.check("aclrtSetDevice", unsafe { (library.symbols().set_device)(index) })?;
        // From here on the drop gives the device back.
        let mut device = Self { library, index, context: ptr::null_mut() };
        device.context = device.library.current_context()?;
        if !previous.is_null() {
            device.library.set_current_context(previous)?;
        }
        Ok(Arc::new(device))
    }

    pub(super) fn library(&self) -> &Library {
        &self.library
    }

    /// Makes the device current on this thread until the result is dropped.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn enter(&self) -> Result<Entered<'_>> {
        let previous = self.library.current_context()?;
        if previous != self.context {
            self.library.set_current_context(self.context)?;
        }
        Ok(Entered { device: self, previous })
    }

    /// Vector cores.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn vector_cores(&self) -> Result<u32> {
        let mut cores = 0;
        let index = self.index.unsigned_abs();
        // SAFETY: the pointer is to a variable of the type that the function writes.
        let code = unsafe { (self.library.symbols().device_capability)(index, VECTOR_CORES, &raw mut cores) };
        self.library.check("aclGetDeviceCapability", code)?;
        Ok(u32::try_from(cores).unwrap_or(0).max(1))
    }
}

impl Drop for Device {
    fn drop(&mut self) {
        // The count of uses goes down by one; the device is reset when nobody in the process uses it.
        // SAFETY: no pointer is passed.
        let _ = unsafe { (self.library.symbols().reset_device)(self.index) };
    }
}

/// A device that is current on this thread. Calls that need that are methods of it.
#[derive(Debug)]
pub(crate) struct Entered<'d> {
    device: &'d Device,
    previous: Handle,
}

impl Entered<'_> {
    pub(super) fn library(&self) -> &Library {
        &self.device.library
    }

    /// Bytes of the device's main memory.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn memory(&self) -> Result<usize> {
        let (mut free, mut total) = (0, 0);
        // SAFETY: the pointers are to variables of the type that the function writes.
        let code = unsafe { (self.library().symbols().memory_info)(MAIN_MEMORY, &raw mut free, &raw mut total) };
        self.library().check("aclrtGetMemInfo", code)?;
        Ok(total)
    }
}

impl Drop for Entered<'_> {
    fn drop(&mut self) {
        if !self.previous.is_null() && self.previous != self.device.context {
            let _ = self.device.library.set_current_context(self.previous);
        }
    }
}

impl Library {
    /// The context that is current on this thread, null if there is none.
    fn current_context(&self) -> Result<Handle> {
        let mut context = ptr::null_mut();
        // SAFETY: the pointer is to a variable of the type that the function writes.
        let code = unsafe { (self.symbols().current_context)(&raw mut context) };
        // Releases differ in what they call the absence of a context.
        if code == NO_CONTEXT || code == NO_DEVICE {
            return Ok(ptr::null_mut());
        }
        self.check("aclrtGetCurrentContext", code)?;
        Ok(context)
    }

    fn set_current_context(&self, context: Handle) -> Result {
        // SAFETY: the context came from `current_context`; the default context of a device lives until its reset.
        self.check("aclrtSetCurrentContext", unsafe { (self.symbols().set_current_context)(context) })
    }
}
