//! The suite over the kernels as they are, in every order of warps.

fn main() -> std::process::ExitCode {
    enec_conformance::main(&enec_gpu_hosttest::DRIVER)
}
