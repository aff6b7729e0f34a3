//! Where output goes: data to standard output, everything else to standard error.

use std::fmt::{self, Display, Write as _};
use std::io::{self, Write};

use indicatif::ProgressDrawTarget;
use serde::Serialize;

use crate::failure::Failure;

/// The output policy of one run.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Printer {
    /// Data, summaries and progress.
    Default,
    /// Data and errors only.
    Quiet,
    /// One JSON object as data; otherwise as [`Default`](Self::Default).
    Json,
    /// One JSON object as data, and errors only.
    QuietJson,
}

impl Printer {
    /// The policy for these two options.
    pub(crate) fn new(quiet: bool, json: bool) -> Self {
        match (quiet, json) {
            (false, false) => Printer::Default,
            (true, false) => Printer::Quiet,
            (false, true) => Printer::Json,
            (true, true) => Printer::QuietJson,
        }
    }

    fn is_quiet(self) -> bool {
        matches!(self, Printer::Quiet | Printer::QuietJson)
    }

    fn is_json(self) -> bool {
        matches!(self, Printer::Json | Printer::QuietJson)
    }

    /// Writes data as it is.
    ///
    /// # Errors
    ///
    /// [`Failure::Output`].
    pub(crate) fn raw(bytes: &[u8]) -> Result<(), Failure> {
        let mut stdout = io::stdout().lock();
        stdout.write_all(bytes).and_then(|()| stdout.flush()).map_err(Failure::Output)
    }

    /// Writes a command's data: JSON if that is asked for, `text` otherwise.
    ///
    /// # Errors
    ///
    /// [`Failure::Output`].
    pub(crate) fn data(self, json: &impl Serialize, text: impl Display) -> Result<(), Failure> {
        if self.is_json() {
            let json = serde_json::to_string_pretty(json)
                .map_err(|error| Failure::System { action: "write JSON", source: error.into() })?;
            return Self::raw(format!("{json}\n").as_bytes());
        }
        Self::raw(text.to_string().as_bytes())
    }

    /// Writes a remark for people.
    pub(crate) fn note(self, text: impl Display) {
        if !self.is_quiet() {
            complain(format_args!("{text}"));
        }
    }

    /// Where a progress bar is drawn: nowhere when quiet; the bar itself knows whether standard error is a terminal.
    pub(crate) fn progress_target(self) -> ProgressDrawTarget {
        if self.is_quiet() { ProgressDrawTarget::hidden() } else { ProgressDrawTarget::stderr() }
    }

    /// Writes an error and what to do about it, whatever the policy is.
    pub(crate) fn error(error: impl Display, hint: Option<&str>) {
        complain(format_args!("error: {}", Printable(&error.to_string())));
        if let Some(hint) = hint {
            complain(format_args!("hint: {}", Printable(hint)));
        }
    }
}

/// A line on standard error. If that is closed there is nobody to tell.
fn complain(line: fmt::Arguments<'_>) {
    let _ = writeln!(io::stderr().lock(), "{line}");
}

/// Text from outside, such as a tensor's name: control characters, which could take a terminal over, are written as escapes.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Printable<'a>(pub(crate) &'a str);

impl Display for Printable<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for character in self.0.chars() {
            if is_printable(character) {
                f.write_char(character)?;
            } else {
                write!(f, "{}", character.escape_default())?;
            }
        }
        Ok(())
    }
}

fn is_printable(character: char) -> bool {
    // Characters that change the direction of the text around them are no better than control characters.
    !character.is_control()
        && !matches!(character, '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}')
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn control_characters_are_escaped() {
        assert_eq!(Printable("a\u{1b}[31mb\nc\u{202e}d é 重").to_string(), "a\\u{1b}[31mb\\nc\\u{202e}d é 重");
    }
}
