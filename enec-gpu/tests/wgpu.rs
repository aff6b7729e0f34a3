//! The suite that every backend runs, on every wgpu adapter of this machine.

use std::process::ExitCode;

fn main() -> ExitCode {
    enec_conformance::main(&enec_gpu::wgpu::DRIVER)
}
