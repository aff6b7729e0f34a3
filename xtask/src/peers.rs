//! `cargo xtask bench --peers`: ENEC beside other compressors, which are set up in an environment of their own under `target/peers/`.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::command::{cargo, metadata, root, run as run_command, succeeds};
use crate::packages::{self, SystemPackage};

/// Installed into the environment, one paragraph after the other.
const REQUIREMENTS: &str = "enec-bench/peers/requirements.txt";
const PROGRAM: &str = "enec-bench/peers/peers.py";

/// On PyPI, torch for Linux is the CUDA build, gigabytes large; Debian's is for the CPU.
const SYSTEM_PACKAGES: [SystemPackage; 4] = [
    SystemPackage { name: "python3-venv", probe: "$PYTHON -c 'import ensurepip'", why: "the environment" },
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
    let python = environment(&folder, allow_missing)?;
    run_command(&mut cargo(["build", "--release", "--package", "enec-bench"]))?;
    let mut measure = Command::new(python);
    measure.arg(root().join(PROGRAM)).args(arguments);
    measure.arg("--enec").arg(target.join("release/enec-bench")).arg("--folder").arg(&folder);
    run_command(&mut measure)
}

/// The Python of the environment, with everything installed; with `allow_missing`, with everything that can be installed.
fn environment(folder: &Path, allow_missing: bool) -> Result<PathBuf> {
    let python = folder.join("venv/bin/python");
    let required = fs::read_to_string(root().join(REQUIREMENTS))?;
    // Written when the environment is complete, with what it is made from.
    let complete = folder.join("complete.txt");
    if fs::read_to_string(&complete).is_ok_and(|text| text == required)
        && succeeds(Command::new(&python).arg("--version"))
    {
        return Ok(python);
    }
    fs::create_dir_all(folder)?;
    let base = system_python(allow_missing)?;
    // Debian's torch is reached as a package of the system.
    let create = ["-m", "venv", "--clear", "--system-site-packages"];
    run_command(Command::new(base).args(create).arg(folder.join("venv")))?;
    let mut failed = Vec::new();
    for paragraph in required.split("\n\n").skip(1) {
        let name = paragraph.trim_start_matches("# ").split([':', '\n']).next().unwrap_or_default();
        let file = folder.join(format!("{name}.txt"));
        fs::write(&file, paragraph)?;
        let install = ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
        if let Err(error) = run_command(Command::new(&python).args(install).arg(&file)) {
            eprintln!("{error}");
            failed.push(name);
        }
    }
    if failed.is_empty() {
        // Without a system package the next run must look for it again.
        if SYSTEM_PACKAGES.iter().all(|package| package.is_present(base)) {
            fs::write(&complete, required)?;
        }
    } else if allow_missing {
        eprintln!("warning: not installed: {}", failed.join(", "));
    } else {
        let failed = failed.join(", ");
        return Err(format!("cannot install {failed} (pip says why above); `--allow-missing` measures without").into());
    }
    Ok(python)
}

/// A Python that has the system packages. As root they are installed; otherwise absent ones are named.
fn system_python(allow_missing: bool) -> Result<&'static str> {
    // The first on the path may be another than Debian's, which alone finds Debian's packages.
    let candidates = ["python3", "/usr/bin/python3"];
    if let Some(python) =
        candidates.iter().find(|python| SYSTEM_PACKAGES.iter().all(|package| package.is_present(python)))
    {
        return Ok(python);
    }
    let python = candidates.into_iter().rfind(|python| succeeds(Command::new(python).arg("--version")));
    let python = python.ok_or("no `python3`; install it, for example with `apt-get install python3`")?;
    let absent: Vec<&SystemPackage> = SYSTEM_PACKAGES.iter().filter(|package| !package.is_present(python)).collect();
    match packages::install(&absent) {
        Ok(()) => Ok(python),
        Err(error) if allow_missing => {
            eprintln!("warning: {error}");
            Ok(python)
        }
        Err(error) => {
            Err(format!("{python}: {error}; `--allow-missing` measures without the peers that need them").into())
        }
    }
}
