//! Errors: a kind that a caller can act on, and a message that says what to do.

use std::io;
use std::path::PathBuf;

use enec_format::FormatError;

use crate::checkpoint::container::ContainerError;

/// Result with an [`Error`].
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// What went wrong.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A stream is damaged, newer than this program, or not a stream; or a buffer has the wrong size for it.
    #[error(transparent)]
    Format(#[from] FormatError),
    /// A compressed file is not as its header describes it, or cannot be described by one.
    #[error(transparent)]
    Container(#[from] ContainerError),
    /// A tensor of a file is at fault.
    #[error("{}: tensor `{tensor}`: {source}", path.display())]
    Tensor {
        /// The file.
        path: PathBuf,
        /// The tensor.
        tensor: String,
        /// The fault.
        source: Box<Error>,
    },
    /// A file is at fault.
    #[error("{}: {message}", path.display())]
    File {
        /// The file.
        path: PathBuf,
        /// What is wrong with it.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
    /// The operating system refused something.
    #[error("cannot {action} {}: {source}", path.display())]
    Io {
        /// What was tried, as a verb.
        action: &'static str,
        /// The file.
        path: PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// No backend or device of this name can be used.
    #[error("backend `{backend}` is not available: {reason}")]
    Unavailable {
        /// The backend.
        backend: String,
        /// Why.
        reason: String,
    },
    /// A device failed. The data is not at fault.
    #[error("{device}: {message}")]
    Device {
        /// The device's name.
        device: String,
        /// What it said.
        message: String,
    },
    /// A call that makes no sense, whatever the data.
    #[error("{0}")]
    Argument(String),
    /// The caller asked to stop.
    #[error("cancelled")]
    Cancelled,
}

impl Error {
    /// Whether the input is at fault, rather than the machine or the call.
    #[must_use]
    pub fn is_input(&self) -> bool {
        match self {
            Error::Format(error) => !error.is_argument(),
            Error::Container(_) | Error::Tensor { .. } | Error::File { .. } => true,
            Error::Io { .. } | Error::Unavailable { .. } | Error::Device { .. } => false,
            Error::Argument(_) | Error::Cancelled => false,
        }
    }

    /// What to do about it, if there is something.
    #[must_use]
    pub fn hint(&self) -> Option<&str> {
        match self {
            Error::File { hint, .. } => hint.as_deref(),
            Error::Tensor { source, .. } => source.hint(),
            Error::Format(error) if error.is_newer() => Some("update enec to read this stream"),
            _ => None,
        }
    }
}

/// Every result of the crate carries it: keep it within a cache line and a half.
const _: () = assert!(size_of::<Error>() <= 96);
