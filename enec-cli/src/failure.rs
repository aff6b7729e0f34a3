//! How the program ends without success: what is said, and the exit code.

use std::borrow::Cow;
use std::error::Error as StdError;
use std::process::ExitCode;
use std::{fmt, io};

use enec::checkpoint::Damage;

use crate::number::count;

/// What to do about a damaged tensor.
const DAMAGED: &str = "`enec verify` names every damaged tensor, `enec extract` reads those that are intact";

/// Why a command failed.
#[derive(Debug)]
pub(crate) enum Failure {
    /// The library refused or failed.
    Library(enec::Error),
    /// Something in the input is damaged; each fault has been reported.
    Damaged(Vec<Damage>),
    /// Standard output cannot be written.
    Output(io::Error),
    /// The system refused something that is not about a file.
    System {
        /// What was tried, as a verb.
        action: &'static str,
        /// The system's error.
        source: io::Error,
    },
    /// Arguments that do not go together, in a way that the parser cannot know.
    Usage {
        /// What is wrong.
        message: String,
        /// What to do about it.
        hint: Option<String>,
    },
}

impl Failure {
    /// Exit code when the input is at fault.
    pub(crate) const INPUT: u8 = 1;
    /// Exit code for anything else, wrong usage included (the parser has the same).
    pub(crate) const OTHER: u8 = 2;

    /// What the process ends with. A reader who has seen enough of the output is no failure.
    pub(crate) fn exit_code(&self) -> ExitCode {
        match self {
            Failure::Library(error) if error.is_input() => Self::INPUT.into(),
            Failure::Damaged(_) => Self::INPUT.into(),
            _ if self.is_silent() => ExitCode::SUCCESS,
            _ => Self::OTHER.into(),
        }
    }

    /// Whether nothing is to be said about it.
    pub(crate) fn is_silent(&self) -> bool {
        matches!(self, Failure::Output(error) if error.kind() == io::ErrorKind::BrokenPipe)
    }

    /// What to do about it, if there is something.
    pub(crate) fn hint(&self) -> Option<Cow<'_, str>> {
        match self {
            Failure::Library(enec::Error::Cancelled) => {
                Some("nothing is left behind, neither output nor temporary".into())
            }
            Failure::Library(error) => {
                let damaged = matches!(error, enec::Error::Tensor { .. }).then_some(DAMAGED);
                error.hint().or(damaged).map(Cow::from)
            }
            Failure::Usage { hint, .. } => hint.as_deref().map(Cow::from),
            Failure::Damaged(damages) if damages.iter().all(|damage| damage.tensor.is_some()) => {
                Some("tensors that are not named are intact: `enec extract` reads each by itself".into())
            }
            Failure::Damaged(_) => None,
            Failure::Output(_) | Failure::System { .. } => None,
        }
    }
}

impl fmt::Display for Failure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Failure::Library(enec::Error::Cancelled) => write!(f, "interrupted"),
            Failure::Library(error) => write!(f, "{error}"),
            Failure::Damaged(damages) => write!(f, "{} found", count(damages.len(), "fault")),
            Failure::Output(error) => write!(f, "cannot write to standard output: {error}"),
            Failure::System { action, source } => write!(f, "cannot {action}: {source}"),
            Failure::Usage { message, .. } => write!(f, "{message}"),
        }
    }
}

impl StdError for Failure {}

impl From<enec::Error> for Failure {
    fn from(error: enec::Error) -> Self {
        Failure::Library(error)
    }
}
