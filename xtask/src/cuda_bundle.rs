//! `cargo xtask cuda-bundle`: a folder of built programs that checks and measures the CUDA backend on a machine that has a device and a driver
//! and nothing else.

use std::fs;
use std::path::Path;
use std::process::Command;

use cargo_metadata::Message;
use clap::Args;

use crate::Result;
use crate::command::{cargo, metadata, root, run as run_command, succeeds};

/// Run on the device's machine.
const SCRIPT: &str = "enec-gpu/device/check.sh";

#[derive(Args)]
pub(crate) struct Options {
    /// Run it on this machine, once built
    #[arg(long)]
    run: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    let folder = metadata()?.target_directory.join("cuda-bundle").into_std_path_buf();
    if folder.exists() {
        fs::remove_dir_all(&folder)?;
    }
    fs::create_dir_all(&folder)?;
    let build = ["build", "--release", "--package", "enec-cli", "--package", "enec-bench"];
    let test = ["test", "--release", "--no-run", "--package", "enec-gpu", "--features", "cuda", "--test", "cuda"];
    let programs = [executables(&build)?, executables(&test)?].concat();
    for (name, program) in [("enec", "enec"), ("enec-bench", "enec-bench"), ("cuda", "conformance")] {
        let (_, path) = programs.iter().find(|(target, _)| target == name).ok_or(format!("cargo built no `{name}`"))?;
        fs::copy(path, folder.join(program))?;
        // Most of them is line tables, and they are carried about. Without the tool they are just larger.
        succeeds(Command::new("strip").arg(folder.join(program)));
    }
    for data in ["testdata/v1", "fuzz/corpus"] {
        copy_folder(&root().join(data), &folder.join(data))?;
    }
    fs::copy(root().join(SCRIPT), folder.join("check.sh"))?;
    println!("{}: copy it to the machine and run `./check.sh` in it", folder.display());
    if options.run { run_command(Command::new(folder.join("check.sh")).current_dir(&folder)) } else { Ok(()) }
}

/// What a build makes, with the targets' names.
fn executables(arguments: &[&str]) -> Result<Vec<(String, String)>> {
    let mut command = cargo(arguments);
    let output =
        command.arg("--message-format=json-render-diagnostics").stderr(std::process::Stdio::inherit()).output()?;
    if !output.status.success() {
        return Err(format!("`cargo {}` failed", arguments.join(" ")).into());
    }
    let mut programs = Vec::new();
    for message in Message::parse_stream(output.stdout.as_slice()) {
        if let Message::CompilerArtifact(artifact) = message?
            && let Some(path) = artifact.executable
        {
            programs.push((artifact.target.name, path.into_string()));
        }
    }
    Ok(programs)
}

fn copy_folder(from: &Path, to: &Path) -> Result {
    fs::create_dir_all(to)?;
    for entry in fs::read_dir(from)? {
        let entry = entry?;
        let target = to.join(entry.file_name());
        if entry.file_type()?.is_dir() {
            copy_folder(&entry.path(), &target)?;
        } else {
            fs::copy(entry.path(), target)?;
        }
    }
    Ok(())
}
