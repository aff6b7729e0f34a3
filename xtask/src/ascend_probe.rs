//! `cargo xtask ascend-probe`: compiles small kernels by the CANN toolkit, runs them on an Ascend device, and prints what only a device can
//! settle (docs/ascend.md). Without toolkit or device it says so and fails.

use std::ffi::OsString;

use clap::Args;

use crate::Result;
use crate::command::{cargo, run as run_command};

#[derive(Args)]
#[command(disable_help_flag = true)]
pub(crate) struct Options {
    /// Arguments of the probe program; `--help` lists them
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    arguments: Vec<OsString>,
}

pub(crate) fn run(options: &Options) -> Result {
    run_command(
        cargo(["run", "--release", "--package", "enec-ascend", "--example", "probe", "--"]).args(&options.arguments),
    )
}
