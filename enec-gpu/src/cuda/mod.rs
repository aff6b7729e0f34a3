//! The CUDA backend: hand-written kernels, loaded as PTX through the driver.
//!
//! The driver is looked for at run time: without one, or without a device, [`DRIVER`] says so and why. No toolkit is needed, neither to build
//! nor to run.

pub mod launcher;

mod abi;
mod backend;
mod decode;
mod device;
mod driver;
mod encode;
mod kernel;
mod memory;
mod piece;
mod ring;
mod staging;
mod tables;
mod transfer;

pub use backend::{CudaBackend, Names, Settings};
pub use driver::DRIVER;
pub use kernel::Kernel;
