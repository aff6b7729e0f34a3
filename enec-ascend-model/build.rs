//! Builds the pretend AscendCL, with the host model and the kernels in it, if there is a C++ compiler.

use std::env;
use std::path::{Path, PathBuf};

/// Flags of the compiler beyond those of every build, such as sanitizers; the variable `CXX` names the compiler.
const FLAGS_VARIABLE: &str = "ENEC_ASCEND_MODEL_CXXFLAGS";

fn main() {
    println!("cargo::rerun-if-env-changed={FLAGS_VARIABLE}");
    let folder = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("cargo sets it"));
    let ascend = folder.parent().expect("the crate lies in the workspace").join("enec-ascend");
    for path in [folder.join("acl"), ascend.join("model"), ascend.join("kernels")] {
        println!("cargo::rerun-if-changed={}", path.display());
    }
    let library = PathBuf::from(env::var_os("OUT_DIR").expect("cargo sets it")).join("libascendcl.so");
    println!("cargo::rustc-check-cfg=cfg(without_compiler)");
    match build(&folder, &ascend, &library) {
        Ok(compiler) => {
            println!("cargo::rustc-env=ENEC_ASCEND_MODEL_LIBRARY={}", library.display());
            println!("cargo::rustc-env=ENEC_ASCEND_MODEL_COMPILER={}", compiler.display());
        }
        Err(reason) => {
            println!("cargo::rustc-env=ENEC_ASCEND_MODEL_ABSENT={}", reason.replace('\n', " "));
            println!("cargo::rustc-cfg=without_compiler");
        }
    }
}

/// # Errors
///
/// Why there is no compiler. What the compiler refuses is a fault of the sources and stops the build.
fn build(folder: &Path, ascend: &Path, library: &Path) -> Result<PathBuf, String> {
    if !cfg!(target_os = "linux") || env::var("CARGO_CFG_TARGET_OS").as_deref() != Ok("linux") {
        return Err("it is for Linux only".into());
    }
    // Always optimised: the model is slow enough.
    let mut build = cc::Build::new();
    build.cpp(true).opt_level(2).debug(true).warnings(false).flag("-std=c++17");
    let compiler =
        build.try_get_compiler().map_err(|error| format!("no C++ compiler (Debian package `g++`): {error}"))?;
    let mut command = compiler.to_command();
    if !is_present(compiler.path()) {
        return Err(format!("the C++ compiler `{}` is absent (Debian package `g++`)", compiler.path().display()));
    }
    command.args(["-shared", "-fPIC", "-pthread", "-fvisibility=default", "-Wall", "-Wextra", "-Werror"]);
    for include in [ascend.join("model"), ascend.join("kernels"), folder.join("acl")] {
        command.arg("-I").arg(include);
    }
    command.args(env::var(FLAGS_VARIABLE).unwrap_or_default().split_whitespace());
    command
        .arg(ascend.join("model/launch.cpp"))
        .arg(folder.join("acl/pretend.cpp"))
        .arg(folder.join("acl/kernels.cpp"));
    let output =
        command.arg("-o").arg(library).output().map_err(|error| format!("cannot run the C++ compiler: {error}"))?;
    assert!(output.status.success(), "{command:?} failed:\n{}", String::from_utf8_lossy(&output.stderr));
    Ok(compiler.path().to_owned())
}

fn is_present(program: &Path) -> bool {
    std::process::Command::new(program).arg("--version").output().is_ok_and(|output| output.status.success())
}
