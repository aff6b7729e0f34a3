//! The real path from Rust to a library of AscendCL's names: what devices are found, what becomes of failures, and that nothing leaks.

mod controls;
mod failures;
mod probes;
