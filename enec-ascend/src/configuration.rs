//! What a driver of this crate opens: which library, which kernels, and under which name.

use std::env;
use std::num::NonZeroU32;
use std::path::PathBuf;
use std::time::Duration;

use enec_core::{Error, KernelTime, Result};

use crate::kernels::KernelSource;

/// Environment variable: vector cores to launch on, instead of all that the device has. The output does not depend on it.
pub const CORES_VARIABLE: &str = "ENEC_ASCEND_CORES";

/// What to open, where the options of every backend do not say it.
#[derive(Debug, Clone)]
pub struct Configuration {
    /// The backend's name, as users type it.
    pub backend: &'static str,
    /// The device's name; by default the chip's.
    pub name: Option<&'static str>,
    /// AscendCL; by default it is looked for.
    pub library: Option<PathBuf>,
    /// The kernels; without any the backend is not available.
    pub kernels: Option<KernelSource>,
    /// Vector cores to launch on; by default all that the device has.
    pub cores: Option<NonZeroU32>,
    /// Name of these kernels, one of `variants`.
    pub variant: &'static str,
    /// Names of all kernels that there are.
    pub variants: &'static [&'static str],
    /// What the device's clock tells: a measurement, or what a formula says.
    pub time: fn(Duration) -> KernelTime,
}

impl Configuration {
    /// A real device: the library as found, and the kernels that [`KernelSource::find`] finds.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if [`CORES_VARIABLE`] is set to what is no number of cores.
    pub fn of_environment() -> Result<Self> {
        let cores = env::var_os(CORES_VARIABLE).map(|text| {
            let number =
                text.to_str().and_then(|text| text.parse().ok()).filter(|cores: &NonZeroU32| cores.get() <= 65_535);
            number.ok_or_else(|| Error::Argument(format!("{CORES_VARIABLE}={}: expected 1 to 65535", text.display())))
        });
        Ok(Self {
            backend: "ascend",
            name: None,
            library: None,
            kernels: KernelSource::find(),
            cores: cores.transpose()?,
            variant: "vector",
            variants: &["vector"],
            time: KernelTime::Measured,
        })
    }
}
