//! AscendCL, the vendor's runtime, behind a safe interface. All `unsafe` of the crate is below, but for the launches, whose arguments only
//! their callers know.

pub(crate) mod binary;
pub(crate) mod device;
pub(crate) mod error;
pub(crate) mod library;
pub(crate) mod memory;
pub(crate) mod stream;
pub(crate) mod symbols;
