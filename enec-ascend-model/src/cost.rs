//! What launches cost by the host model's formula.

use std::ffi::{CString, c_char, c_int};
use std::ops::Sub;

use enec_core::{Error, Result};
use libloading::{Library, Symbol};

/// What launches of one kernel have cost, all cores together. A model, never a measurement.
#[derive(Debug, Clone, Copy, Default, PartialEq)]
#[repr(C)]
pub struct Cost {
    /// Launches.
    pub launches: u64,
    /// Vector instructions.
    pub instructions: u64,
    /// Cycles of the vector units for them.
    pub vector_cycles: u64,
    /// Bytes copied from device memory to the cores.
    pub bytes_in: u64,
    /// Bytes copied from the cores to device memory.
    pub bytes_out: u64,
    /// Estimated time on a 910B2, in seconds.
    pub seconds: f64,
}

impl Cost {
    /// What all launches of a kernel in this process have cost so far.
    ///
    /// # Errors
    ///
    /// [`Error::Unavailable`] as [`library`](crate::library).
    pub fn so_far(kernel: &str) -> Result<Self> {
        type Read = unsafe extern "C" fn(*const c_char, *mut Cost);
        let library = open()?;
        // SAFETY: the signature is that of `acl/pretend.h`.
        let read: Symbol<'_, Read> = unsafe { library.get("pretend_cost") }.map_err(absent)?;
        let name = CString::new(kernel).unwrap_or_default();
        let mut cost = Self::default();
        // SAFETY: the name ends with a zero, and `Cost` has the layout of `PretendCost`.
        unsafe { read(name.as_ptr(), &raw mut cost) };
        Ok(cost)
    }
}

/// GB/s of uncompressed bytes that the same formula gives for the paper's own BF16 kernels: compression, decompression.
///
/// # Errors
///
/// [`Error::Unavailable`] as [`library`](crate::library).
pub fn reference_gbps() -> Result<(f64, f64)> {
    type Estimate = unsafe extern "C" fn(c_int) -> f64;
    let library = open()?;
    // SAFETY: the signature is that of `acl/pretend.h`.
    let estimate: Symbol<'_, Estimate> = unsafe { library.get("pretend_reference") }.map_err(absent)?;
    // SAFETY: no pointer is passed.
    Ok(unsafe { (estimate(0), estimate(1)) })
}

/// The library; it is loaded already if anything was launched.
fn open() -> Result<Library> {
    // SAFETY: its initialisers do nothing but construct.
    unsafe { Library::new(crate::library()?) }.map_err(absent)
}

fn absent(error: libloading::Error) -> Error {
    Error::Unavailable { backend: crate::NAME.into(), reason: error.to_string() }
}

impl Sub for Cost {
    type Output = Self;

    fn sub(self, earlier: Self) -> Self {
        Self {
            launches: self.launches - earlier.launches,
            instructions: self.instructions - earlier.instructions,
            vector_cycles: self.vector_cycles - earlier.vector_cycles,
            bytes_in: self.bytes_in - earlier.bytes_in,
            bytes_out: self.bytes_out - earlier.bytes_out,
            seconds: self.seconds - earlier.seconds,
        }
    }
}
