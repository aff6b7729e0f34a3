//! `test --setup`: installs what the tests need and is absent.

use std::process::Command;

use crate::Result;
use crate::command::{cargo, run, succeeds};

/// The parts of the Rust toolchain that are not always installed; each is a cargo subcommand and a rustup component.
const COMPONENTS: [(&str, &str); 2] = [("clippy", "clippy"), ("fmt", "rustfmt")];

/// Whether `cargo NAME` works.
pub(crate) fn has_subcommand(name: &str) -> bool {
    succeeds(&mut cargo([name, "--version"]))
}

/// Installs absent components. The CPU tests need nothing beyond the Rust toolchain: no system package, no network after the
/// dependencies are there.
pub(crate) fn run_setup() -> Result {
    println!("system packages: none needed");
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
