//! The conformance suite on this backend.

fn main() -> std::process::ExitCode {
    enec_conformance::main(&enec_ascend_model::DRIVER)
}
