//! `test --setup`: installs what the tests need and is absent.

use std::process::Command;

use crate::Result;
use crate::command::{cargo, run, succeeds};
use crate::packages::{self, SystemPackage};
use crate::python::VENV;

/// The parts of the Rust toolchain that are not always installed; each is a cargo subcommand and a rustup component.
const COMPONENTS: [(&str, &str); 2] = [("clippy", "clippy"), ("fmt", "rustfmt")];

/// Debian packages that tests need; each test that does without says so by name.
const PACKAGES: [SystemPackage; 6] = [
    SystemPackage { name: "g++", probe: "c++ --version", why: "CUDA and Ascend kernels on the host" },
    SystemPackage { name: "clang", probe: "clang++ --version", why: "the Ascend kernels under sanitizers" },
    SystemPackage {
        name: "libclang-rt-14-dev",
        probe: "test -e \"$(clang++ -print-file-name=libclang_rt.asan-$(uname -m).so)\"",
        why: "the Ascend kernels under sanitizers",
    },
    SystemPackage {
        name: "mesa-vulkan-drivers",
        probe: "ls /usr/share/vulkan/icd.d/lvp_icd.*",
        why: "a Vulkan device in software, for the wgpu backend",
    },
    SystemPackage { name: "libvulkan1", probe: "ls /usr/lib/*/libvulkan.so.1", why: "the wgpu backend" },
    VENV,
];

/// Whether `cargo NAME` works.
pub(crate) fn has_subcommand(name: &str) -> bool {
    succeeds(&mut cargo([name, "--version"]))
}

/// Installs absent components and system packages. What cannot be installed here is named: the tests that need it are skipped later, or
/// fail where everything is required.
pub(crate) fn run_setup() -> Result {
    let absent: Vec<&SystemPackage> = PACKAGES.iter().filter(|package| !package.is_present("python3")).collect();
    if absent.is_empty() {
        println!("system packages: all present");
    } else if let Err(error) = packages::install(&absent) {
        println!("system packages: {error}");
    }
    for (subcommand, component) in COMPONENTS {
        if has_subcommand(subcommand) {
            println!("{component}: present");
        } else if succeeds(Command::new("rustup").arg("--version")) {
            run(Command::new("rustup").args(["component", "add", component]))?;
        } else {
            println!(
                "{component}: absent and rustup not found; install `{component}` with your Rust toolchain's packages"
            );
        }
    }
    Ok(())
}
