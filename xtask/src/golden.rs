//! `cargo xtask golden`: writes the golden streams, or checks them.

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command};

#[derive(Args)]
pub(crate) struct Options {
    /// Overwrite streams that exist: only while `docs/format.md` calls the format a draft
    #[arg(long)]
    draft: bool,
    /// Write nothing; compare the files with their list, with each other, and with the reference codec
    #[arg(long, conflicts_with = "draft")]
    check: bool,
}

pub(crate) fn run(options: &Options) -> Result {
    let arguments: &[&str] = match options {
        Options { check: true, .. } => &["--check"],
        Options { draft: true, .. } => &["--write", "--draft"],
        _ => &["--write"],
    };
    run_command(cargo("run --package enec-conformance --example golden --".split(' ')).args(arguments))
}
