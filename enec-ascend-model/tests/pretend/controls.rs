//! The controls of the pretend AscendCL (`acl/pretend.h`).

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};

use enec_ascend::Configuration;
use libloading::{Library, Symbol};

/// A copy of the library under another name, so that each test has a machine of its own.
pub(crate) struct Machine {
    library: Library,
    path: PathBuf,
    _folder: tempfile::TempDir,
}

impl Machine {
    /// A machine with one 910B2.
    pub(crate) fn new() -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("libascendcl.so");
        std::fs::copy(enec_ascend_model::library().unwrap(), &path).unwrap();
        // SAFETY: the library's initialisers do nothing but construct.
        let library = unsafe { Library::new(&path) }.unwrap();
        Self { library, path, _folder: folder }
    }

    pub(crate) fn path(&self) -> &Path {
        &self.path
    }

    /// What opens this machine's devices, with kernels on the host model.
    pub(crate) fn configuration(&self) -> Configuration {
        let configuration = enec_ascend_model::configuration(None).unwrap();
        Configuration { library: Some(self.path.clone()), ..configuration }
    }

    pub(crate) fn reset(&self) {
        // SAFETY: the signature is that of `acl/pretend.h`.
        let function: Symbol<'_, unsafe extern "C" fn()> = unsafe { self.library.get("pretend_reset") }.unwrap();
        // SAFETY: as above.
        unsafe { function() }
    }

    /// Makes a function fail at a call, and at all later ones unless `only_then`.
    pub(crate) fn fail(&self, name: &str, call: u64, only_then: bool) {
        type Fail = unsafe extern "C" fn(*const c_char, u64, c_int);
        // SAFETY: the signature is that of `acl/pretend.h`.
        let function: Symbol<'_, Fail> = unsafe { self.library.get("pretend_fail") }.unwrap();
        let name = CString::new(name).unwrap();
        // SAFETY: the name ends with a zero.
        unsafe { function(name.as_ptr(), call, only_then.into()) }
    }

    pub(crate) fn calls(&self, name: &str) -> u64 {
        self.count("pretend_calls", name)
    }

    pub(crate) fn live(&self, kind: &str) -> u64 {
        self.count("pretend_live", kind)
    }

    fn count(&self, function: &str, name: &str) -> u64 {
        type Count = unsafe extern "C" fn(*const c_char) -> u64;
        // SAFETY: both functions of `acl/pretend.h` have this signature.
        let function: Symbol<'_, Count> = unsafe { self.library.get(function) }.unwrap();
        let name = CString::new(name).unwrap();
        // SAFETY: the name ends with a zero.
        unsafe { function(name.as_ptr()) }
    }

    /// The devices of the machine, or what asking for them returns.
    pub(crate) fn has(&self, devices: u32, code: i32, chip: &str, cores: u32) {
        type Has = unsafe extern "C" fn(u32, c_int, *const c_char, u32);
        // SAFETY: the signature is that of `acl/pretend.h`.
        let function: Symbol<'_, Has> = unsafe { self.library.get("pretend_machine") }.unwrap();
        let chip = CString::new(chip).unwrap();
        // SAFETY: the name ends with a zero.
        unsafe { function(devices, code, chip.as_ptr(), cores) }
    }

    /// The first use that the documentation forbids, if there was one.
    pub(crate) fn misuse(&self) -> Option<String> {
        type Misuses = unsafe extern "C" fn() -> u64;
        type First = unsafe extern "C" fn() -> *const c_char;
        // SAFETY: the signatures are those of `acl/pretend.h`.
        let (misuses, first): (Symbol<'_, Misuses>, Symbol<'_, First>) = unsafe {
            (self.library.get("pretend_misuses").unwrap(), self.library.get("pretend_first_misuse").unwrap())
        };
        // SAFETY: the text ends with a zero and lives as long as the library.
        unsafe { (misuses() > 0).then(|| CStr::from_ptr(first()).to_string_lossy().into_owned()) }
    }
}
