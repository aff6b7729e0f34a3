//! One suite that every ENEC backend runs, as a test target of two lines:
//!
//! ```no_run
//! # mod enec_cpu { pub use enec_conformance::pretend::DRIVER; }
//! fn main() -> std::process::ExitCode {
//!     enec_conformance::main(&enec_cpu::DRIVER)
//! }
//! ```
//!
//! with `harness = false`. Trials are made at run time, one per device, variant and case: `cpu:0/avx2/parity/bf16/weights`. A driver
//! without a device shows as one ignored trial whose name gives the reason; if the environment variable [`REQUIRE`] names the
//! backend, it is a failure. The suite itself is tested on [`pretend`], a backend with faults to be caught.

#![forbid(unsafe_code)]

pub mod cases;
mod codecs;
pub mod fuzzing;
pub mod golden;
pub mod guarded;
pub mod hostile;
pub mod inputs;
pub mod jobs;
pub mod pretend;
pub mod random;
mod subject;
mod suite;

pub use subject::Subject;
pub use suite::{Case, Gap, REQUIRE, main, main_with};

/// What a check gives: nothing, or a description of the fault.
pub type Result<T = (), E = Box<dyn std::error::Error + Send + Sync>> = std::result::Result<T, E>;

/// Returns an error with a formatted message unless the condition holds.
#[macro_export]
macro_rules! ensure {
    ($condition:expr, $($message:tt)+) => {
        if !$condition {
            return Err(format!($($message)+).into());
        }
    };
}
