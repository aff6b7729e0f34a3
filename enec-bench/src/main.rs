//! Benchmarks on real weights: `cargo xtask bench`.
//!
//! Throughput is measured beside copies of the same buffers in the same run, so that every figure is also a ratio; `--ratio` compares
//! sizes: ENEC's, those of the paper's own parameter rule, and what the entropy of the exponents allows; `--sizes` shows that the cost is
//! linear, and `--files` measures whole files beside plain reading and writing.

#![deny(unsafe_code)]
// A program: it prints, and its figures are for people.
#![allow(clippy::print_stdout, clippy::print_stderr, clippy::cast_precision_loss)]

mod arguments;
mod buffer;
mod case;
mod copy;
mod data;
mod exponents;
mod files;
mod paper;
mod ratio;
mod report;
mod resident;
mod sizes;
mod synthetic;
mod throughput;

use std::process::ExitCode;

use clap::Parser;

use crate::arguments::Arguments;

type Result<T, E = Box<dyn std::error::Error>> = std::result::Result<T, E>;

fn main() -> ExitCode {
    match run(&Arguments::parse()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error}");
            ExitCode::from(2)
        }
    }
}

fn run(arguments: &Arguments) -> Result<()> {
    match &arguments.files {
        Some(folder) => files::run(arguments, folder),
        None if arguments.ratio => ratio::run(arguments),
        None if arguments.sizes => sizes::run(arguments),
        None => throughput::run(arguments),
    }
}
