//! The Ascend kernels on the host: a backend `ascend-model` that opens [`enec_ascend`] on a pretend AscendCL, which runs the kernels' sources on a
//! host model of the vendor's interface with all its checks. For tests and cost estimates; unpublished, because it needs a C++ compiler.
//!
//! Nothing here is measured on a device. Times are what the cost formula of `docs/ascend.md` gives for a 910B2, and are marked as that.
//!
//! The variable [`SETTINGS_VARIABLE`] adds settings of the host model, `key=value` with spaces between: `order`, `copies`, `reads`, `auto_sync`,
//! `poison`, `seed` (`enec-ascend/model/launch.h`). `ENEC_ASCEND_CORES` sets the number of cores, otherwise 48.

#![deny(unsafe_code)]

#[expect(unsafe_code, reason = "calls of a C library")]
mod cost;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use enec_ascend::{AscendBackend, Configuration, KernelSource};
use enec_core::{Driver, Error, KernelTime, OpenOptions, Result};

pub use cost::{Cost, reference_gbps};

/// Environment variable: settings of the host model, beyond those of the variant.
pub const SETTINGS_VARIABLE: &str = "ENEC_ASCEND_MODEL";

/// The backend's name.
const NAME: &str = "ascend-model";

/// How a launch is scheduled. Each is a variant of the kernels: bytes must not depend on it.
const SCHEDULES: [(&str, &str); 2] = [
    ("plain", "order=forward copies=eager reads=snapshot"),
    ("adverse", "order=shuffled copies=lazy reads=sequential poison=90 seed=20"),
];
const VARIANTS: [&str; 2] = [SCHEDULES[0].0, SCHEDULES[1].0];

/// The driver of the host model.
pub static DRIVER: Driver = Driver {
    name: NAME,
    probe: || AscendBackend::probe(&configuration(None)?),
    open: |options| Ok(Arc::new(open(options)?)),
};

/// The pretend AscendCL.
///
/// # Errors
///
/// [`Error::Unavailable`] if there was no C++ compiler when this crate was built.
pub fn library() -> Result<&'static Path> {
    option_env!("ENEC_ASCEND_MODEL_LIBRARY").map(Path::new).ok_or_else(absent)
}

/// The C++ compiler that this crate was built with.
///
/// # Errors
///
/// As [`library`].
pub fn compiler() -> Result<&'static Path> {
    option_env!("ENEC_ASCEND_MODEL_COMPILER").map(Path::new).ok_or_else(absent)
}

fn absent() -> Error {
    let reason = option_env!("ENEC_ASCEND_MODEL_ABSENT").unwrap_or("it was not built");
    Error::Unavailable { backend: NAME.into(), reason: reason.into() }
}

/// The kernels as an object that the pretend AscendCL loads, with settings of the host model.
#[must_use]
pub fn object(settings: &str) -> KernelSource {
    KernelSource::Object(format!("enec host model\n{settings}\n").into_bytes().into())
}

/// What to open for a variant; `None` is the first.
///
/// # Errors
///
/// [`Error::Unavailable`] as [`library`], [`Error::Argument`] if there is no such variant, and as [`Configuration::of_environment`].
pub fn configuration(variant: Option<&str>) -> Result<Configuration> {
    let asked = variant.unwrap_or(VARIANTS[0]);
    let (variant, settings) = SCHEDULES
        .into_iter()
        .find(|(name, _)| *name == asked)
        .ok_or_else(|| Error::Argument(format!("variant `{asked}` of `{NAME}`, expected one of {VARIANTS:?}")))?;
    let more = std::env::var(SETTINGS_VARIABLE).unwrap_or_default();
    Ok(Configuration {
        backend: NAME,
        name: Some("host model of a 910B2"),
        library: Some(PathBuf::from(library()?)),
        kernels: Some(object(&format!("{settings} {more}"))),
        variant,
        variants: &VARIANTS,
        time: KernelTime::Model,
        ..Configuration::of_environment()?
    })
}

/// Opens the host model.
///
/// # Errors
///
/// As [`configuration`] and [`AscendBackend::open`].
pub fn open(options: &OpenOptions) -> Result<AscendBackend> {
    AscendBackend::open(&configuration(options.variant.as_deref())?, options)
}
