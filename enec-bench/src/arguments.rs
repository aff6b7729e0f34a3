//! The command line.

use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::str::FromStr;

use clap::Parser;
use enec::{CodecChoice, Dtype};

/// Benchmarks ENEC: throughput of kernels and codec beside plain copies of the same buffers, in one run; or, with `--ratio`,
/// what they make of real weights; with `--files`, whole files.
#[derive(Debug, Parser)]
#[command(name = "cargo xtask bench")]
pub(crate) struct Arguments {
    /// Backend: NAME, NAME:INDEX, or NAME:DEVICE with a part of the device's name; `ascend-model` prints what a cost formula gives for a 910B2, and
    /// measures nothing
    #[arg(long, default_value = "cpu", value_name = "NAME")]
    pub(crate) backend: String,
    /// A safetensors file, a folder of them, or `synthetic:SIZE` (Gaussian weights; K, M and G are powers of ten)
    #[arg(long, num_args = 1.., default_value = "synthetic:256M", value_name = "FILE|FOLDER|synthetic:SIZE")]
    pub(crate) data: Vec<Data>,
    /// Element types to measure; of a file, those that it has
    #[arg(long, value_delimiter = ',', default_value = "BF16,F16,F32", value_parser = parse_dtype)]
    pub(crate) dtype: Vec<Dtype>,
    /// Codecs to measure, one run for each
    #[arg(long, value_delimiter = ',', default_value = "enec,cascade")]
    pub(crate) codec: Vec<CodecChoice>,
    /// Host threads to measure with, one run for each number; by default 1 and one per core
    #[arg(long, value_delimiter = ',', value_name = "N,...")]
    pub(crate) threads: Vec<NonZeroUsize>,
    /// Kernels to use instead of the best; `enec devices` lists them
    #[arg(long)]
    pub(crate) variant: Option<String>,
    /// Repetitions of each measurement; the median counts
    #[arg(long, default_value_t = 9)]
    pub(crate) repetitions: usize,
    /// Write the results to this file as well: CSV if its name ends in `.csv`, otherwise JSON
    #[arg(long, value_name = "FILE")]
    pub(crate) out: Option<PathBuf>,
    /// Compare sizes instead: ENEC's with those of the paper's parameter rule and with the entropy of the exponents
    #[arg(long)]
    pub(crate) ratio: bool,
    /// Measure one tensor of each size instead, from 1 MB up to that of the data, and 10,000 of 64 x 64
    #[arg(long, conflicts_with = "ratio")]
    pub(crate) sizes: bool,
    /// Measure whole files instead, in this folder, beside plain reading and writing there: a generated checkpoint of the data's size
    #[arg(long, value_name = "FOLDER", conflicts_with_all = ["ratio", "sizes"])]
    pub(crate) files: Option<PathBuf>,
}

/// What to measure on.
#[derive(Debug, Clone)]
pub(crate) enum Data {
    /// A file, or a folder of files.
    Path(PathBuf),
    /// So many bytes of generated weights.
    Synthetic(usize),
}

impl FromStr for Data {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let Some(size) = text.strip_prefix("synthetic:") else { return Ok(Data::Path(text.into())) };
        let upper = size.to_ascii_uppercase();
        let digits = upper.trim_end_matches('B').trim_end_matches(['K', 'M', 'G']);
        let unit = match upper[digits.len()..].trim_end_matches('B') {
            "" => 1,
            "K" => 1_000,
            "M" => 1_000_000,
            _ => 1_000_000_000,
        };
        let size = digits.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
        size.map(Data::Synthetic).ok_or_else(|| format!("`{text}`: expected a size such as `synthetic:256M`"))
    }
}

fn parse_dtype(text: &str) -> Result<Dtype, String> {
    Dtype::from_name(&text.to_ascii_uppercase()).ok_or_else(|| format!("`{text}`: expected `BF16`, `F16` or `F32`"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        let bytes = |text: &str| match text.parse() {
            Ok(Data::Synthetic(bytes)) => Some(bytes),
            _ => None,
        };
        assert_eq!(bytes("synthetic:5"), Some(5));
        assert_eq!(bytes("synthetic:8k"), Some(8_000));
        assert_eq!(bytes("synthetic:256MB"), Some(256_000_000));
        assert_eq!(bytes("synthetic:2G"), Some(2_000_000_000));
        for text in ["synthetic:", "synthetic:M", "synthetic:1.5M", "synthetic:99999999999G", "model.safetensors"] {
            assert_eq!(bytes(text), None, "{text}");
        }
    }
}
