//! What is said when there is no device.

use std::num::NonZeroU32;

use enec_ascend::{AscendBackend, Configuration, KernelSource};
use enec_core::{Backend, Error, OpenOptions};

use crate::controls::Machine;

/// Why opening fails; probing gives the same reason.
fn reason(configuration: &Configuration) -> String {
    let Err(Error::Unavailable { backend, reason }) = AscendBackend::open(configuration, &OpenOptions::default())
    else {
        panic!("expected `Unavailable`");
    };
    assert_eq!(backend, "ascend-model");
    reason
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn a_device_is_described() {
    let machine = Machine::new();
    machine.has(3, 0, "Ascend910B4", 40);
    let devices = AscendBackend::probe(&machine.configuration()).unwrap();
    assert_eq!(devices.iter().map(|device| device.index).collect::<Vec<_>>(), [0, 1, 2]);
    assert_eq!(devices[2].memory, Some(64 << 30));
    for part in ["AscendCL 1.14.0", "Ascend910B4", "cores=40", "kernels="] {
        assert!(devices[0].fingerprint.contains(part), "{}", devices[0].fingerprint);
    }
    let options = OpenOptions { device: 3, ..OpenOptions::default() };
    let error = AscendBackend::open(&machine.configuration(), &options).unwrap_err().to_string();
    assert!(error.contains("device 3 asked for, there are 3, from 0"), "{error}");
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn absent_devices_have_reasons() {
    let machine = Machine::new();
    for (devices, code, chip, expected) in [
        (0, 0, "Ascend910B2", "device"),
        (1, 207_004, "Ascend910B2", "`aclrtGetDeviceCount` returned 207004 (no device): EL0004"),
        (1, 207_006, "Ascend910B2", "no permission"),
        (1, 507_899, "Ascend910B2", "`aclrtGetDeviceCount` returned 507899: EL0004"),
        (1, 0, "Ascend310P3", "the chip is `Ascend310P3`, and the kernels are made for the 910B family"),
        (1, 0, "Ascend910B", "the chip is `Ascend910B`"),
    ] {
        machine.has(devices, code, chip, 48);
        let configuration = machine.configuration();
        let text = reason(&configuration);
        assert!(text.contains(expected), "{text}");
        let Err(Error::Unavailable { reason, .. }) = AscendBackend::probe(&configuration) else {
            panic!("found a device")
        };
        assert_eq!(reason, text);
    }
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn a_library_without_its_functions_is_not_taken() {
    let configuration = Configuration { library: Some("libm.so.6".into()), ..Machine::new().configuration() };
    let text = reason(&configuration);
    assert!(text.contains("`libm.so.6` lacks the function `aclInit`"), "{text}");
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn kernels_are_asked_for_and_refused_by_name() {
    let machine = Machine::new();
    let with = |kernels| Configuration { kernels, ..machine.configuration() };
    let text = reason(&with(None));
    assert!(text.contains("`Ascend910B2` is present") && text.contains("ENEC_ASCEND_KERNELS"), "{text}");
    let text = reason(&with(Some(KernelSource::File("/nowhere/kernels.o".into()))));
    assert!(text.contains("`/nowhere/kernels.o`"), "{text}");
    let text = reason(&with(Some(KernelSource::Object(b"\x7FELF".as_slice().into()))));
    assert!(text.contains("`aclrtBinaryLoadFromFile`") && text.contains("not an object of the host model"), "{text}");
    let text = reason(&with(Some(enec_ascend_model::object("order=sideways"))));
    assert!(text.contains("order"), "{text}");
}

#[test]
#[cfg_attr(without_compiler, ignore = "built without a C++ compiler: install `g++`")]
fn cores_are_those_of_the_device_or_those_asked_for() {
    let machine = Machine::new();
    machine.has(1, 0, "Ascend910B2", 48);
    let open = |cores: Option<u32>| {
        let configuration = Configuration { cores: cores.and_then(NonZeroU32::new), ..machine.configuration() };
        AscendBackend::open(&configuration, &OpenOptions::default()).unwrap().info().fingerprint.clone()
    };
    assert!(open(None).contains("cores=48"));
    assert!(open(Some(7)).contains("cores=7"));
}
