//! Python environments of tasks: pinned packages, installed once under `target/`, and again when the pins change.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::command::{root, run, succeeds};
use crate::packages::{self, SystemPackage};

/// What every environment needs.
pub(crate) const VENV: SystemPackage =
    SystemPackage { name: "python3-venv", probe: "$PYTHON -c 'import ensurepip'", why: "the environment" };

/// An environment, as it should be.
pub(crate) struct Environment<'a> {
    /// What is installed: a file of pins. Its paragraphs, each behind a comment that starts with its name, are installed one after the
    /// other; the first says what the file is.
    pub(crate) requirements: &'a str,
    /// Packages of the system that it needs, [`VENV`] among them.
    pub(crate) system_packages: &'a [SystemPackage],
    /// Whether it sees the Python packages of the system.
    pub(crate) sees_system: bool,
    /// Go on with what can be installed.
    pub(crate) allow_missing: bool,
}

impl Environment<'_> {
    /// The Python of the environment in `folder`, with everything installed; with `allow_missing`, with everything that can be.
    pub(crate) fn set_up(&self, folder: &Path) -> Result<PathBuf> {
        let python = folder.join("venv/bin/python");
        let required = fs::read_to_string(root().join(self.requirements))?;
        // Written when the environment is complete, with what it is made from.
        let complete = folder.join("complete.txt");
        if fs::read_to_string(&complete).is_ok_and(|text| text == required)
            && succeeds(Command::new(&python).arg("--version"))
        {
            return Ok(python);
        }
        fs::create_dir_all(folder)?;
        let base = self.system_python()?;
        let mut create = Command::new(base);
        create.args(["-m", "venv", "--clear"]);
        if self.sees_system {
            create.arg("--system-site-packages");
        }
        run(create.arg(folder.join("venv")))?;
        let mut failed = Vec::new();
        for paragraph in required.split("\n\n").skip(1) {
            let name = paragraph.trim_start_matches("# ").split([':', ',', '\n']).next().unwrap_or_default();
            let file = folder.join(format!("{name}.txt"));
            fs::write(&file, paragraph)?;
            let install =
                ["-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps", "--requirement"];
            if let Err(error) = run(Command::new(&python).args(install).arg(&file)) {
                eprintln!("{error}");
                failed.push(name);
            }
        }
        if failed.is_empty() {
            // Without a system package the next run must look for it again.
            if self.system_packages.iter().all(|package| package.is_present(base)) {
                fs::write(&complete, required)?;
            }
        } else if self.allow_missing {
            eprintln!("warning: not installed: {}", failed.join(", "));
        } else {
            return Err(format!("cannot install {} (pip says why above)", failed.join(", ")).into());
        }
        Ok(python)
    }

    /// A Python that has the system packages. As root they are installed; otherwise absent ones are named.
    fn system_python(&self) -> Result<&'static str> {
        // The first on the path may be another than Debian's, which alone finds Debian's packages.
        let candidates = ["python3", "/usr/bin/python3"];
        if let Some(python) =
            candidates.iter().find(|python| self.system_packages.iter().all(|package| package.is_present(python)))
        {
            return Ok(python);
        }
        let python = candidates.into_iter().rfind(|python| succeeds(Command::new(python).arg("--version")));
        let python = python.ok_or("no `python3`; install it, for example with `apt-get install python3`")?;
        let absent = self.system_packages.iter().filter(|package| !package.is_present(python));
        let absent: Vec<&SystemPackage> = absent.collect();
        match packages::install(&absent) {
            Ok(()) => Ok(python),
            Err(error) if self.allow_missing => {
                eprintln!("warning: {error}");
                Ok(python)
            }
            Err(error) => Err(format!("{python}: {error}").into()),
        }
    }
}
