//! `test --setup`: installs what the tests need and is absent.

use std::process::Command;

use crate::Result;
use crate::command::{cargo, run, succeeds};
use crate::packages::{self, SystemPackage};

/// The parts of the Rust toolchain that are not always installed; each is a cargo subcommand and a rustup component.
const COMPONENTS: [(&str, &str); 2] = [("clippy", "clippy"), ("fmt", "rustfmt")];

/// Debian packages that tests need; each test that does without says so by name.
const PACKAGES: [SystemPackage; 0] = [];

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
