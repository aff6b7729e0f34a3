//! `cargo xtask golden`: writes the golden streams.

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command};

#[derive(Args)]
pub(crate) struct Options {
    /// Overwrite streams that exist: only while `docs/format.md` calls the format a draft
    #[arg(long)]
    draft: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    let mut command = cargo("run --package enec-conformance --example golden -- --write".split(' '));
    if options.draft {
        command.arg("--draft");
    }
    run_command(&mut command)
}
