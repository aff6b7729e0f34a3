//! `enec compress`: an original checkpoint becomes a smaller one.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use enec::checkpoint::{self, Checkpoint, Options};

use crate::arguments::{CodecOptions, DeviceOptions, OutputOptions};
use crate::commands::summary::{Gain, Split, Summary, by_fallback};
use crate::failure::Failure;
use crate::profile_file::ProfileFile;
use crate::progress::Bar;

/// Compress a safetensors file, or a folder that holds some
///
/// The output is a safetensors file in which each tensor that gains is one compressed stream; of a folder, all other files are copied.
/// Before it gets its name it is decoded again and compared with the input. It is the same whatever device and however many
/// threads made it.
///
/// It cannot be loaded by transformers and other frameworks directly yet: `enec decompress` gives back the files that they load, `enec extract`
/// a single tensor.
#[derive(Debug, Args)]
pub(crate) struct Compress {
    /// Safetensors file, or folder that holds some
    input: PathBuf,
    /// File or folder to write
    #[arg(long, short, value_name = "OUTPUT")]
    output: PathBuf,
    /// Replace the output if it exists
    #[arg(long)]
    force: bool,
    /// Do not decode and compare what was written
    #[arg(long)]
    no_verify: bool,
    #[command(flatten)]
    codec: CodecOptions,
    /// Also write the parameters that suit all tensors of INPUT together, for `--profile` with other models
    #[arg(long, value_name = "FILE", conflicts_with = "profile")]
    make_profile: Option<PathBuf>,
    /// Print where the time went
    #[arg(long)]
    timings: bool,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    print: OutputOptions,
}

impl Compress {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let printer = self.print.printer();
        let codec = self.codec.apply(self.device.codec()?)?;
        // A name that cannot be written is better known before the work than after it.
        let profile_file =
            self.make_profile.as_ref().map(|path| ProfileFile::new(path, &self.output, self.force)).transpose()?;

        let options =
            Options { force: self.force, verify: !self.no_verify, time_hashing: self.timings, ..Options::default() };
        let start = Instant::now();
        let report = checkpoint::compress(&codec, &self.input, &self.output, &options, &mut Bar::new(printer))?;
        let time = start.elapsed();
        if let Some(file) = profile_file {
            file.write(&Checkpoint::open(&self.input)?.profile()?)?;
        }

        let sizes = (report.input_bytes, report.output_bytes);
        let summary = Summary::new(&self.input, &self.output, &report, sizes, time).verified(options.verify);
        printer.data(&summary, "")?;
        printer.note(summary.headline());
        printer.note(Gain { streams: report.streams, tensors: report.tensors });
        if let Some(note) = by_fallback(&codec, report.fallback_streams, "encoded") {
            printer.note(note);
        }
        printer.note(summary.speed(if options.verify { "decoded again and compared" } else { "not verified" }));
        if self.timings {
            printer.note(Split(&report));
        }
        Ok(())
    }
}
