//! `cargo xtask bench`: builds `enec-bench` optimised and hands all arguments to it.

use std::ffi::OsString;

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command};

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Arguments of `enec-bench`; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(options: &Options) -> Result {
    run_command(cargo(["run", "--release", "--package", "enec-bench", "--"]).args(&options.arguments))
}
