//! Project tasks, run as `cargo xtask TASK`. One file per task.
#![forbid(unsafe_code)]
#![allow(clippy::print_stdout, clippy::print_stderr, reason = "a program that talks to the person who started it")]

mod bench;
mod command;
mod demo;
mod fuzz;
mod golden;
mod packages;
mod peers;
mod setup;
mod test;
mod tidy;

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
    /// Run the fuzz targets for a while each
    Fuzz(fuzz::Options),
    /// Run the benchmarks; all arguments go to `enec-bench`
    Bench(bench::Options),
}

fn main() -> ExitCode {
    let result = match Task::parse() {
        Task::Test(options) => test::run(&options),
        Task::Tidy => tidy::run(),
        Task::Demo => demo::run(),
        Task::Golden(options) => golden::run(&options),
        Task::Fuzz(options) => fuzz::run(&options),
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
