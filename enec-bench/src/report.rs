//! Results as a table, as JSON and as CSV.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde::Serialize;

use crate::Result;
use crate::copy::STREAMS;

/// One measurement. Throughput counts uncompressed bytes; every figure is the median of interleaved repetitions.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Record {
    pub(crate) backend: String,
    pub(crate) device: String,
    pub(crate) variant: String,
    pub(crate) data: String,
    pub(crate) dtype: String,
    /// `enec`, `cascade`, or `auto`: the smaller one for each tensor.
    pub(crate) codec: &'static str,
    /// `kernel`: the backend's jobs alone. `codec`: with parameter search, validation and checksums.
    pub(crate) what: &'static str,
    pub(crate) place: &'static str,
    pub(crate) threads: usize,
    pub(crate) tensors: usize,
    pub(crate) bytes: usize,
    pub(crate) ratio: f64,
    pub(crate) encode_gbps: f64,
    pub(crate) decode_gbps: f64,
    pub(crate) memcpy_gbps: f64,
    pub(crate) nt_copy_gbps: f64,
    /// One thread hashing the decoded bytes.
    pub(crate) hash_gbps: f64,
    /// The device's kernels by its own clock, on tensors in its memory.
    pub(crate) device_encode_gbps: Option<f64>,
    pub(crate) device_decode_gbps: Option<f64>,
    /// The device copying its own memory.
    pub(crate) device_copy_gbps: Option<f64>,
    /// Streams sent to the device and decoded there, and tensors encoded there and taken back as streams; and the tensors sent and taken back
    /// as they are.
    pub(crate) link_decode_gbps: Option<f64>,
    pub(crate) link_upload_gbps: Option<f64>,
    pub(crate) link_encode_gbps: Option<f64>,
    pub(crate) link_download_gbps: Option<f64>,
    /// The device's kernels by a cost formula: nothing has been measured.
    pub(crate) model_encode_gbps: Option<f64>,
    pub(crate) model_decode_gbps: Option<f64>,
}

/// The machine and the source that a result is from.
#[derive(Debug, Serialize)]
pub(crate) struct Origin {
    pub(crate) cpu: String,
    pub(crate) commit: String,
}

impl Origin {
    pub(crate) fn here() -> Self {
        let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
        let model = info.lines().find_map(|line| line.strip_prefix("model name")?.split_once(": "));
        let commit = Command::new("git").args(["describe", "--always", "--dirty", "--abbrev=12"]).output();
        let commit = commit.ok().filter(|output| output.status.success());
        Self {
            cpu: model.map_or("unknown", |(_, model)| model).to_owned(),
            commit: commit.map_or("unknown".into(), |output| String::from_utf8_lossy(&output.stdout).trim().to_owned()),
        }
    }
}

#[derive(Debug, Serialize)]
struct Line<'a, R: Serialize> {
    #[serde(flatten)]
    record: &'a R,
    #[serde(flatten)]
    origin: &'a Origin,
}

/// Prints the table. Ratios to the copies are the figures to quote: machines are shared.
pub(crate) fn print(records: &[Record]) {
    let origin = Origin::here();
    println!("{}, commit {}", origin.cpu, origin.commit);
    if !STREAMS {
        println!("no streaming stores on this machine: the nt copy is a memcpy");
    }
    let name = |record: &Record| format!("{} ({} tensors)", record.data, record.tensors);
    let width = records.iter().map(|record| name(record).len()).max().unwrap_or(4);
    println!(
        "{:width$}  {:4}  {:12}  {:7}  {:7}  {:6}  {:>8}  {:>6}  {:>15}  {:>15}  {:>6}  {:>6}  {:>6}",
        "data",
        "type",
        "place",
        "threads",
        "codec",
        "what",
        "MB",
        "ratio",
        "encode (/copy)",
        "decode (/copy)",
        "memcpy",
        "nt",
        "hash"
    );
    for record in records {
        // The faster copy: in cache memcpy, out of it usually the streaming one.
        let against = record.memcpy_gbps.max(record.nt_copy_gbps);
        let relative = |gbps: f64| format!("{gbps:6.2} ({:.2})", gbps / against);
        println!(
            "{:width$}  {:4}  {:12}  {:7}  {:7}  {:6}  {:8.1}  {:6.3}  {:>15}  {:>15}  {:6.2}  {:6.2}  {:6.2}",
            name(record),
            record.dtype,
            record.place,
            record.threads,
            record.codec,
            record.what,
            record.bytes as f64 / 1e6,
            record.ratio,
            relative(record.encode_gbps),
            relative(record.decode_gbps),
            record.memcpy_gbps,
            record.nt_copy_gbps,
            record.hash_gbps,
        );
    }
    // Both records of a measurement bear what the device's kernels take.
    for record in records.iter().filter(|record| record.what == "kernel") {
        let about = format!("{} {} {} {}", name(record), record.dtype, record.place, record.codec);
        if let Some(((encode, decode), copy)) =
            record.device_encode_gbps.zip(record.device_decode_gbps).zip(record.device_copy_gbps)
        {
            println!(
                "{about}: on the device, by its clock: encode {encode:.2} ({:.2} of its copy), decode {decode:.2} ({:.2}), copy {copy:.2}",
                encode / copy,
                decode / copy
            );
        }
        for (what, coded, copied) in [
            ("to the device, decoding there", record.link_decode_gbps, record.link_upload_gbps),
            ("from the device, encoding there", record.link_encode_gbps, record.link_download_gbps),
        ] {
            if let Some((coded, copied)) = coded.zip(copied) {
                let gain = coded / copied;
                println!("{about}: {what}: {coded:.2}; uncompressed over the same link {copied:.2} (gain {gain:.2})");
            }
        }
        if let Some((encode, decode)) = record.model_encode_gbps.zip(record.model_decode_gbps) {
            println!("{about}: model, not measured: encode {encode:.1}, decode {decode:.1}");
        }
    }
}

/// Writes one line per record.
pub(crate) fn write<R: Serialize>(path: &Path, records: &[R]) -> Result<()> {
    let origin = Origin::here();
    let lines: Vec<Line<'_, R>> = records.iter().map(|record| Line { record, origin: &origin }).collect();
    let text = if path.extension().is_some_and(|extension| extension == "csv") {
        csv(&lines)?
    } else {
        serde_json::to_string_pretty(&lines)? + "\n"
    };
    Ok(fs::write(path, text)?)
}

fn csv<R: Serialize>(lines: &[Line<'_, R>]) -> Result<String> {
    let mut text = String::new();
    for line in lines {
        let serde_json::Value::Object(fields) = serde_json::to_value(line)? else { continue };
        if text.is_empty() {
            text += &(fields.keys().map(String::as_str).collect::<Vec<_>>().join(",") + "\n");
        }
        let cells: Vec<String> = fields.values().map(cell).collect();
        text += &(cells.join(",") + "\n");
    }
    Ok(text)
}

fn cell(value: &serde_json::Value) -> String {
    match value {
        serde_json::Value::String(text) => format!("\"{}\"", text.replace('"', "\"\"")),
        value => value.to_string(),
    }
}
