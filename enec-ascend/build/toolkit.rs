//! The CANN toolkit as the build script uses it: where it is, which version, and how it compiles the kernels.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

/// Releases whose command line this is: from 8.1 to before 10.
const OLDEST: (u32, u32) = (8, 1);
const FIRST_UNKNOWN: u32 = 10;

/// Folders of the toolkit that the compiler may lie in.
const PROGRAM_FOLDERS: [&str; 3] = ["compiler/ccec_compiler/bin", "tools/bisheng_compiler/bin", "bin"];
/// Folders with headers, below the folder of the host's architecture; releases have some of them.
const INCLUDES: [&str; 12] = [
    "tikcpp/tikcfw",
    "tikcpp/tikcfw/impl",
    "tikcpp/tikcfw/interface",
    "asc",
    "asc/include",
    "asc/include/basic_api",
    "asc/include/adv_api",
    "asc/include/utils",
    "asc/impl",
    "asc/impl/basic_api",
    "asc/impl/adv_api",
    "include",
];

/// A toolkit that can compile the kernels.
#[derive(Debug)]
pub(crate) struct Toolkit {
    /// First number of the version.
    major: u32,
    compiler: PathBuf,
    linker: PathBuf,
    includes: Vec<PathBuf>,
}

impl Toolkit {
    /// The toolkit in a folder.
    ///
    /// # Errors
    ///
    /// What is missing there, or the version if it is none of those that are supported.
    pub(crate) fn open(folder: &Path) -> Result<Self, String> {
        let roots: Vec<PathBuf> = ["x86_64-linux", "aarch64-linux", "."]
            .into_iter()
            .map(|architecture| folder.join(architecture))
            .filter(|root| root.is_dir())
            .collect();
        let information =
            roots.iter().find_map(|root| fs::read_to_string(root.join("ascend_toolkit_install.info")).ok());
        let information = information.ok_or_else(|| {
            format!(
                "`{}` has no `ascend_toolkit_install.info`: it is not the folder of a CANN toolkit",
                folder.display()
            )
        })?;
        let version = information.lines().find_map(|line| line.trim().strip_prefix("version=")).unwrap_or_default();
        let unknown = || format!("CANN `{version}` in `{}` is not supported: expected 8.1 to 9.x", folder.display());
        let (major, _) =
            numbers(version).filter(|&numbers| numbers >= OLDEST && numbers.0 < FIRST_UNKNOWN).ok_or_else(unknown)?;
        let program = |name: &str| {
            let folders = roots.iter().flat_map(|root| PROGRAM_FOLDERS.map(|folder| root.join(folder)));
            let found = folders.map(|folder| folder.join(name)).find(|path| path.is_file());
            found.ok_or_else(|| format!("CANN `{version}` in `{}` has no `{name}`", folder.display()))
        };
        let includes = roots.iter().flat_map(|root| INCLUDES.map(|include| root.join(include)));
        let includes = includes.filter(|path| path.is_dir()).collect();
        Ok(Self { major, compiler: program("bisheng")?, linker: program("ld.lld")?, includes })
    }

    /// Compiles one source for the vector cores of architecture 2201.
    pub(crate) fn compilation(&self, source: &Path, object: &Path) -> Command {
        let mut command = Command::new(&self.compiler);
        command.args(["-c", "-x", "cce", "-O3", "-std=c++17"]);
        command.args(["--cce-aicore-arch=dav-c220-vec", "--cce-aicore-only", "--cce-auto-sync"]);
        command.arg("--cce-disable-kernel-global-attr-check");
        for option in [
            "-cce-aicore-stack-size=0x8000",
            "-cce-aicore-function-stack-size=0x8000",
            "-cce-aicore-record-overflow=true",
            "-cce-aicore-addr-transform",
            "-cce-aicore-dcci-insert-for-scalar=false",
        ] {
            command.args(["-mllvm", option]);
        }
        command.args(["-DTILING_KEY_VAR=0", "-DASCENDC_DUMP=0"]);
        if self.major == 8 {
            // Some functions got other names in 9 (`kernels/platform.h`).
            command.arg("-DENEC_CANN_8");
        }
        for include in &self.includes {
            command.arg("-I").arg(include);
        }
        command.arg(source).arg("-o").arg(object);
        command
    }

    /// Links what was compiled into an object that AscendCL loads.
    pub(crate) fn linkage(&self, objects: &[PathBuf], kernel: &Path) -> Command {
        let mut command = Command::new(&self.linker);
        command.args(["-m", "aicorelinux", "-Ttext=0"]).args(objects).arg("-static").arg("-o").arg(kernel);
        command
    }

    /// Compiles and links the sources in a folder.
    ///
    /// # Errors
    ///
    /// The command that failed, with what it said.
    pub(crate) fn build(&self, sources: &Path, output: &Path, kernel: &Path) -> Result<(), String> {
        let unreadable = |error| format!("cannot list `{}`: {error}", sources.display());
        let mut files: Vec<PathBuf> =
            fs::read_dir(sources).map_err(unreadable)?.flatten().map(|entry| entry.path()).collect();
        files.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
        files.sort();
        let mut objects = Vec::new();
        for source in files {
            let object = output.join(source.with_extension("o").file_name().unwrap_or_default());
            run(&mut self.compilation(&source, &object))?;
            objects.push(object);
        }
        run(&mut self.linkage(&objects, kernel))
    }
}

/// The first two numbers of a version such as `8.1.RC1` or `9.1.0`.
fn numbers(version: &str) -> Option<(u32, u32)> {
    let mut numbers = version.split('.').map(|part| part.parse().ok());
    Some((numbers.next()??, numbers.next()??))
}

fn run(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("cannot start {command:?}: {error}"))?;
    if output.status.success() {
        return Ok(());
    }
    Err(format!("{command:?} failed ({}):\n{}", output.status, String::from_utf8_lossy(&output.stderr)))
}
