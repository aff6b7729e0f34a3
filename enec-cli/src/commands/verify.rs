//! `enec verify`: whether a compressed checkpoint is intact.

use std::path::PathBuf;
use std::time::Duration;

use clap::Args;
use enec::checkpoint::{self, Damage, Options, Verification};
use serde::Serialize;

use crate::arguments::{DeviceOptions, OutputOptions};
use crate::commands::summary::by_fallback;
use crate::failure::Failure;
use crate::number::{Size, count, gigabytes_per_second};
use crate::printer::{Printable, Printer};
use crate::progress::Bar;

/// Check that a compressed file or folder is intact
///
/// Every tensor is decoded and both of its hashes are checked. Each fault is named; one does not hide the others.
#[derive(Debug, Args)]
pub(crate) struct Verify {
    /// Compressed file, or folder that holds some
    input: PathBuf,
    /// Compare with the file or folder that it was made from, too
    #[arg(long, value_name = "ORIGINAL")]
    against: Option<PathBuf>,
    #[command(flatten)]
    device: DeviceOptions,
    #[command(flatten)]
    print: OutputOptions,
}

#[derive(Serialize)]
struct Verdict<'a> {
    input: String,
    against: Option<String>,
    intact: bool,
    #[serde(flatten)]
    verification: &'a Verification,
}

impl Verify {
    pub(crate) fn run(&self) -> Result<(), Failure> {
        let printer = self.print.printer();
        let codec = self.device.codec()?;
        let against = self.against.as_deref();
        let options = Options::default();
        let verification = checkpoint::verify(&codec, &self.input, against, &options, &mut Bar::new(printer))?;

        let against = against.map(|path| path.display().to_string());
        let input = self.input.display().to_string();
        let verdict = Verdict { input, against, intact: verification.damages.is_empty(), verification: &verification };
        printer.data(&verdict, "")?;
        if !verdict.intact {
            verification.damages.iter().for_each(|damage| Printer::error(describe(damage), None));
            return Err(Failure::Damaged(verification.damages));
        }
        let Verification { tensors, bytes, seconds, fallback_streams, .. } = verification;
        printer.note(format_args!(
            "{}: {}, {}, all intact",
            Printable(&verdict.input),
            count(tensors, "tensor"),
            Size(bytes)
        ));
        if let Some(original) = verdict.against {
            printer.note(format_args!("the same as {}", Printable(&original)));
        }
        if let Some(note) = by_fallback(&codec, fallback_streams, "decoded") {
            printer.note(note);
        }
        let rate = gigabytes_per_second(bytes, Duration::from_secs_f64(seconds));
        printer.note(format_args!("{seconds:.2} s, {rate:.2} GB/s"));
        Ok(())
    }
}

fn describe(damage: &Damage) -> String {
    let mut text = damage.file.display().to_string();
    if let Some(tensor) = &damage.tensor {
        text += &format!(": tensor `{tensor}`");
    }
    if let Some(block) = damage.block {
        text += &format!(": block {block}");
    }
    text + ": " + &damage.message
}
