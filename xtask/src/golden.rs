//! `cargo xtask golden`: writes golden streams that are missing, or checks all of them.

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command};

#[derive(Args)]
pub(crate) struct Options {
    /// Write nothing; compare the files with their list, with each other, and with the reference codec
    #[arg(long)]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    let argument = if options.check { "--check" } else { "--write" };
    run_command(cargo("run --package enec-conformance --example golden --".split(' ')).arg(argument))
}
