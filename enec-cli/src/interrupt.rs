//! Ctrl-C: the running command ends at its next step and removes what it has not finished.
//!
//! Other signals are left alone: one that ends the process has the effect of a kill, and one that the caller ignores, as `nohup` does, stays
//! ignored.

use std::io;
use std::process::exit;
use std::sync::atomic::{AtomicBool, Ordering};

use crate::failure::Failure;

static REQUESTED: AtomicBool = AtomicBool::new(false);

/// From now on, [`is_requested`] tells whether there was a Ctrl-C. The second one ends the program at once: what it leaves behind then
/// is removed by the next run that writes beside it.
pub(crate) fn install() -> Result<(), Failure> {
    ctrlc::set_handler(|| {
        if REQUESTED.swap(true, Ordering::Relaxed) {
            exit(Failure::OTHER.into());
        }
    })
    .map_err(|error| Failure::System { action: "watch for Ctrl-C", source: io::Error::other(error) })
}

/// Whether there was a Ctrl-C.
pub(crate) fn is_requested() -> bool {
    REQUESTED.load(Ordering::Relaxed)
}
