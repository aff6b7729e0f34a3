//! `enec decompress`: the original, byte for byte.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use enec::checkpoint::{self, Options};

use crate::arguments::{DeviceOptions, OutputOptions};
use crate::commands::summary::{Split, Summary, by_fallback};
use crate::failure::Failure;
use crate::progress::Bar;

/// Restore the original of a compressed file or folder, byte for byte
///
/// The hash of every tensor is checked before the output gets its name. What `enec decompress` gives back is what transformers and other
/// frameworks load; they cannot load compressed checkpoints directly yet.
#[derive(Debug, Args)]
pub(crate) struct Decompress {
    /// Compressed file, or folder that holds some
    input: PathBuf,
    /// File or folder to write
    #[arg(long, short, value_name = "OUTPUT")]
    output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    /// Print where the time went
    #[arg(long)]
    timings: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    print: OutputOptions,
}

impl Decompress {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let printer = self.print.printer();
        let codec = self.device.codec()?;
        let options = Options { force: self.force, time_hashing: self.timings, ..Options::default() };
        let start = Instant::now();
        let report = checkpoint::decompress(&codec, &self.input, &self.output, &options, &mut Bar::new(printer))?;

        let sizes = (report.output_bytes, report.input_bytes);
        let summary = Summary::new(&self.input, &self.output, &report, sizes, start.elapsed());
        printer.data(&summary, "")?;
        printer.note(summary.headline());
        if let Some(note) = by_fallback(&codec, report.fallback_streams, "decoded") {
            printer.note(note);
        }
        printer.note(summary.speed("every hash agrees"));
        if self.timings {
            printer.note(Split(&report));
        }
        Ok(())
    }
}
