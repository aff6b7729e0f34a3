//! The suite that every backend runs, on every wgpu adapter of this machine, and what only this backend has to show.

mod device;

use std::process::ExitCode;

fn main() -> ExitCode {
    let suite = enec_conformance::main(&enec_gpu::wgpu::DRIVER);
    let device = device::main();
    if suite == ExitCode::SUCCESS { device } else { suite }
}
