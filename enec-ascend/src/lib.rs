//! The Ascend backend: kernels in AscendC for the 910B family (Atlas A2 and A3), and AscendCL opened at run time.
//!
//! The crate builds without CANN. [`DRIVER`] looks for AscendCL when it is asked for devices, and says exactly why there is none. Kernels are a
//! compiled object: embedded by the feature `cann-build` on a machine with the CANN toolkit, or named by `ENEC_ASCEND_KERNELS`. How to
//! build and run, and what has been tested how, is in `docs/ascend.md` of the repository. The kernels have been tested on a host model of the
//! vendor's interface, not on a device.
//!
//! | variable | effect |
//! |---|---|
//! | `ENEC_ASCEND_LIBRARY` | path of AscendCL, instead of looking for it |
//! | `ENEC_ASCEND_KERNELS` | path of a kernel object, instead of the embedded one |
//! | `ENEC_ASCEND_CORES` | vector cores to launch on, instead of all; the output does not depend on it |

#![deny(unsafe_code)]

mod abi;
#[expect(unsafe_code, reason = "calls of a C library")]
mod acl;
mod backend;
mod configuration;
#[expect(unsafe_code, reason = "launches: what a kernel does with its arguments, only the caller knows")]
mod decode;
#[expect(unsafe_code, reason = "as above")]
mod encode;
mod kernels;
mod place;
mod probe;
#[doc(hidden)]
#[expect(unsafe_code, reason = "as above")]
pub mod probing;
#[expect(unsafe_code, reason = "as above")]
mod queue;
mod table;
#[cfg(test)]
mod toolkit_tests;

pub use acl::library::LIBRARY_VARIABLE;
pub use acl::symbols::FUNCTIONS;
pub use backend::{AscendBackend, DRIVER};
pub use configuration::{CORES_VARIABLE, Configuration};
pub use kernels::{KERNELS_VARIABLE, KernelSource, SOURCES};
