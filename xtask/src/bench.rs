//! `cargo xtask bench`: builds `enec-bench` optimised and hands all arguments to it, or with `--peers` to the comparison with peers.

use std::ffi::OsString;

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command};
use crate::peers;

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Arguments of `enec-bench`, or with `--peers` of the comparison with other compressors; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(options: &Options) -> Result {
    if options.arguments.iter().any(|argument| argument == "--peers") {
        let others: Vec<_> = options.arguments.iter().filter(|argument| *argument != "--peers").collect();
        return peers::run(&others);
    }
    run_command(cargo(["run", "--release", "--package", "enec-bench", "--"]).args(&options.arguments))
}
