//! The Vulkan device in software that the wgpu backend is tested on: Mesa's lavapipe.

use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::{env, fs};

/// Where distributions put the descriptions of Vulkan drivers.
const DRIVERS: &str = "/usr/share/vulkan/icd.d";

/// The description of the driver, if it is installed.
pub(crate) fn software_driver() -> Option<PathBuf> {
    let files = fs::read_dir(DRIVERS).ok()?;
    let mut files = files.flatten().map(|file| file.path());
    files.find(|file| file.file_name().is_some_and(|name| name.to_string_lossy().starts_with("lvp_icd.")))
}

/// What makes every Vulkan program use this driver alone, the same way in each run.
pub(crate) fn environment(driver: &Path) -> [(&'static str, OsString); 4] {
    [
        // The old and the new name: the loader of Debian 12 knows the old one only.
        ("VK_ICD_FILENAMES", driver.into()),
        ("VK_DRIVER_FILES", driver.into()),
        // The cache takes no notice of the width of vectors, and would give the code for another.
        ("MESA_SHADER_CACHE_DISABLE", "true".into()),
        // The driver asks for it and complains without.
        ("XDG_RUNTIME_DIR", env::var_os("XDG_RUNTIME_DIR").unwrap_or_else(|| env::temp_dir().into())),
    ]
}
