//! Kernel objects: loading, finding functions, launching.

use std::ffi::{CStr, CString};
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use super::device::{Device, Entered};
use super::error::Result;
use super::stream::Stream;
use super::symbols::{Handle, LoadOption, LoadOptions, MAGIC_VECTOR_CORE, OPTION_MAGIC};

/// A loaded kernel object.
#[derive(Debug)]
pub(crate) struct Binary {
    device: Arc<Device>,
    handle: Handle,
    /// Whether it was taken only with the magic of vector kernels.
    pub(crate) with_magic: bool,
}

// SAFETY: the handle may be used from any thread on which its device is current; every use takes an `Entered`.
unsafe impl Send for Binary {}
// SAFETY: as above; nothing is changed through the reference.
unsafe impl Sync for Binary {}

/// A kernel of a loaded object.
#[derive(Debug)]
pub(crate) struct Kernel {
    handle: Handle,
    /// Keeps the object loaded.
    _binary: Arc<Binary>,
}

// SAFETY: as for `Binary`.
unsafe impl Send for Kernel {}

impl Binary {
    /// Loads an object from a file, whose path must be absolute.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn load(device: &Arc<Device>, path: &Path) -> Result<Arc<Self>> {
        let entered = device.enter()?;
        let library = entered.library();
        // A path with a zero byte names no file; AscendCL says so of its first part.
        let bytes: Vec<u8> =
            path.as_os_str().as_encoded_bytes().iter().copied().take_while(|&byte| byte != 0).collect();
        let name = CString::new(bytes).unwrap_or_default();
        let magic = LoadOption { kind: OPTION_MAGIC, value: [MAGIC_VECTOR_CORE, 0, 0, 0] };
        let options = LoadOptions { options: &raw const magic, count: 1 };
        let load = |options: *const LoadOptions| {
            let mut handle = ptr::null_mut();
            // SAFETY: the name ends with a zero, the options are null or live through the call, the handle is a variable.
            let code = unsafe { (library.symbols().load_binary)(name.as_ptr(), options, &raw mut handle) };
            library.check("aclrtBinaryLoadFromFile", code).map(|()| handle)
        };
        // The vendor's examples pass no options; whether every release recognises a vector kernel without the magic is not known.
        let (handle, with_magic) = match load(ptr::null()) {
            Ok(handle) => (handle, false),
            Err(first) => (load(&raw const options).map_err(|_| first)?, true),
        };
        Ok(Arc::new(Self { device: Arc::clone(device), handle, with_magic }))
    }

    /// The kernel of this name.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn kernel(self: &Arc<Self>, name: &CStr) -> Result<Kernel> {
        let entered = self.device.enter()?;
        let mut handle = ptr::null_mut();
        // SAFETY: the binary is loaded, the name ends with a zero, the handle is a variable.
        let code =
            unsafe { (entered.library().symbols().binary_function)(self.handle, name.as_ptr(), &raw mut handle) };
        entered.library().check("aclrtBinaryGetFunction", code)?;
        Ok(Kernel { handle, _binary: Arc::clone(self) })
    }
}

impl Drop for Binary {
    fn drop(&mut self) {
        let _entered = self.device.enter();
        // SAFETY: the handle is a binary that has not been unloaded, and no kernel of it is left.
        let _ = unsafe { (self.device.library().symbols().unload_binary)(self.handle) };
    }
}

impl Kernel {
    /// Queues a launch on `cores` cores. Faults of the kernel show when the stream is synchronised.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    ///
    /// # Safety
    ///
    /// The kernel takes these arguments, and what it reads and writes by them is device memory that lives until the stream has been
    /// synchronised.
    pub(crate) unsafe fn launch(
        &self,
        cores: u32,
        arguments: &[u64],
        stream: &Stream,
        entered: &Entered<'_>,
    ) -> Result {
        let library = entered.library();
        let symbols = library.symbols();
        let mut list = ptr::null_mut();
        // SAFETY: the kernel's object is loaded, the list is a variable.
        library.check("aclrtKernelArgsInit", unsafe { (symbols.init_arguments)(self.handle, &raw mut list) })?;
        for argument in arguments {
            let (mut value, mut parameter) = (*argument, ptr::null_mut());
            let (size, value) = (size_of::<u64>(), (&raw mut value).cast());
            // SAFETY: the list was made above, and the value is copied before the call returns.
            let code = unsafe { (symbols.append_argument)(list, value, size, &raw mut parameter) };
            library.check("aclrtKernelArgsAppend", code)?;
        }
        // SAFETY: the list was made above.
        library.check("aclrtKernelArgsFinalize", unsafe { (symbols.finalize_arguments)(list) })?;
        let (configuration, reserved) = (ptr::null_mut(), ptr::null_mut());
        // SAFETY: all handles are alive; the caller vouches for the arguments.
        let code = unsafe { (symbols.launch_kernel)(self.handle, cores, stream.handle, configuration, list, reserved) };
        library.check("aclrtLaunchKernelWithConfig", code)
    }
}
