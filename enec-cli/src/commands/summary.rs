//! What compressing and decompressing tell at the end.

use std::fmt::{self, Display};
use std::path::Path;
use std::time::Duration;

use enec::Codec;
use enec::checkpoint::{Report, Timings};
use serde::Serialize;

use crate::number::{Size, count, gigabytes_per_second, ratio};
use crate::printer::Printable;

/// What a conversion did, as data and in words.
#[derive(Debug, Serialize)]
pub(crate) struct Summary<'a> {
    input: String,
    output: String,
    #[serde(flatten)]
    report: &'a Report,
    ratio: f64,
    seconds: f64,
    gigabytes_per_second: f64,
    /// Whether what was written was decoded and compared; always so when decompressing, by the hashes.
    verified: bool,
}

impl<'a> Summary<'a> {
    /// `original` and `compressed` are bytes, one of them before and one after.
    pub(crate) fn new(
        input: &Path,
        output: &Path,
        report: &'a Report,
        (original, compressed): (u64, u64),
        time: Duration,
    ) -> Self {
        Self {
            input: input.display().to_string(),
            output: output.display().to_string(),
            report,
            ratio: ratio(original, compressed),
            seconds: time.as_secs_f64(),
            gigabytes_per_second: gigabytes_per_second(report.original_bytes, time),
            verified: true,
        }
    }

    pub(crate) fn verified(mut self, verified: bool) -> Self {
        self.verified = verified;
        self
    }

    /// The output, and the sizes.
    pub(crate) fn headline(&self) -> String {
        let (output, Report { input_bytes, output_bytes, .. }) = (Printable(&self.output), self.report);
        format!("{output}: {} to {}, ratio {:.3}", Size(*input_bytes), Size(*output_bytes), self.ratio)
    }

    /// Time and throughput, and how it was checked.
    pub(crate) fn speed(&self, check: &str) -> String {
        format!("{:.2} s, {:.2} GB/s, {check}", self.seconds, self.gigabytes_per_second)
    }
}

/// Where the time went, in words.
pub(crate) struct Split<'a>(pub(crate) &'a Report);

impl Display for Split<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report { verify_seconds, timings, .. } = self.0;
        let Timings { search_seconds, code_seconds, hash_seconds, write_seconds, sync_seconds, .. } = timings;
        writeln!(f, "read    inside the others: inputs are mapped")?;
        writeln!(f, "search  {search_seconds:8.3} s")?;
        writeln!(f, "code    {code_seconds:8.3} s, encoding or decoding")?;
        writeln!(f, "hash    {hash_seconds:8.3} s of that, over all threads")?;
        writeln!(f, "write   {write_seconds:8.3} s beside the others")?;
        writeln!(f, "sync    {sync_seconds:8.3} s")?;
        write!(f, "verify  {verify_seconds:8.3} s")
    }
}

/// What is told of streams that another device than the one asked for encoded or decoded.
pub(crate) fn by_fallback(codec: &Codec, streams: usize, verb: &str) -> Option<String> {
    if streams == 0 {
        return None;
    }
    let fallback = codec.fallback().map_or("the reference codec", |fallback| fallback.info().backend);
    let (streams, backend) = (count(streams, "stream"), codec.backend().info().backend);
    Some(format!("{streams} {verb} by `{fallback}`: `{backend}` has no kernels for their codec"))
}

/// How many of a checkpoint's tensors are smaller as streams.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Gain {
    pub(crate) streams: usize,
    pub(crate) tensors: usize,
}

impl Display for Gain {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Gain { streams, tensors } = self;
        write!(f, "{streams} of {} {}", count(*tensors, "tensor"), if *streams == 1 { "gains" } else { "gain" })?;
        if *streams == 0 {
            write!(f, ": compressing this checkpoint saves nothing")?;
        }
        Ok(())
    }
}
