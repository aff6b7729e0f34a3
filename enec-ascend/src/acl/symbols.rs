//! The functions of AscendCL that are used, by their C signatures (CANN runtime reference, `acl/acl_rt.h`).

use std::ffi::{c_char, c_int, c_void};

/// What functions return: 0 is success.
pub(crate) type Code = c_int;
/// A context, stream, event, binary, function or argument list.
pub(crate) type Handle = *mut c_void;

macro_rules! symbols {
    ($($field:ident = $name:literal ($($argument:ty),*) -> $result:ty;)*) => {
        /// One pointer per function.
        pub(crate) struct Symbols {
            $(pub(crate) $field: unsafe extern "C" fn($($argument),*) -> $result,)*
        }

        /// The functions of AscendCL that this crate calls, all of which a release must have.
        pub const FUNCTIONS: &[&str] = &[$($name),*];

        impl Symbols {
            /// Looks every function up.
            ///
            /// # Errors
            ///
            /// The name of the first that the library lacks.
            ///
            /// # Safety
            ///
            /// The library's functions of these names have these signatures, and it stays loaded while the pointers are used.
            pub(crate) unsafe fn load(library: &libloading::Library) -> Result<Self, &'static str> {
                Ok(Self {
                    // SAFETY: the caller vouches for the signature.
                    $($field: *unsafe { library.get($name.as_bytes()) }.map_err(|_| $name)?,)*
                })
            }
        }
    };
}

// All of them are in CANN 8.1 and in every release since.
symbols! {
    init = "aclInit"(*const c_char) -> Code;
    recent_error = "aclGetRecentErrMsg"() -> *const c_char;
    version = "aclrtGetVersion"(*mut i32, *mut i32, *mut i32) -> Code;
    soc_name = "aclrtGetSocName"() -> *const c_char;
    device_capability = "aclGetDeviceCapability"(u32, c_int, *mut i64) -> Code;
    device_count = "aclrtGetDeviceCount"(*mut u32) -> Code;
    set_device = "aclrtSetDevice"(i32) -> Code;
    reset_device = "aclrtResetDevice"(i32) -> Code;
    current_context = "aclrtGetCurrentContext"(*mut Handle) -> Code;
    set_current_context = "aclrtSetCurrentContext"(Handle) -> Code;
    create_stream = "aclrtCreateStream"(*mut Handle) -> Code;
    destroy_stream = "aclrtDestroyStream"(Handle) -> Code;
    synchronize_stream = "aclrtSynchronizeStream"(Handle) -> Code;
    create_event = "aclrtCreateEventWithFlag"(*mut Handle, u32) -> Code;
    destroy_event = "aclrtDestroyEvent"(Handle) -> Code;
    record_event = "aclrtRecordEvent"(Handle, Handle) -> Code;
    elapsed_time = "aclrtEventElapsedTime"(*mut f32, Handle, Handle) -> Code;
    malloc = "aclrtMalloc"(*mut *mut c_void, usize, c_int) -> Code;
    free = "aclrtFree"(*mut c_void) -> Code;
    memcpy = "aclrtMemcpy"(*mut c_void, usize, *const c_void, usize, c_int) -> Code;
    memcpy_async = "aclrtMemcpyAsync"(*mut c_void, usize, *const c_void, usize, c_int, Handle) -> Code;
    memset = "aclrtMemset"(*mut c_void, usize, i32, usize) -> Code;
    memset_async = "aclrtMemsetAsync"(*mut c_void, usize, i32, usize, Handle) -> Code;
    memory_info = "aclrtGetMemInfo"(c_int, *mut usize, *mut usize) -> Code;
    load_binary = "aclrtBinaryLoadFromFile"(*const c_char, *const LoadOptions, *mut Handle) -> Code;
    unload_binary = "aclrtBinaryUnLoad"(Handle) -> Code;
    binary_function = "aclrtBinaryGetFunction"(Handle, *const c_char, *mut Handle) -> Code;
    init_arguments = "aclrtKernelArgsInit"(Handle, *mut Handle) -> Code;
    append_argument = "aclrtKernelArgsAppend"(Handle, *mut c_void, usize, *mut Handle) -> Code;
    finalize_arguments = "aclrtKernelArgsFinalize"(Handle) -> Code;
    launch_kernel = "aclrtLaunchKernelWithConfig"(Handle, u32, Handle, *mut c_void, Handle, *mut c_void) -> Code;
}

/// `aclrtMemcpyKind`.
pub(crate) mod copy_kind {
    use std::ffi::c_int;

    pub(crate) const HOST_TO_DEVICE: c_int = 1;
    pub(crate) const DEVICE_TO_HOST: c_int = 2;
    pub(crate) const DEVICE_TO_DEVICE: c_int = 3;
}

/// `ACL_MEM_MALLOC_HUGE_FIRST`.
pub(crate) const HUGE_PAGES_FIRST: c_int = 0;
/// `ACL_HBM_MEM`, the device's main memory.
pub(crate) const MAIN_MEMORY: c_int = 1;
/// `ACL_DEVICE_INFO_VECTOR_CORE_NUM`.
pub(crate) const VECTOR_CORES: c_int = 1;
/// `ACL_EVENT_TIME_LINE`: the event takes the time.
pub(crate) const TIMED_EVENT: u32 = 8;
/// `ACL_RT_BINARY_LOAD_OPT_MAGIC`.
pub(crate) const OPTION_MAGIC: c_int = 2;
/// `ACL_RT_BINARY_MAGIC_ELF_VECTOR_CORE`: the kernels run on vector cores only.
pub(crate) const MAGIC_VECTOR_CORE: u32 = 0x4141_5246;

/// `aclrtBinaryLoadOption`.
#[repr(C)]
pub(crate) struct LoadOption {
    pub(crate) kind: c_int,
    /// A union; the magic is its first word.
    pub(crate) value: [u32; 4],
}

/// `aclrtBinaryLoadOptions`.
#[repr(C)]
pub(crate) struct LoadOptions {
    pub(crate) options: *const LoadOption,
    pub(crate) count: usize,
}

const _: () = assert!(size_of::<LoadOption>() == 20 && align_of::<LoadOption>() == 4);
const _: () = assert!(std::mem::offset_of!(LoadOptions, count) == size_of::<usize>());
