//! `enec extract`: one tensor's bytes.

use std::path::PathBuf;

use clap::Args;
use enec::checkpoint::{self, Checkpoint, Options};
use serde::Serialize;

use crate::arguments::{DeviceOptions, OutputOptions};
use crate::failure::Failure;
use crate::number::Size;
use crate::printer::Printable;
use crate::progress::Bar;

/// Write the bytes of one tensor to a file
///
/// The bytes are the tensor's elements in row-major order, little-endian, without any header. INPUT is compressed or not; of a
/// compressed one, the tensor's hash is checked, and damage to others does not matter.
#[derive(Debug, Args)]
pub(crate) struct Extract {
    /// Safetensors file, or folder that holds some, compressed or not
    input: PathBuf,
    /// The tensor's name; `enec inspect` lists them
    #[arg(long, value_name = "NAME")]
    tensor: String,
    /// File to write
    #[arg(long, short, value_name = "FILE")]
    output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    print: OutputOptions,
}

#[derive(Serialize)]
struct Extracted<'a> {
    input: String,
    output: String,
    tensor: &'a str,
    dtype: &'a str,
    shape: &'a [u64],
    bytes: u64,
}

impl Extract {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let printer = self.print.printer();
        let codec = self.device.codec()?;
        let options = Options { force: self.force, ..Options::default() };
        let checkpoint = Checkpoint::open(&self.input)?;
        checkpoint::extract(&codec, &checkpoint, &self.tensor, &self.output, &options, &mut Bar::new(printer))?;

        let tensor = checkpoint.tensor(&self.tensor)?;
        let extracted = Extracted {
            input: self.input.display().to_string(),
            output: self.output.display().to_string(),
            tensor: tensor.name(),
            dtype: tensor.dtype(),
            shape: tensor.shape(),
            bytes: tensor.byte_len(),
        };
        printer.data(&extracted, "")?;
        let Extracted { output, dtype, shape, bytes, .. } = extracted;
        printer.note(format_args!("{}: {} {shape:?}, {}", Printable(&output), Printable(dtype), Size(bytes)));
        Ok(())
    }
}
