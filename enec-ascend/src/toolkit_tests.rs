//! The build script's use of a toolkit, on a toolkit of shell scripts.

#![cfg(unix)]

#[path = "../build/toolkit.rs"]
mod toolkit;

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

use toolkit::Toolkit;

/// A toolkit whose programs write down their arguments, and copy them to their output.
fn install(folder: &Path, version: &str, program: &str) {
    let root = folder.join("x86_64-linux");
    for include in ["tikcpp/tikcfw", "include"] {
        fs::create_dir_all(root.join(include)).unwrap();
    }
    fs::write(root.join("ascend_toolkit_install.info"), format!("package_name=toolkit\nversion={version}\n")).unwrap();
    let programs = folder.join("compiler/ccec_compiler/bin");
    fs::create_dir_all(&programs).unwrap();
    for name in ["bisheng", "ld.lld"] {
        fs::write(programs.join(name), program).unwrap();
        fs::set_permissions(programs.join(name), fs::Permissions::from_mode(0o755)).unwrap();
    }
}

const RECORDER: &str = "#!/bin/sh\nfor last; do :; done\necho \"$@\" > \"$last\"\n";

#[test]
fn the_embedded_object_is_compiled_and_linked() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), "8.5.0", RECORDER);
    let sources = folder.path().join("kernels");
    fs::create_dir(&sources).unwrap();
    fs::write(sources.join("one.cpp"), "").unwrap();
    fs::write(sources.join("abi.h"), "").unwrap();
    let kernel = folder.path().join("kernel.o");
    Toolkit::open(folder.path()).unwrap().build(&sources, folder.path(), &kernel).unwrap();
    let compiled = fs::read_to_string(folder.path().join("one.o")).unwrap();
    for part in [
        "-x cce",
        "--cce-aicore-arch=dav-c220-vec",
        "-mllvm -cce-aicore-stack-size=0x8000",
        "one.cpp",
        "tikcfw",
        "-DENEC_CANN_8",
    ] {
        assert!(compiled.contains(part), "`{part}`: {compiled}");
    }
    let linked = fs::read_to_string(kernel).unwrap();
    assert!(
        linked.contains("-m aicorelinux -Ttext=0") && linked.contains("one.o") && !linked.contains("abi"),
        "{linked}"
    );
}

#[test]
fn versions_that_are_not_supported_are_named() {
    for version in ["8.0.0", "7.0.RC1", "10.0.0", "", "community"] {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), version, RECORDER);
        let error = Toolkit::open(folder.path()).unwrap_err();
        assert!(error.contains(&format!("CANN `{version}`")) && error.contains("8.1 to 9.x"), "{error}");
    }
    for version in ["8.1.RC1", "8.2.RC1.alpha002", "8.5.0", "9.1.0", "9.2.0-beta.1"] {
        let folder = tempfile::tempdir().unwrap();
        install(folder.path(), version, RECORDER);
        assert!(Toolkit::open(folder.path()).is_ok(), "{version}");
    }
}

#[test]
fn what_is_missing_is_named() {
    let folder = tempfile::tempdir().unwrap();
    assert!(Toolkit::open(folder.path()).unwrap_err().contains("ascend_toolkit_install.info"));
    install(folder.path(), "9.1.0", RECORDER);
    fs::remove_file(folder.path().join("compiler/ccec_compiler/bin/ld.lld")).unwrap();
    assert!(Toolkit::open(folder.path()).unwrap_err().contains("`ld.lld`"));
}

#[test]
fn what_the_compiler_says_is_told() {
    let folder = tempfile::tempdir().unwrap();
    install(folder.path(), "9.1.0", "#!/bin/sh\necho 'one.cpp:1: error: no such API' >&2\nexit 1\n");
    fs::write(folder.path().join("one.cpp"), "").unwrap();
    let toolkit = Toolkit::open(folder.path()).unwrap();
    let error = toolkit.build(folder.path(), folder.path(), &folder.path().join("kernel.o")).unwrap_err();
    assert!(error.contains("bisheng") && error.contains("no such API"), "{error}");
}
