//! `enec completions`: what a shell needs to complete the arguments.

use clap::{Args, CommandFactory};
use clap_complete::Shell;

use crate::arguments::Arguments;
use crate::failure::Failure;
use crate::printer::Printer;

/// Write completions for a shell to standard output.
#[derive(Debug, Args)]
#[command(hide = true)]
pub(crate) struct Completions {
    shell: Shell,
}

impl Completions {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let mut text = Vec::new();
        clap_complete::generate(self.shell, &mut Arguments::command(), "enec", &mut text);
        Printer::raw(&text)
    }
}
