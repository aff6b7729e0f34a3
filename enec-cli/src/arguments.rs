//! The arguments of the program, and the options that several commands share.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use clap::{Args, Parser};
use enec::{Codec, CodecChoice, OpenOptions, Profile};

use crate::commands::Command;
use crate::failure::Failure;
use crate::printer::Printer;

/// Compress the weights of models in BF16, F16 and F32, without loss.
///
/// INPUT is a safetensors file, or a folder that holds some, such as a checkpoint from the Hugging Face hub. Decompressing gives
/// back every file byte for byte. BF16 weights shrink by a factor of about 1.46 to 1.50, F16 and F32 weights by 1.16 to 1.20.
///
/// Compressed checkpoints are safetensors files too, but transformers and other frameworks cannot load the weights in them directly yet:
/// `enec decompress` gives back the files that they load, `enec extract` a single tensor.
#[derive(Debug, Parser)]
#[command(name = "enec", version, max_term_width = 100, subcommand_required = true, arg_required_else_help = true)]
#[command(after_long_help = AFTER_HELP)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    pub(crate) command: Command,
}

const AFTER_HELP: &str = "\
Examples:
  enec compress model.safetensors -o model.enec.safetensors
  enec verify model.enec.safetensors --against model.safetensors
  enec decompress model.enec.safetensors -o restored.safetensors
  enec compress my-checkpoint/ -o my-checkpoint-enec/

`enec completions SHELL` writes completions for a shell, `enec man [COMMAND]` a manual page.
Exit codes: 0 success, 1 the input is at fault, 2 anything else.";

/// Which device does the work.
#[derive(Debug, Args)]
pub(crate) struct DeviceOptions {
    /// Backend to use: NAME, NAME:INDEX, NAME:DEVICE or `auto`; `enec devices` lists them
    #[arg(long, value_name = "NAME", default_value = "cpu")]
    backend: String,
    /// Threads of the CPU to use; the output does not depend on them [default: one per core]
    #[arg(long, value_name = "N")]
    threads: Option<NonZeroUsize>,
}

impl DeviceOptions {
    /// Opens the device.
    ///
    /// # Errors
    ///
    /// [`Failure::Library`] if it is not available.
    pub(crate) fn codec(&self) -> Result<Codec, Failure> {
        let options = OpenOptions { threads: self.threads, ..OpenOptions::default() };
        Ok(enec::codec(&self.backend, &options)?)
    }
}

/// Which codec is used, and with which parameters.
#[derive(Debug, Args)]
pub(crate) struct CodecOptions {
    /// Codec of the tensors: `cascade` is smaller for most weights, `enec` is faster, `auto` is the smaller one tensor by tensor
    #[arg(long, value_name = "CODEC", default_value = "auto", value_parser = PossibleValuesParser::new(CodecChoice::ALL.map(CodecChoice::name)).try_map(|name| name.parse::<CodecChoice>()))]
    codec: CodecChoice,
    /// Use the parameters in this file instead of searching for each tensor's
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
}

impl CodecOptions {
    /// The codec with these choices.
    ///
    /// # Errors
    ///
    /// [`Failure::Library`] if the profile cannot be read.
    pub(crate) fn apply(&self, codec: Codec) -> Result<Codec, Failure> {
        let codec = codec.with_choice(self.codec);
        Ok(match &self.profile {
            None => codec,
            Some(path) => codec.with_profile(Profile::read(path)?),
        })
    }
}

/// What is printed.
#[derive(Debug, Args)]
pub(crate) struct OutputOptions {
    /// Print no progress and no summary: only data and errors
    #[arg(long, short)]
    quiet: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl OutputOptions {
    /// The output policy for these options.
    pub(crate) fn printer(&self) -> Printer {
        Printer::new(self.quiet, self.json)
    }
}
