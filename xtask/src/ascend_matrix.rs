//! `cargo xtask ascend-matrix`: the Ascend kernels on the host model, on every number of cores and under every scheduling, built by each compiler,
//! with and without sanitizers.

use std::process::Command;

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command, succeeds};

#[derive(Args)]
pub(crate) struct Options {
    /// Every pair of settings instead of every combination
    #[arg(long)]
    pairwise: bool,
}

/// A C++ compiler.
#[derive(Clone, Copy)]
pub(crate) struct Compiler {
    pub(crate) program: &'static str,
    /// Flags that make the sanitizers' runtime a library of its own: the test program, which has none, loads it first.
    shared: &'static str,
    /// That library, as the compiler finds it.
    runtime: fn() -> String,
}

const GCC: Compiler = Compiler { program: "g++", shared: "", runtime: || "libasan.so".into() };
pub(crate) const CLANG: Compiler = Compiler {
    program: "clang++",
    shared: "-shared-libasan",
    runtime: || format!("libclang_rt.asan-{}.so", std::env::consts::ARCH),
};

pub(crate) fn run(options: &Options) -> Result {
    for compiler in [GCC, CLANG] {
        for sanitized in [false, true] {
            matrix(compiler, sanitized, options.pairwise)?;
        }
    }
    Ok(())
}

impl Compiler {
    /// Whether it is there, with what sanitizers need.
    pub(crate) fn is_present(self) -> bool {
        succeeds(Command::new(self.program).arg("--version")) && self.sanitizer().is_ok()
    }

    /// The path of the sanitizers' runtime.
    fn sanitizer(self) -> Result<String> {
        let output = Command::new(self.program).arg(format!("-print-file-name={}", (self.runtime)())).output()?;
        let path = String::from_utf8(output.stdout)?.trim().to_owned();
        // A compiler that does not find it prints the name as it is.
        if path.starts_with('/') { Ok(path) } else { Err(format!("{} has no {path}", self.program).into()) }
    }
}

/// Runs the matrix with one compiler.
pub(crate) fn matrix(compiler: Compiler, sanitized: bool, pairwise: bool) -> Result {
    let mut command = cargo(["test", "--package", "enec-ascend-model", "--test", "matrix", "--", "--nocapture"]);
    if pairwise {
        command.arg("every_pair_of_settings");
    } else {
        command.args(["--ignored", "every_combination_of_settings"]);
    }
    command.env("CXX", compiler.program);
    if sanitized {
        let flags =
            ["-fsanitize=address,undefined", "-fno-sanitize-recover=all", "-fno-omit-frame-pointer", compiler.shared];
        command.env("ENEC_ASCEND_MODEL_CXXFLAGS", flags.join(" ").trim_end());
        // Of the test program only: cargo and rustc are not to run under it. What static objects of the library hold at the end is no leak.
        let runner = format!("CARGO_TARGET_{}_RUNNER", host()?.to_uppercase().replace('-', "_"));
        let preload = format!("LD_PRELOAD={}", compiler.sanitizer()?);
        command.env(runner, format!("env {preload} ASAN_OPTIONS=detect_leaks=0 UBSAN_OPTIONS=print_stacktrace=1"));
    }
    run_command(&mut command)
}

/// The platform that cargo builds for.
fn host() -> Result<String> {
    let output = Command::new("rustc").arg("-vV").output()?;
    let text = String::from_utf8(output.stdout)?;
    let host = text.lines().find_map(|line| line.strip_prefix("host: ")).ok_or("rustc does not tell its host")?;
    Ok(host.to_owned())
}
