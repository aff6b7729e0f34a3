//! Which devices there are, and exactly why there is none.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use enec_core::{BackendId, Codecs, DeviceInfo, Error, Result};
use enec_format::hash::xxh3_64;

use crate::acl::device::Device;
use crate::acl::error::{AclError, NO_DEVICE, NO_PERMISSION};
use crate::acl::library::Library;
use crate::configuration::Configuration;
use crate::kernels::{self, KernelSource};

/// Starts of the names of chips that the kernels are made for: Atlas A2 and A3, both of architecture 2201.
const CHIPS: [&str; 2] = ["Ascend910B", "Ascend910_93"];

/// A device that can be opened.
#[derive(Debug)]
pub(crate) struct Found {
    pub(crate) device: Arc<Device>,
    pub(crate) info: DeviceInfo,
    pub(crate) cores: u32,
    pub(crate) kernels: KernelSource,
}

/// AscendCL on a machine with devices that the kernels are made for.
#[derive(Debug)]
pub(crate) struct Machine {
    library: Arc<Library>,
    chip: String,
    pub(crate) devices: usize,
}

/// Looks for AscendCL and for devices.
///
/// # Errors
///
/// [`Error::Unavailable`] with the reason.
pub(crate) fn machine(configuration: &Configuration) -> Result<Machine> {
    let library = Library::open(configuration.library.as_deref())
        .map_err(|absence| configuration.unavailable(absence.to_string()))?;
    let count = library.device_count().map_err(|error| configuration.unavailable(no_devices(&error, Nodes::here())))?;
    if count == 0 {
        let none = AclError { function: "aclrtGetDeviceCount", code: NO_DEVICE, text: String::new() };
        return Err(configuration.unavailable(no_devices(&none, Nodes::here())));
    }
    let chip = library.soc_name();
    if !is_supported(&chip) {
        let chip = if chip.is_empty() {
            "`aclrtGetSocName` does not name the chip".into()
        } else {
            format!("the chip is `{chip}`")
        };
        return Err(configuration
            .unavailable(format!("{chip}, and the kernels are made for the 910B family (Atlas A2 and A3)")));
    }
    Ok(Machine { library, chip, devices: usize::try_from(count).unwrap_or(usize::MAX) })
}

/// Takes a device into use and describes it.
///
/// # Errors
///
/// [`Error::Unavailable`] without such a device or without kernels.
pub(crate) fn device(configuration: &Configuration, machine: &Machine, index: usize) -> Result<Found> {
    let Machine { library, chip, devices } = machine;
    let number = i32::try_from(index).ok().filter(|_| index < *devices);
    let Some(number) = number else {
        return Err(configuration.unavailable(format!("device {index} asked for, there are {devices}, from 0")));
    };
    let Some(kernels) = configuration.kernels.clone() else {
        return Err(configuration.unavailable(format!("`{chip}` is present, but {}", kernels::absent())));
    };
    let failed = |error: AclError| configuration.unavailable(format!("device {index}: {error}"));
    let device = Device::open(Arc::clone(library), number).map_err(failed)?;
    let memory = device.enter().and_then(|entered| entered.memory()).map_err(failed)?;
    let cores = device.vector_cores().map_err(failed)?;
    let cores = configuration.cores.map_or(cores, |cores| cores.get());
    let version = library.version().map_or_else(|| "AscendCL".into(), |version| format!("AscendCL {version}"));
    let info = DeviceInfo {
        id: BackendId::unique(),
        backend: configuration.backend,
        index,
        name: configuration.name.map_or_else(|| chip.clone(), Into::into),
        fingerprint: format!("{version} {chip} cores={cores} kernels={}", fingerprint(&kernels)),
        memory: Some(memory as u64),
        variant: configuration.variant,
        variants: configuration.variants.to_vec(),
        codecs: Codecs::ENEC,
    };
    Ok(Found { device, info, cores, kernels })
}

/// A hash of the object; whether it can be read shows when it is loaded.
fn fingerprint(kernels: &KernelSource) -> String {
    let hash = |bytes: &[u8]| format!("{:016x}", xxh3_64(bytes));
    match kernels {
        KernelSource::Object(bytes) => hash(bytes),
        KernelSource::File(path) => fs::read(path).map_or_else(|_| "unreadable".into(), |bytes| hash(&bytes)),
    }
}

/// `Ascend910B` by itself is a chip of the generation before: a digit has to follow.
fn is_supported(chip: &str) -> bool {
    CHIPS
        .iter()
        .any(|start| chip.strip_prefix(start).is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit())))
}

/// What the driver shows in `/dev`.
#[derive(Debug, PartialEq, Eq)]
enum Nodes {
    Absent,
    Denied(PathBuf),
    Present,
}

impl Nodes {
    fn here() -> Self {
        Self::below(Path::new("/dev"))
    }

    fn below(folder: &Path) -> Self {
        let is_device = |name: &str| {
            name.strip_prefix("davinci")
                .is_some_and(|rest| !rest.is_empty() && rest.bytes().all(|b| b.is_ascii_digit()))
        };
        let entries = fs::read_dir(folder).into_iter().flatten().flatten();
        let mut nodes: Vec<PathBuf> = entries
            .filter(|entry| entry.file_name().to_str().is_some_and(is_device))
            .map(|entry| entry.path())
            .collect();
        nodes.sort();
        let denied = |path: &PathBuf| {
            let opened = fs::OpenOptions::new().read(true).write(true).open(path);
            opened.is_err_and(|error| error.kind() == io::ErrorKind::PermissionDenied)
        };
        match nodes.iter().find(|path| denied(path)) {
            Some(path) => Self::Denied(path.clone()),
            None if nodes.is_empty() => Self::Absent,
            None => Self::Present,
        }
    }
}

/// Why AscendCL found no device, as far as the machine shows it.
fn no_devices(error: &AclError, nodes: Nodes) -> String {
    match nodes {
        Nodes::Denied(node) => format!(
            "no permission for `{}`: add the user to the group that owns it, usually `HwHiAiUser`, and log in again ({error})",
            node.display()
        ),
        _ if error.code == NO_PERMISSION => {
            format!(
                "no permission to use the devices: add the user to the driver's group, usually `HwHiAiUser` ({error})"
            )
        }
        Nodes::Absent => format!(
            "there is no device: the driver shows no `/dev/davinci*`; check `npu-smi info`, and in a container the devices it was \
             given ({error})"
        ),
        Nodes::Present => {
            format!("no device can be used: check `npu-smi info` and `ASCEND_RT_VISIBLE_DEVICES` ({error})")
        }
    }
}

impl Configuration {
    /// An error about the availability of what this opens.
    pub(crate) fn unavailable(&self, reason: String) -> Error {
        Error::Unavailable { backend: self.backend.into(), reason }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn chips_of_architecture_2201_are_supported() {
        for chip in ["Ascend910B1", "Ascend910B2", "Ascend910B2C", "Ascend910B4-1", "Ascend910_9391"] {
            assert!(is_supported(chip), "{chip}");
        }
        for chip in ["", "Ascend910", "Ascend910A", "Ascend910B", "Ascend310P3", "Ascend950PR", "Ascend910ProB"] {
            assert!(!is_supported(chip), "{chip}");
        }
    }

    #[test]
    fn device_nodes_are_told_from_others() {
        let folder = tempfile::tempdir().unwrap();
        fs::write(folder.path().join("davinci_manager"), "").unwrap();
        assert_eq!(Nodes::below(folder.path()), Nodes::Absent);
        fs::write(folder.path().join("davinci0"), "").unwrap();
        assert_eq!(Nodes::below(folder.path()), Nodes::Present);
        assert_eq!(Nodes::below(&folder.path().join("nowhere")), Nodes::Absent);
    }

    #[test]
    fn the_reason_names_what_is_missing() {
        let error = |code| AclError { function: "aclrtGetDeviceCount", code, text: "vendor text".into() };
        for (error, nodes, expected) in [
            (error(NO_DEVICE), Nodes::Absent, "the driver shows no `/dev/davinci*`"),
            (error(NO_DEVICE), Nodes::Denied("/dev/davinci0".into()), "no permission for `/dev/davinci0`"),
            (error(NO_PERMISSION), Nodes::Absent, "no permission to use the devices"),
            (error(NO_DEVICE), Nodes::Present, "ASCEND_RT_VISIBLE_DEVICES"),
        ] {
            let text = no_devices(&error, nodes);
            assert!(text.contains(expected) && text.contains("vendor text"), "{text}");
        }
    }
}
