//! `enec inspect`: what a checkpoint is made of, tensor by tensor.

use std::fmt::{self, Display};
use std::path::PathBuf;

use clap::Args;
use enec::Profile;
use enec::checkpoint::{self, Inspection, Options, TensorInspection};

use crate::arguments::{DeviceOptions, OutputOptions};
use crate::commands::summary::Gain;
use crate::failure::Failure;
use crate::number::Size;
use crate::printer::Printable;
use crate::progress::Bar;
use crate::table::{Align, Table};

/// Show what a file or folder is made of, tensor by tensor
///
/// Of an original it is told what compressing would make of it. The columns: common base and common width of the exponents; lanes that
/// are wide because they do not fit into that; bits stored per exponent, and the entropy of the exponents, which an ideal coder of single
/// exponents would need; size before over size after. A tensor without parameters does not gain and is carried as it is.
#[derive(Debug, Args)]
pub(crate) struct Inspect {
    /// Safetensors file, or folder that holds some, compressed or not
    input: PathBuf,
    /// Of an original: use the parameters in this file instead of searching for each tensor's
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    print: OutputOptions,
}

impl Inspect {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let printer = self.print.printer();
        let mut codec = self.device.codec()?;
        if let Some(path) = &self.profile {
            codec = codec.with_profile(Profile::read(path)?);
        }
        let inspection = checkpoint::inspect(&codec, &self.input, &Options::default(), &mut Bar::new(printer))?;
        printer.data(&inspection, Shown(&inspection))
    }
}

struct Shown<'a>(&'a Inspection);

impl Display for Shown<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Inspection { tensors, streams, original_bytes, compressed_bytes, ratio, is_compressed, .. } = self.0;
        let files: Vec<&[TensorInspection]> = tensors.chunk_by(|left, right| left.file == right.file).collect();
        for tensors in &files {
            if files.len() > 1 {
                writeln!(f, "{}", Printable(&tensors[0].file.display().to_string()))?;
            }
            writeln!(f, "{}", table(tensors))?;
        }
        writeln!(f, "{}", Gain { streams: *streams, tensors: tensors.len() })?;
        let becomes = if *is_compressed { "compressed to" } else { "would be compressed to" };
        writeln!(f, "{} {becomes} {}, ratio {ratio:.3}", Size(*original_bytes), Size(*compressed_bytes))
    }
}

fn table(tensors: &[TensorInspection]) -> Table<9> {
    let mut table = Table::new([
        ("tensor", Align::Left),
        ("dtype", Align::Left),
        ("shape", Align::Left),
        ("base", Align::Right),
        ("width", Align::Right),
        ("wide", Align::Right),
        ("bits", Align::Right),
        ("entropy", Align::Right),
        ("ratio", Align::Right),
    ]);
    for TensorInspection { name, dtype, shape, ratio, stream, .. } in tensors {
        let [base, width, wide, bits, entropy] = match stream {
            None => [const { String::new() }; 5],
            Some(stream) => [
                stream.common_base.to_string(),
                stream.common_width.to_string(),
                format!("{:.2}%", 100.0 * stream.wide_lane_share),
                format!("{:.3}", stream.exponent_bits),
                format!("{:.3}", stream.exponent_entropy),
            ],
        };
        let (name, dtype) = (Printable(name).to_string(), Printable(dtype).to_string());
        table.row([name, dtype, format!("{shape:?}"), base, width, wide, bits, entropy, format!("{ratio:.3}")]);
    }
    table
}
