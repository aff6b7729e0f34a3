//! The commands: one file each, with its options and its handler.

mod completions;
mod compress;
mod decompress;
mod devices;
mod extract;
mod inspect;
mod man;
mod summary;
mod verify;

use clap::Subcommand;

use crate::failure::Failure;

/// A command with its options.
#[derive(Debug, Subcommand)]
pub(crate) enum Command {
    Compress(compress::Compress),
    Decompress(decompress::Decompress),
    Inspect(inspect::Inspect),
    Verify(verify::Verify),
    Extract(extract::Extract),
    Devices(devices::Devices),
    Completions(completions::Completions),
    Man(man::Man),
}

impl Command {
    /// Does what the command is for.
    ///
    /// # Errors
    ///
    /// Whatever made it fail.
    pub(crate) fn run(&self) -> Result<(), Failure> {
        match self {
            Command::Compress(command) => command.run(),
            Command::Decompress(command) => command.run(),
            Command::Inspect(command) => command.run(),
            Command::Verify(command) => command.run(),
            Command::Extract(command) => command.run(),
            Command::Devices(command) => command.run(),
            Command::Completions(command) => command.run(),
            Command::Man(command) => command.run(),
        }
    }
}
