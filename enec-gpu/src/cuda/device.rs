//! The driver's library and the devices that it has: looking for them, and saying why there are none.

#![allow(unsafe_code, reason = "the driver's interface is C")]

use std::ffi::{CStr, c_int};
use std::sync::OnceLock;

use cudarc::driver::{DriverError, result, sys};
use enec_core::{BackendId, Codecs, DeviceInfo, Error};

use super::launcher::Description;

/// The kernels: PTX for devices of compute capability 8.0 or newer, which the driver compiles for the device that it has.
pub(super) const VARIANT: &str = "ptx80";
const OLDEST_DEVICE: (i32, i32) = (8, 0);
/// Drivers know the version of CUDA that they support as a number: 1000 times the major one, plus 10 times the minor one.
const OLDEST_DRIVER: i32 = 12_000;

pub(super) fn unavailable(reason: impl Into<String>) -> Error {
    Error::Unavailable { backend: "cuda".into(), reason: reason.into() }
}

pub(super) fn probe() -> enec_core::Result<Vec<DeviceInfo>> {
    let count = device_count()?;
    let mut refused = Vec::new();
    let mut devices = Vec::new();
    for index in 0..count {
        match Device::find(index) {
            Ok(device) => devices.push(device.info()),
            Err(Error::Unavailable { reason, .. }) => refused.push(reason),
            Err(error) => refused.push(error.to_string()),
        }
    }
    if devices.is_empty() { Err(unavailable(refused.join("; "))) } else { Ok(devices) }
}

/// Loads the driver and counts its devices.
fn device_count() -> enec_core::Result<usize> {
    static LOADED: OnceLock<Result<(), String>> = OnceLock::new();
    LOADED.get_or_init(load).clone().map_err(unavailable)?;
    let count = result::device::get_count().map_err(|error| unavailable(describe(error)))?;
    match usize::try_from(count) {
        Ok(count) if count > 0 => Ok(count),
        _ => Err(unavailable("the driver has no device")),
    }
}

/// Loads and initialises the driver.
fn load() -> Result<(), String> {
    // SAFETY: loading a library runs its initialisers; this one is the driver's, or whatever the user has put in its place.
    if !unsafe { sys::is_culib_present() } {
        return Err(absent());
    }
    // Asked before anything else, and looked up here: a function that the library lacks would be a panic in the bindings.
    type Version = unsafe extern "C" fn(*mut c_int) -> sys::CUresult;
    // SAFETY: the library is there. If it is a driver's, the function has this type: it writes one number, and may be called at any time.
    let version = unsafe {
        let function = sys::culib().get::<Version>(b"cuDriverGetVersion\0");
        let function =
            function.map_err(|_| "the library of the driver lacks `cuDriverGetVersion`: it is no driver's")?;
        let mut version = 0;
        function(&raw mut version).result().map(|()| version).map_err(describe)?
    };
    if version < OLDEST_DRIVER {
        let (found, oldest) = (decimal(version), decimal(OLDEST_DRIVER));
        return Err(format!(
            "the driver supports CUDA {found}; update it to one that supports {oldest} (525 or newer)"
        ));
    }
    result::init().map_err(describe)
}

fn decimal(version: i32) -> String {
    format!("{}.{}", version / 1000, version % 1000 / 10)
}

/// Why there is no driver: what was looked for, and where.
fn absent() -> String {
    let (library, variable) = if cfg!(windows) { ("nvcuda.dll", "PATH") } else { ("libcuda.so.1", "LD_LIBRARY_PATH") };
    let folders = match std::env::var(variable) {
        Ok(folders) if !folders.is_empty() => format!("`{variable}` is `{folders}`"),
        _ => format!("`{variable}` is not set"),
    };
    format!("no NVIDIA driver: the loader does not find `{library}` ({folders}); install it, or name its folder there")
}

/// The driver's name and text of an error.
pub(super) fn describe(error: DriverError) -> String {
    let text = |text: Result<&CStr, DriverError>| text.ok().map(|text| text.to_string_lossy().into_owned());
    match (text(error.error_name()), text(error.error_string())) {
        (Some(name), Some(text)) => format!("`{name}`: {text}"),
        _ => format!("error {:?} of the driver", error.0 as u32),
    }
}

/// A device that the kernels can run on.
pub(super) struct Device {
    pub(super) index: usize,
    pub(super) description: Description,
}

impl Device {
    pub(super) fn find(index: usize) -> enec_core::Result<Self> {
        let count = device_count()?;
        if index >= count {
            return Err(unavailable(format!("device {index} asked for, the driver has {count}, numbered from 0")));
        }
        let ordinal = i32::try_from(index).map_err(|_| unavailable(format!("device {index} asked for")))?;
        Self::describe(index, ordinal).map_err(|error| unavailable(format!("device {index}: {}", describe(error))))?
    }

    fn describe(index: usize, ordinal: i32) -> Result<enec_core::Result<Self>, DriverError> {
        use sys::CUdevice_attribute_enum as Attribute;

        let device = result::device::get(ordinal)?;
        // SAFETY: the device has just been given out by the driver.
        let attribute = |attribute| unsafe { result::device::get_attribute(device, attribute) };
        let (major, minor) = (
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR)?,
            attribute(Attribute::CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR)?,
        );
        let name = result::device::get_name(device)?;
        if (major, minor) < OLDEST_DEVICE {
            let (oldest, _) = OLDEST_DEVICE;
            let reason =
                format!("device {index}, {name}, has compute capability {major}.{minor}; {oldest}.0 is needed");
            return Ok(Err(unavailable(reason)));
        }
        let processors = attribute(Attribute::CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT)?;
        let mut version = 0;
        // SAFETY: the function writes one number.
        unsafe { sys::cuDriverGetVersion(&raw mut version) }.result()?;
        // SAFETY: as for the attributes.
        let memory = unsafe { result::device::total_mem(device)? };
        let fingerprint = format!("sm_{major}{minor} x{processors} driver {}", decimal(version));
        Ok(Ok(Self { index, description: Description { index, name, fingerprint, memory: Some(memory as u64) } }))
    }

    fn info(self) -> DeviceInfo {
        let Description { index, name, fingerprint, memory } = self.description;
        DeviceInfo {
            id: BackendId::unique(),
            backend: "cuda",
            index,
            name,
            fingerprint: format!("{fingerprint} {VARIANT}"),
            memory,
            variant: VARIANT,
            variants: vec![VARIANT],
            codecs: Codecs::ENEC,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_as_the_driver_writes_them() {
        assert_eq!((decimal(12_020), decimal(13_000), decimal(11_080)), ("12.2".into(), "13.0".into(), "11.8".into()));
    }

    /// Whatever this machine has, asking does not panic, and a refusal says what to do.
    #[test]
    fn asking_for_devices_does_not_panic() {
        match probe() {
            Ok(devices) => assert!(!devices.is_empty()),
            Err(Error::Unavailable { backend, reason }) => {
                assert_eq!(backend, "cuda");
                assert!(!reason.is_empty());
            }
            Err(error) => panic!("{error}"),
        }
    }

    #[test]
    fn without_a_driver_the_reason_names_its_library() {
        let reason = absent();
        assert!(reason.contains("cuda") && reason.contains("PATH"), "{reason}");
    }
}
