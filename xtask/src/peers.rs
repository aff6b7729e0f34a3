//! `cargo xtask bench --peers`: ENEC beside other compressors, which are set up in an environment of their own under `target/peers/`.

use std::ffi::OsString;
use std::process::Command;

use crate::Result;
use crate::command::{cargo, metadata, root, run as run_command};
use crate::packages::SystemPackage;
use crate::python::{Environment, VENV};

/// Installed into the environment, one paragraph after the other.
const REQUIREMENTS: &str = "enec-bench/peers/requirements.txt";
const PROGRAM: &str = "enec-bench/peers/peers.py";

/// On PyPI, torch for Linux is the CUDA build, gigabytes large; Debian's is for the CPU.
const SYSTEM_PACKAGES: [SystemPackage; 4] = [
    VENV,
    SystemPackage {
        name: "python3-torch",
        probe: "$PYTHON -c 'from torch import bfloat16'",
        why: "ZipNN, which imports it",
    },
    SystemPackage {
        name: "python3-dev",
        probe: r#"$PYTHON -c 'import os, sysconfig; os.stat(os.path.join(sysconfig.get_path("include"), "Python.h"))'"#,
        why: "ZipNN, which is compiled",
    },
    SystemPackage { name: "gcc", probe: "cc --version", why: "ZipNN and lmz" },
];

/// Sets up what is absent, builds `enec-bench`, and measures. `arguments` are those of the Python program; `--help` lists them.
pub(crate) fn run(arguments: &[&OsString]) -> Result {
    let allow_missing = arguments.iter().any(|argument| *argument == "--allow-missing");
    let target = metadata()?.target_directory.into_std_path_buf();
    let folder = target.join("peers");
    let environment = Environment {
        requirements: REQUIREMENTS,
        system_packages: &SYSTEM_PACKAGES,
        // Debian's torch is reached as a package of the system.
        sees_system: true,
        allow_missing,
    };
    let hint = |error| format!("{error}; `--allow-missing` measures without the peers that need it");
    let python = environment.set_up(&folder).map_err(hint)?;
    run_command(&mut cargo(["build", "--release", "--package", "enec-bench"]))?;
    let mut measure = Command::new(python);
    measure.arg(root().join(PROGRAM)).args(arguments);
    measure.arg("--enec").arg(target.join("release/enec-bench")).arg("--folder").arg(&folder);
    run_command(&mut measure)
}
