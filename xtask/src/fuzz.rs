//! `cargo xtask fuzz`: runs the targets of `fuzz/` for a while each.

use std::fs;

use cargo_metadata::{MetadataCommand, TargetKind};
use clap::Args;

use crate::command::{cargo, root, run as run_command};
use crate::{Result, setup};

#[derive(Args)]
pub(crate) struct Options {
    /// Targets to run; all of them if none is named
    targets: Vec<String>,
    /// Seconds for each target
    #[arg(long, default_value_t = 60)]
    seconds: u32,
    /// Build with AddressSanitizer, which is slower and finds more
    #[arg(long)]
    address_sanitizer: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    if !setup::has_subcommand("fuzz") {
        println!("`cargo fuzz` is not installed; installing it");
        run_command(&mut cargo(["install", "--locked", "cargo-fuzz"]))?;
    }
    let all = targets()?;
    if let Some(unknown) = options.targets.iter().find(|name| !all.contains(name)) {
        return Err(format!("no fuzz target `{unknown}`; there are: {}", all.join(", ")).into());
    }
    for target in if options.targets.is_empty() { &all } else { &options.targets } {
        let mut command = cargo(["fuzz", "run"]);
        if options.address_sanitizer {
            // Sanitizers are an unstable compiler option.
            command.args(["-s", "address"]).env("RUSTC_BOOTSTRAP", "1");
        } else {
            command.args(["-s", "none"]);
        }
        // What is found goes into the first folder; the committed corpus is the second, and stays as it is.
        let found = root().join("target/fuzz-corpus").join(target);
        fs::create_dir_all(&found)?;
        command.arg(target).arg(found).arg(root().join("fuzz/corpus").join(target));
        command.args(["--", &format!("-max_total_time={}", options.seconds)]);
        run_command(&mut command)?;
    }
    Ok(())
}

/// The programs of the workspace `fuzz/`.
fn targets() -> Result<Vec<String>> {
    let metadata = MetadataCommand::new().current_dir(root().join("fuzz")).no_deps().exec()?;
    let targets = metadata.packages.into_iter().flat_map(|package| package.targets);
    Ok(targets.filter(|target| target.kind.contains(&TargetKind::Bin)).map(|target| target.name).collect())
}
