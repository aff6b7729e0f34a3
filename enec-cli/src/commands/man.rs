//! `enec man`: the manual pages.

use clap::{Args, CommandFactory};

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::printer::Printer;

/// Write the manual page of `enec`, or of one of its commands, to standard output.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Man {
    /// One of the commands.
    command: Option<String>,
}

impl Man {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut program = Arguments::command();
        // Gives the commands their full names.
        program.build();
        let page = match &self.command {
            None => program,
            Some(name) => {
                let command = program.find_subcommand(name).cloned();
                command.ok_or_else(|| Failure::Usage {
                    message: format!("there is no command `{name}`"),
                    hint: Some("`enec --help` lists the commands".to_owned()),
                })?
            }
        };
        let mut text = Vec::new();
        clap_mangen::Man::new(page)
            .render(&mut text)
            .map_err(|source| Failure::System { action: "write the manual page", source })?;
        Printer::raw(&text)
    }
}
