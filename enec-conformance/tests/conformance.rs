//! The suite on the pretend backend, as any backend runs it.

fn main() -> std::process::ExitCode {
    enec_conformance::main(&enec_conformance::pretend::DRIVER)
}
