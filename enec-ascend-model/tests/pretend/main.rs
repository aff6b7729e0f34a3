//! The real path from Rust to a library of AscendCL's names: what devices are found, what becomes of failures, and that nothing leaks.

#![allow(clippy::unwrap_used, reason = "a test that cannot go on should end there")]

mod controls;
mod failures;
mod probes;
