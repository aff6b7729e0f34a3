//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::Parser;

/// Benchmarks ENEC on safetensors files.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
pub(crate) struct Arguments {
    /// Compare sizes with the paper's parameter rule and with the entropy of the exponents
    #[arg(long)]
    pub(crate) ratio: bool,
    /// Safetensors files, or folders of them
    #[arg(long, required = true, num_args = 1.., value_name = "FILE|FOLDER")]
    pub(crate) data: Vec<PathBuf>,
    /// Backend: NAME or NAME:INDEX
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub(crate) backend: String,
    /// Host threads; by default one per core
    #[arg(long, value_name = "N")]
    pub(crate) threads: Option<NonZeroUsize>,
    /// Write the results as JSON to this file as well
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
}
