//! The library: where it is looked for, and why it cannot be used.

use std::collections::HashMap;
use std::env;
use std::ffi::{CStr, OsString};
use std::fmt;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use super::error::{AclError, REPEATED_INITIALIZATION, Result};
use super::symbols::{Code, Symbols};

/// Environment variable: the path of the library, instead of looking for it.
pub const LIBRARY_VARIABLE: &str = "ENEC_ASCEND_LIBRARY";
/// Names of the library, the older first.
const NAMES: [&str; 2] = ["libascendcl.so", "libacl_rt.so"];
/// Environment variables that name the toolkit's folder; its `set_env.sh` sets them.
pub(crate) const TOOLKIT_VARIABLES: [&str; 2] = ["ASCEND_HOME_PATH", "ASCEND_TOOLKIT_HOME"];
/// Where the toolkit is installed by default.
pub(crate) const TOOLKIT_FOLDERS: [&str; 2] = ["/usr/local/Ascend/cann", "/usr/local/Ascend/ascend-toolkit/latest"];
/// The driver's library, which AscendCL needs.
const DRIVER: &str = "libascend_hal.so";

/// AscendCL, loaded and initialised. Never unloaded: others in the process may use it.
pub(crate) struct Library {
    symbols: Symbols,
    path: PathBuf,
    version: Option<[i32; 3]>,
    _handle: libloading::Library,
}

/// Why AscendCL cannot be used.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Absence {
    /// Nowhere.
    NotFound { looked: Vec<PathBuf> },
    /// Present, but the loader refuses it.
    Refused { path: PathBuf, reason: String },
    /// Without a function that is needed.
    Lacks { path: PathBuf, function: &'static str },
    /// It does not initialise.
    Initialization { path: PathBuf, error: AclError },
}

impl fmt::Display for Absence {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Absence::NotFound { looked } => {
                let looked: Vec<String> = looked.iter().map(|path| format!("`{}`", path.display())).collect();
                write!(
                    f,
                    "AscendCL is not installed (looked for {}): install the CANN toolkit, 8.1 or newer, and source its `set_env.sh`, or \
                     name the library with `{LIBRARY_VARIABLE}`",
                    looked.join(", ")
                )
            }
            Absence::Refused { path, reason } if reason.contains(DRIVER) => write!(
                f,
                "the Ascend driver is not installed: `{}` needs its `{DRIVER}` ({reason}); install the driver and firmware of \
                 the device",
                path.display()
            ),
            Absence::Refused { path, reason } => {
                write!(f, "`{}` cannot be loaded: {reason}; source the toolkit's `set_env.sh`", path.display())
            }
            Absence::Lacks { path, function } => write!(
                f,
                "`{}` lacks the function `{function}`: CANN is older than 8.1, or the file is another library",
                path.display()
            ),
            Absence::Initialization { path, error } => write!(f, "`{}` does not initialise: {error}", path.display()),
        }
    }
}

impl fmt::Debug for Library {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Library").field("path", &self.path).field("version", &self.version).finish_non_exhaustive()
    }
}

/// Where to look, in order.
pub(crate) fn candidates(variable: impl Fn(&str) -> Option<OsString>) -> Vec<PathBuf> {
    if let Some(path) = variable(LIBRARY_VARIABLE) {
        return vec![path.into()];
    }
    let mut candidates: Vec<PathBuf> = NAMES.map(PathBuf::from).into();
    let named = TOOLKIT_VARIABLES.iter().filter_map(|name| variable(name)).map(PathBuf::from);
    for folder in named.chain(TOOLKIT_FOLDERS.map(PathBuf::from)) {
        for name in NAMES {
            let path = folder.join("lib64").join(name);
            if !candidates.contains(&path) {
                candidates.push(path);
            }
        }
    }
    candidates
}

impl Library {
    /// The library at `path`, or where it is usually found.
    ///
    /// # Errors
    ///
    /// Why there is none.
    pub(crate) fn open(path: Option<&Path>) -> std::result::Result<Arc<Self>, Absence> {
        static LOADED: OnceLock<Mutex<HashMap<PathBuf, Arc<Library>>>> = OnceLock::new();
        let mut loaded = LOADED.get_or_init(Mutex::default).lock().unwrap_or_else(PoisonError::into_inner);
        let candidates = path.map_or_else(|| candidates(|name| env::var_os(name)), |path| vec![path.to_owned()]);
        let mut refused = None;
        for candidate in &candidates {
            if let Some(library) = loaded.get(candidate) {
                return Ok(Arc::clone(library));
            }
            // SAFETY: the file is AscendCL by its name, or the user said so; loading it runs its initialisers.
            match unsafe { libloading::Library::new(candidate) } {
                Ok(handle) => {
                    let library = Arc::new(Self::initialise(candidate, handle)?);
                    loaded.insert(candidate.clone(), Arc::clone(&library));
                    return Ok(library);
                }
                Err(error) => {
                    let reason = error_text(&error);
                    // The loader also says "cannot open" of what is not there: only what is there has a reason of interest.
                    if candidate.exists() || reason.contains(DRIVER) {
                        refused.get_or_insert(Absence::Refused { path: candidate.clone(), reason });
                    }
                }
            }
        }
        Err(refused.unwrap_or(Absence::NotFound { looked: candidates }))
    }

    fn initialise(path: &Path, handle: libloading::Library) -> std::result::Result<Self, Absence> {
        // SAFETY: a library that has all these names is AscendCL, whose signatures are those of the table.
        let symbols =
            unsafe { Symbols::load(&handle) }.map_err(|function| Absence::Lacks { path: path.to_owned(), function })?;
        let mut library = Self { symbols, path: path.to_owned(), version: None, _handle: handle };
        // SAFETY: null asks for the default configuration.
        let code = unsafe { (library.symbols.init)(std::ptr::null()) };
        if code != REPEATED_INITIALIZATION {
            let failed = |error| Absence::Initialization { path: path.to_owned(), error };
            library.check("aclInit", code).map_err(failed)?;
        }
        let [mut major, mut minor, mut patch] = [0; 3];
        // SAFETY: the pointers are to variables of the type that the function writes.
        let code = unsafe { (library.symbols.version)(&raw mut major, &raw mut minor, &raw mut patch) };
        library.version = (code == 0).then_some([major, minor, patch]);
        Ok(library)
    }

    pub(crate) fn symbols(&self) -> &Symbols {
        &self.symbols
    }

    /// The version of the interface, for reports.
    pub(crate) fn version(&self) -> Option<String> {
        self.version.map(|[major, minor, patch]| format!("{major}.{minor}.{patch}"))
    }

    /// Turns a code into a result, with the vendor's text of the thread's last failure.
    pub(crate) fn check(&self, function: &'static str, code: Code) -> Result {
        if code == 0 {
            return Ok(());
        }
        // SAFETY: no pointer is passed.
        let text = unsafe { text_at((self.symbols.recent_error)()) };
        Err(AclError { function, code, text })
    }

    /// Devices that this process may use.
    ///
    /// # Errors
    ///
    /// AscendCL's.
    pub(crate) fn device_count(&self) -> Result<u32> {
        let mut count = 0;
        // SAFETY: the pointer is to a variable of the type that the function writes.
        self.check("aclrtGetDeviceCount", unsafe { (self.symbols.device_count)(&raw mut count) })?;
        Ok(count)
    }

    /// The chip, such as `Ascend910B2`; empty if AscendCL does not say.
    pub(crate) fn soc_name(&self) -> String {
        // SAFETY: no pointer is passed.
        unsafe { text_at((self.symbols.soc_name)()) }
    }
}

/// A C string as one line.
///
/// # Safety
///
/// The pointer is null or points to a string that ends with a zero and stays as it is during the call.
unsafe fn text_at(pointer: *const std::ffi::c_char) -> String {
    if pointer.is_null() {
        return String::new();
    }
    // SAFETY: the caller vouches for it.
    let text = unsafe { CStr::from_ptr(pointer) }.to_string_lossy();
    text.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// The loader's own text: `libloading` prefixes it with its function's name.
fn error_text(error: &libloading::Error) -> String {
    let source = std::error::Error::source(error);
    source.map_or_else(|| error.to_string(), ToString::to_string)
}

#[cfg(test)]
mod tests;
