//! `cargo xtask test`: every check, cheapest first, stopping at the first failure.

use std::fs;
use std::process::Command;
use std::time::{Duration, Instant};

use cargo_metadata::Package;
use clap::Args;

use crate::Result;
use crate::command::{cargo, metadata, run as run_command};
use crate::{ascend_matrix, codegen, setup, tidy, vulkan};

/// Backends that must be present under `--require`; the conformance suite reads the list from `ENEC_REQUIRE`.
const REQUIRED_BACKENDS: &str = "cpu,cuda-host,wgpu,ascend-model";

/// Values of `ENEC_CPU`, one for each path through the kernels. The conformance suite runs on all that the processor has; the program is
/// tested once on each.
const CPU_PATHS: [&str; 4] = ["scalar", "portable", "avx2", "avx512"];

/// What is run once more with the CUDA kernels compiled with sanitizers: the suite in the order of warps that varies most, and all that is not of the suite.
const SANITIZED: [&[&str]; 2] =
    [&["--test", "faults", "--test", "kernels"], &["--test", "conformance", "--", "cuda-host:0/random/"]];

#[derive(Args)]
pub(crate) struct Options {
    /// Install what is needed and absent first
    #[arg(long)]
    setup: bool,
    /// Fail where something would be skipped
    #[arg(long)]
    require: bool,
}

/// Bits of the software Vulkan device's vectors, beside the machine's own, and what they make of its subgroups.
const VECTOR_WIDTHS: [(&str, &str); 2] = [("128", "4"), ("512", "16")];

pub(crate) fn run(options: &Options) -> Result {
    let mut report = Report { require: options.require, steps: Vec::new(), skipped: Vec::new() };
    let result = steps(options, &mut report);
    report.print();
    result.map(|()| println!("all checks passed"))
}

fn steps(options: &Options, report: &mut Report) -> Result {
    if options.setup {
        report.step("setup", setup::run_setup)?;
    }
    report.component("fmt", || {
        run_command(&mut cargo(["fmt", "--all", "--check"]))?;
        run_command(&mut cargo("fmt --manifest-path fuzz/Cargo.toml --check".split(' ')))
    })?;
    report.step("tidy", tidy::run)?;
    report.component("clippy", || {
        run_command(&mut cargo("clippy --workspace --all-targets --all-features -- -D warnings".split(' ')))
    })?;
    report.step("documentation", || {
        run_command(cargo("doc --workspace --all-features --no-deps".split(' ')).env("RUSTDOCFLAGS", "-D warnings"))
    })?;
    match codegen::Compilers::set_up() {
        Ok(compilers) => report.step("codegen", || compilers.kernels(true))?,
        Err(error) => report.skip("codegen", &error.to_string())?,
    }
    report.step("tests", || run_command(&mut tests(options, &[])))?;
    for (bits, invocations) in VECTOR_WIDTHS {
        let name = format!("wgpu with subgroups of {invocations}");
        if vulkan::software_driver().is_none() {
            report.skip(&name, "there is no software Vulkan driver; run `cargo xtask test --setup`")?;
        } else {
            let suite = ["--test", "wgpu"];
            report.step(&name, || run_command(tests(options, &suite).env("LP_NATIVE_VECTOR_WIDTH", bits)))?;
        }
    }
    let sanitized = "ascend kernels under sanitizers";
    if ascend_matrix::CLANG.is_present() {
        report.step(sanitized, || ascend_matrix::matrix(ascend_matrix::CLANG, true, true))?;
    } else {
        report.skip(sanitized, "`clang++` or its sanitizers are absent; run `cargo xtask test --setup`")?;
    }
    for path in CPU_PATHS {
        let name = format!("program on the {path} path");
        let absent = "this processor cannot run it, so nothing has tested those kernels";
        match path {
            _ if can_run(path) => {
                report.step(&name, || run_command(tests(options, &["--test", "cli"]).env("ENEC_CPU", path)))?;
            }
            // Not every server has them.
            "avx512" => report.leave_out(&name, absent),
            _ => report.skip(&name, absent)?,
        }
    }
    report.step("kernels under sanitizers", || {
        for arguments in SANITIZED {
            run_command(tests(options, arguments).env("ENEC_SANITIZE", "address,undefined"))?;
        }
        Ok(())
    })?;
    report.step("packages", package)
}

fn tests(options: &Options, arguments: &[&str]) -> Command {
    // Always the whole workspace: with other features of shared dependencies everything would be built again.
    let mut command = cargo(["test", "--workspace"].iter().chain(arguments));
    // Snapshots are compared, never written.
    command.env("INSTA_UPDATE", "no");
    if let Some(driver) = vulkan::software_driver() {
        command.envs(vulkan::environment(&driver));
    }
    if options.require {
        command.env("ENEC_REQUIRE", REQUIRED_BACKENDS);
    }
    command
}

/// Whether a path through the kernels can run here.
fn can_run(path: &str) -> bool {
    #[cfg(target_arch = "x86_64")]
    let (avx2, avx512) =
        (std::arch::is_x86_feature_detected!("avx2"), std::arch::is_x86_feature_detected!("avx512vbmi2"));
    #[cfg(not(target_arch = "x86_64"))]
    let (avx2, avx512) = (false, false);
    match path {
        "avx2" => avx2,
        "avx512" => avx512,
        _ => true,
    }
}

/// Packages every crate that may be published and builds what was packaged of the libraries; the program alone would take longer.
fn package() -> Result {
    let metadata = metadata()?;
    // Cargo takes packaged crates for immutable: it would go on with what it built of them the last time.
    let target = metadata.target_directory.join("package-check");
    if target.exists() {
        fs::remove_dir_all(&target)?;
    }
    let published = metadata.workspace_packages().into_iter().filter(|package| package.publish != Some(Vec::new()));
    let (libraries, programs): (Vec<_>, Vec<_>) =
        published.partition(|package| package.targets.iter().any(|target| target.is_lib()));
    let package = |packages: &[&Package], arguments: &[&str]| {
        let names = packages.iter().flat_map(|package| ["--package", package.name.as_str()]);
        let mut command = cargo(["package", "--allow-dirty", "--target-dir", target.as_str()]);
        run_command(command.args(names).args(arguments).env("CARGO_PROFILE_DEV_DEBUG", "0"))
    };
    package(&libraries, &[])?;
    package(&[libraries, programs].concat(), &["--no-verify"])
}

/// What has run, what has not, and why.
struct Report {
    require: bool,
    steps: Vec<(String, Duration)>,
    skipped: Vec<(String, String)>,
}

impl Report {
    fn step(&mut self, name: &str, task: impl FnOnce() -> Result) -> Result {
        println!("\n=== {name}");
        let start = Instant::now();
        let result = task();
        let time = start.elapsed();
        println!("=== {name}: {} after {:.1} s", if result.is_ok() { "passed" } else { "FAILED" }, time.as_secs_f64());
        result.map_err(|error| format!("step `{name}`: {error}"))?;
        self.steps.push((name.to_owned(), time));
        Ok(())
    }

    /// A step that needs the cargo subcommand of the same name.
    fn component(&mut self, name: &str, task: impl FnOnce() -> Result) -> Result {
        if setup::has_subcommand(name) {
            self.step(name, task)
        } else {
            self.skip(name, &format!("`cargo {name}` is not installed; run `cargo xtask test --setup`"))
        }
    }

    fn skip(&mut self, name: &str, reason: &str) -> Result {
        if self.require {
            return Err(format!("step `{name}` is required but cannot run: {reason}").into());
        }
        self.leave_out(name, reason);
        Ok(())
    }

    /// As [`skip`](Self::skip), but never an error.
    fn leave_out(&mut self, name: &str, reason: &str) {
        println!("\n=== {name}: skipped, {reason}");
        self.skipped.push((name.to_owned(), reason.to_owned()));
    }

    fn print(&self) {
        println!("\n=== summary");
        for (name, time) in &self.steps {
            println!("passed   {:>6.1} s  {name}", time.as_secs_f64());
        }
        for (name, reason) in &self.skipped {
            println!("skipped           {name}: {reason}");
        }
        let total: Duration = self.steps.iter().map(|(_, time)| time).sum();
        println!("total    {:>6.1} s", total.as_secs_f64());
    }
}
