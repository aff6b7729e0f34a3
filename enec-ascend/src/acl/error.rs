//! What AscendCL returns instead of success.

use std::fmt;

use super::symbols::Code;

/// Initialised already, by us or by a framework in the same process: no failure.
pub(crate) const REPEATED_INITIALIZATION: Code = 100_002;
/// No context is current on this thread.
pub(crate) const NO_CONTEXT: Code = 107_002;
pub(crate) const NO_DEVICE: Code = 207_004;
pub(crate) const NO_PERMISSION: Code = 207_006;

/// Codes with a meaning that helps (CANN runtime reference, `aclError`).
const MEANINGS: [(Code, &str); 14] = [
    (100_000, "invalid parameter"),
    (100_001, "not initialised"),
    (107_000, "invalid parameter"),
    (107_001, "no such device"),
    (NO_CONTEXT, "no current context"),
    (107_003, "stream of another context"),
    (207_000, "not supported"),
    (207_001, "out of memory"),
    (NO_DEVICE, "no device"),
    (NO_PERMISSION, "no permission"),
    (207_018, "out of device memory"),
    (507_014, "kernel timed out"),
    (507_015, "fault in a kernel"),
    (507_035, "fault in a kernel on a vector core"),
];

/// A failed call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct AclError {
    /// The C function.
    pub(crate) function: &'static str,
    /// What it returned.
    pub(crate) code: Code,
    /// The vendor's own account of it, one line, empty if there is none.
    pub(crate) text: String,
}

impl fmt::Display for AclError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}` returned {}", self.function, self.code)?;
        if let Some((_, meaning)) = MEANINGS.iter().find(|(code, _)| *code == self.code) {
            write!(f, " ({meaning})")?;
        }
        if self.text.is_empty() { Ok(()) } else { write!(f, ": {}", self.text) }
    }
}

impl std::error::Error for AclError {}

/// Result of a call.
pub(crate) type Result<T = ()> = std::result::Result<T, AclError>;
