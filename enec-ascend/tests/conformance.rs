//! The conformance suite on this backend: on a machine with CANN and a device, otherwise one ignored trial that says what is missing.

fn main() -> std::process::ExitCode {
    enec_conformance::main(&enec_ascend::DRIVER)
}
