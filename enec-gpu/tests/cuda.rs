//! The conformance suite on NVIDIA's devices.

fn main() -> std::process::ExitCode {
    enec_conformance::main(&enec_gpu::cuda::DRIVER)
}
