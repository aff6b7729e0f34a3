//! The CUDA kernels of `enec-gpu`, compiled by g++ and run on the host: one fiber per thread, one warp at a time.
//!
//! What it finds: wrong results, a barrier or a lane's turn that is missing, accesses out of bounds or misaligned. What it does not: races within a
//! warp without a meeting in between, the order of memory between CTAs, speed.

#![deny(unsafe_code)]

mod driver;
mod fault;
#[allow(unsafe_code, reason = "device memory is host memory here")]
mod launcher;
#[allow(unsafe_code, reason = "it calls what g++ has compiled")]
mod shim;

pub use driver::{DRIVER, backend, open};
pub use fault::{FAULTS, Fault};
pub use shim::{Kernels, Order, run};

/// Why kernels cannot be run here, if they cannot.
pub const ABSENT: Option<&str> = option_env!("ENEC_HOSTTEST_ABSENT");

/// Whether the kernels are compiled with sanitizers. Only then are there the faults that need them, and no others.
pub const SANITIZED: bool = cfg!(sanitized);
