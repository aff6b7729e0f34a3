//! The suite that every backend runs.

use std::process::ExitCode;

fn main() -> ExitCode {
    enec_conformance::main(&enec_cpu::DRIVER)
}
