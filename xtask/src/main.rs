//! Project tasks, run as `cargo xtask TASK`. One file per task.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to the person who started it")]

mod ascend_matrix;
mod ascend_probe;
mod bench;
mod codegen;
mod command;
mod cuda_bundle;
mod demo;
mod fuzz;
mod golden;
mod packages;
mod peers;
mod python;
mod setup;
mod test;
mod tidy;
mod vulkan;

use std::process::ExitCode;

use clap::Parser;

/// What a task returns; the message is printed after `error: `.
type Result<T = ()> = std::result::Result<T, Box<dyn std::error::Error>>;

#[derive(Parser)]
#[command(name = "cargo xtask", bin_name = "cargo xtask", about = "Project tasks")]
enum Task {
    /// Check format, rules, lints, documentation, tests on every CPU path, and packages
    Test(test::Options),
    /// Check what the compiler cannot: import edges, licences, manifests, sources, quoted constants
    Tidy,
    /// Compress, verify, inspect and restore the checkpoint under `assets/`
    Demo,
    /// Write the golden streams under `testdata/`
    Golden(golden::Options),
    /// Generate the format's constants for kernels, and compile the CUDA kernels to PTX
    Codegen(codegen::Options),
    /// Build the folder that checks and measures the CUDA backend on a machine with a device
    CudaBundle(cuda_bundle::Options),
    /// Run the fuzz targets for a while each
    Fuzz(fuzz::Options),
    /// Run the Ascend kernels on the host model under every scheduling, with each compiler and sanitizer
    AscendMatrix(ascend_matrix::Options),
    /// Find out on an Ascend device what only a device can settle
    AscendProbe(ascend_probe::Options),
    /// Run the benchmarks; all arguments go to `enec-bench`
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Test(options) => test::run(&options),
        Task::Tidy => tidy::run(),
        Task::Demo => demo::run(),
        Task::Golden(options) => golden::run(&options),
        Task::Codegen(options) => codegen::run(&options),
        Task::CudaBundle(options) => cuda_bundle::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
        Task::AscendMatrix(options) => ascend_matrix::run(&options),
        Task::AscendProbe(options) => ascend_probe::run(&options),
        Task::Bench(options) => bench::run(&options),
    };
    match result {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::FAILURE
        }
    }
}
