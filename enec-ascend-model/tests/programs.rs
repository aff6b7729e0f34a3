//! The host model's own tests, in C++: its worked examples from the vendor's pages, kernels with one fault each that it must refuse, and what the
//! kernels cost. Each `enec-ascend/model/tests/*.cpp` is a program and a trial. The probes for a device are only compiled: they do what the model
//! refuses.

use std::path::{Path, PathBuf};
use std::process::{Command, ExitCode};

use libtest_mimic::{Arguments, Trial};

/// Kernels for `cargo xtask ascend-probe`.
const PROBES: &str = "probes/probes.cpp";
/// Flags beyond those of every build, as in the build script.
const FLAGS_VARIABLE: &str = "ENEC_ASCEND_MODEL_CXXFLAGS";

fn main() -> ExitCode {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../enec-ascend");
    let entries = std::fs::read_dir(folder.join("model/tests")).expect("the tests lie in the repository");
    let mut sources: Vec<PathBuf> = entries.map(|entry| entry.expect("the folder can be read").path()).collect();
    sources.retain(|path| path.extension().is_some_and(|extension| extension == "cpp"));
    sources.sort();
    assert!(!sources.is_empty(), "no program in {}", folder.display());
    let required =
        std::env::var(enec_conformance::REQUIRE).is_ok_and(|list| list.split(',').any(|name| name == "ascend-model"));
    sources.push(folder.join(PROBES));
    let trials = sources.into_iter().map(|source| {
        let name = source.file_stem().unwrap_or_default().to_string_lossy().into_owned();
        match enec_ascend_model::compiler() {
            Ok(compiler) => {
                let folder = folder.clone();
                Trial::test(name, move || run(compiler, &folder, &source).map_err(Into::into))
            }
            Err(error) => {
                let reason = error.to_string();
                Trial::test(format!("{name} [{reason}]"), move || Err(reason.into())).with_ignored_flag(!required)
            }
        }
    });
    let trials = trials.collect();
    libtest_mimic::run(&Arguments::from_args(), trials).exit_code()
}

/// Compiles a program and runs it.
fn run(compiler: &Path, folder: &Path, source: &Path) -> Result<(), String> {
    let program = Path::new(env!("CARGO_TARGET_TMPDIR")).join(source.file_stem().unwrap_or_default());
    let mut compile = Command::new(compiler);
    // Compiling takes longer than running.
    compile.args(["-std=c++17", "-O1", "-pthread", "-DENEC_HOST_MODEL"]);
    for include in ["model", "kernels"] {
        compile.arg("-I").arg(folder.join(include));
    }
    compile.args(std::env::var(FLAGS_VARIABLE).unwrap_or_default().split_whitespace());
    if source.ends_with(PROBES) {
        return finish(compile.args(["-fsyntax-only", "-Wall", "-Wextra", "-Werror"]).arg(source));
    }
    finish(compile.arg(source).arg("-o").arg(&program))?;
    finish(&mut Command::new(program))
}

/// Runs a command to its end; what it said is the error if it failed.
fn finish(command: &mut Command) -> Result<(), String> {
    let output = command.output().map_err(|error| format!("{command:?}: {error}"))?;
    let text = [output.stdout, output.stderr].concat();
    let text = String::from_utf8_lossy(&text);
    if output.status.success() { Ok(()) } else { Err(format!("{command:?}: {}\n{text}", output.status)) }
}
