//! Debian packages that tasks need: how one sees that each is there, and how absent ones are installed.

use std::process::Command;

use crate::Result;
use crate::command::{run, succeeds};

/// A Debian package.
pub(crate) struct SystemPackage {
    pub(crate) name: &'static str,
    /// A shell command that fails without it. `$PYTHON` is the Python in question, where there is one.
    pub(crate) probe: &'static str,
    /// What needs it.
    pub(crate) why: &'static str,
}

impl SystemPackage {
    pub(crate) fn is_present(&self, python: &str) -> bool {
        succeeds(Command::new("sh").args(["-c", self.probe]).env("PYTHON", python))
    }
}

/// Installs the packages, as root on Debian and its relatives.
///
/// # Errors
///
/// Elsewhere, and if the installation fails: the message says what to install.
pub(crate) fn install(packages: &[&SystemPackage]) -> Result {
    let names: Vec<&str> = packages.iter().map(|package| package.name).collect();
    let apt = || {
        let update = ["update", "--quiet", "--quiet"];
        let install = ["install", "--yes", "--quiet", "--quiet", "--no-install-recommends"];
        run(apt_get().args(update)).and_then(|()| run(apt_get().args(install).args(&names)))
    };
    let failure = if !succeeds(apt_get().arg("--version")) {
        "there is no `apt-get`".to_owned()
    } else if !is_root() {
        "not root".to_owned()
    } else if let Err(error) = apt() {
        error.to_string()
    } else {
        return Ok(());
    };
    let needs: Vec<String> = packages.iter().map(|package| format!("`{}` for {}", package.name, package.why)).collect();
    let names = names.join(" ");
    Err(format!("{failure}; absent: {}; install them (on Debian: `apt-get install {names}`)", needs.join(", ")).into())
}

fn apt_get() -> Command {
    let mut command = Command::new("apt-get");
    command.env("DEBIAN_FRONTEND", "noninteractive");
    command
}

fn is_root() -> bool {
    Command::new("id").arg("-u").output().is_ok_and(|output| output.stdout == b"0\n")
}
