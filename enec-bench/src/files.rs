//! Whole files: compressing and decompressing a checkpoint beside plain reading and writing of the same bytes in the same place.
//!
//! Everything writes new files, as the program does, and what a new file costs depends on the state of the machine's free pages: in a virtual
//! machine the first use of a page can take many times as long as the copy. So each timed run comes right after the same run, whose output is
//! removed: it gets pages that have just been in use, whoever's turn it is. Writing any other file of the same size would not do, because
//! pages are kept by the size of the pieces in which files take them.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use enec::checkpoint::{self, Options, Report};
use enec::{Codec, CodecChoice, Dtype, OpenOptions};
use serde::Serialize;

use crate::Result;
use crate::arguments::{Arguments, Data};
use crate::buffer::Buffer;
use crate::report::Origin;
use crate::synthetic;
use crate::throughput::median;

/// Bytes of one generated tensor: 4,096 x 4,096 of BF16.
const TENSOR_BYTES: usize = 2 * 4096 * 4096;

/// Bytes of one `read` or `write` of the comparison, from and to memory that stays in use.
const PIECE_BYTES: usize = 4 << 20;

/// Time after which a virtual machine with free page reporting has given its host all pages that were freed before. Linux does so two
/// seconds after one is freed. What is freed after this time is thus still there for two seconds, in which the next run takes it.
const PAGES_GIVEN_BACK: Duration = Duration::from_secs(3);

/// What is timed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    /// Writing as many bytes as the original has.
    WriteOriginal,
    Decompress,
    /// Reading the original and writing as many bytes as its compressed form has.
    ReadOriginalWriteCompressed,
    CompressUnverified,
    Compress,
}

impl Operation {
    const ALL: [Self; 5] = [
        Self::WriteOriginal,
        Self::Decompress,
        Self::ReadOriginalWriteCompressed,
        Self::CompressUnverified,
        Self::Compress,
    ];

    /// All of them, each time in another order: in a fixed one, what an operation leaves behind would always meet the same next one.
    fn in_turn(repetition: usize) -> [Self; 5] {
        // Any stride that is no multiple of their number reaches all.
        let stride = 1 + repetition % (Self::ALL.len() - 1);
        std::array::from_fn(|index| Self::ALL[(repetition + index * stride) % Self::ALL.len()])
    }

    fn name(self) -> &'static str {
        match self {
            Self::WriteOriginal => "write the original's bytes",
            Self::Decompress => "decompress",
            Self::ReadOriginalWriteCompressed => "read the original, write the compressed bytes",
            Self::CompressUnverified => "compress --no-verify",
            Self::Compress => "compress",
        }
    }

    /// What it is compared with.
    fn reference(self) -> Option<Self> {
        match self {
            Self::WriteOriginal | Self::ReadOriginalWriteCompressed => None,
            Self::Decompress => Some(Self::WriteOriginal),
            Self::CompressUnverified => Some(Self::ReadOriginalWriteCompressed),
            Self::Compress => Some(Self::CompressUnverified),
        }
    }
}

/// The times of one operation in one place.
#[derive(Debug, Serialize)]
struct Row {
    backend: String,
    codec: &'static str,
    place: PathBuf,
    operation: &'static str,
    threads: String,
    original_bytes: u64,
    compressed_bytes: u64,
    /// Median of the repetitions, without waiting for the disk.
    seconds: f64,
    /// Until the disk has it.
    sync_seconds: f64,
    compared_with: Option<&'static str>,
    /// Seconds over those of the operation compared with.
    times: Option<f64>,
    #[serde(flatten)]
    origin: Origin,
}

pub(crate) fn run(arguments: &Arguments, folder: &Path) -> Result<()> {
    let [Data::Synthetic(bytes)] = arguments.data[..] else {
        return Err("`--files` wants `--data synthetic:SIZE`".into());
    };
    let options = OpenOptions {
        threads: arguments.threads.first().copied(),
        variant: arguments.variant.clone(),
        ..OpenOptions::default()
    };
    let backend = enec::open(&arguments.backend, &options)?;
    let mut rows = Vec::new();
    for &choice in &arguments.codec {
        rows.extend(measure(&Codec::new(backend.clone()).with_choice(choice), choice, arguments, folder, bytes)?);
    }
    if let Some(path) = &arguments.out {
        fs::write(path, serde_json::to_string_pretty(&rows)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// One checkpoint, compressed by one codec.
fn measure(codec: &Codec, choice: CodecChoice, arguments: &Arguments, folder: &Path, bytes: usize) -> Result<Vec<Row>> {
    let folder = Scratch::new(folder)?;
    let place = Place::new(codec, &folder.0, bytes)?;
    let mut seconds = vec![Vec::new(); Operation::ALL.len()];
    for repetition in 0..arguments.repetitions.max(1) {
        for operation in Operation::in_turn(repetition) {
            seconds[operation as usize].push(place.time(operation)?);
        }
    }
    let middle = |operation: Operation, part: fn(&(f64, f64)) -> f64| {
        median(&seconds[operation as usize].iter().map(part).collect::<Vec<_>>())
    };
    let rows = Operation::ALL.map(|operation| Row {
        backend: codec.backend().info().backend.to_owned(),
        codec: choice.name(),
        place: folder.0.parent().unwrap_or(&folder.0).to_owned(),
        operation: operation.name(),
        threads: codec.backend().info().fingerprint.clone(),
        original_bytes: place.original_bytes,
        compressed_bytes: place.compressed_bytes,
        seconds: middle(operation, |times| times.0),
        sync_seconds: middle(operation, |times| times.1),
        compared_with: operation.reference().map(Operation::name),
        times: operation.reference().map(|other| middle(operation, |times| times.0) / middle(other, |times| times.0)),
        origin: Origin::here(),
    });
    print(&rows);
    Ok(rows.into())
}

fn print(rows: &[Row]) {
    let Some(first) = rows.first() else { return };
    println!(
        "{} in {}: {} bytes, compressed {} by {}, {}",
        first.origin.cpu,
        first.place.display(),
        first.original_bytes,
        first.compressed_bytes,
        first.codec,
        first.threads
    );
    println!("commit {}", first.origin.commit);
    println!("{:46}  {:>8}  {:>8}  {:>6}  times", "operation", "seconds", "and sync", "GB/s");
    for row in rows {
        let times = row.times.zip(row.compared_with).map(|(times, other)| format!("{times:.2} x {other}"));
        println!(
            "{:46}  {:8.3}  {:8.3}  {:6.2}  {}",
            row.operation,
            row.seconds,
            row.sync_seconds,
            row.original_bytes as f64 / row.seconds / 1e9,
            times.unwrap_or_default()
        );
    }
}

/// A folder of our own that is removed in the end.
struct Scratch(PathBuf);

impl Scratch {
    fn new(parent: &Path) -> Result<Self> {
        let path = parent.join(format!("enec-bench-{}", std::process::id()));
        fs::create_dir(&path).map_err(|error| format!("{}: {error}", path.display()))?;
        Ok(Self(path))
    }
}

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// The files.
struct Place<'a> {
    codec: &'a Codec,
    original: PathBuf,
    compressed: PathBuf,
    output: PathBuf,
    original_bytes: u64,
    compressed_bytes: u64,
    /// Warm memory.
    piece: std::cell::RefCell<Buffer>,
}

impl<'a> Place<'a> {
    /// Makes the original and its compressed form, and compares what comes of that.
    fn new(codec: &'a Codec, folder: &Path, bytes: usize) -> Result<Self> {
        let path = |name: &str| folder.join(name);
        let (original, compressed, output) =
            (path("original.safetensors"), path("compressed.safetensors"), path("output.safetensors"));
        write_original(&original, bytes)?;
        let options = Options::default();
        checkpoint::compress(codec, &original, &compressed, &options, &mut ())?;
        checkpoint::decompress(codec, &compressed, &output, &options, &mut ())?;
        let place = Self {
            codec,
            original_bytes: fs::metadata(&original)?.len(),
            compressed_bytes: fs::metadata(&compressed)?.len(),
            piece: Buffer::new(PIECE_BYTES).into(),
            original,
            compressed,
            output,
        };
        place.compare()?;
        Ok(place)
    }

    fn compare(&self) -> Result<()> {
        let (mut left, mut right) = (File::open(&self.original)?, File::open(&self.output)?);
        let (mut expected, mut found) = (vec![0; PIECE_BYTES], Vec::with_capacity(PIECE_BYTES));
        loop {
            let len = left.read(&mut expected)?;
            found.clear();
            Read::by_ref(&mut right).take(len.max(1) as u64).read_to_end(&mut found)?;
            if found != expected[..len] {
                return Err("decompressing did not give back the original".into());
            }
            if len == 0 {
                return Ok(());
            }
        }
    }

    /// As [`perform`](Self::perform), with pages that have just been in use.
    fn time(&self, operation: Operation) -> Result<(f64, f64)> {
        self.remove_output()?;
        thread::sleep(PAGES_GIVEN_BACK);
        self.perform(operation)?;
        self.remove_output()?;
        self.perform(operation)
    }

    /// Seconds without and for syncing.
    fn perform(&self, operation: Operation) -> Result<(f64, f64)> {
        let start = Instant::now();
        let of_report = |report: Report| {
            let sync = report.timings.sync_seconds;
            (start.elapsed().as_secs_f64() - sync, sync)
        };
        let options = |verify| Options { verify, ..Options::default() };
        Ok(match operation {
            Operation::WriteOriginal => self.write(self.original_bytes, start)?,
            Operation::ReadOriginalWriteCompressed => {
                let mut file = File::open(&self.original)?;
                while file.read(self.piece.borrow_mut().bytes_mut())? > 0 {}
                self.write(self.compressed_bytes, start)?
            }
            Operation::Decompress => of_report(checkpoint::decompress(
                self.codec,
                &self.compressed,
                &self.output,
                &Options::default(),
                &mut (),
            )?),
            Operation::CompressUnverified | Operation::Compress => {
                let options = options(operation == Operation::Compress);
                of_report(checkpoint::compress(self.codec, &self.original, &self.output, &options, &mut ())?)
            }
        })
    }

    /// Writes so many bytes to a new file.
    fn write(&self, bytes: u64, start: Instant) -> Result<(f64, f64)> {
        let mut file = File::create_new(&self.output)?;
        let piece = self.piece.borrow();
        let mut left = bytes;
        while left > 0 {
            let len = usize::try_from(left).unwrap_or(usize::MAX).min(PIECE_BYTES);
            file.write_all(&piece.bytes()[..len])?;
            left -= len as u64;
        }
        let written = start.elapsed().as_secs_f64();
        file.sync_all()?;
        Ok((written, start.elapsed().as_secs_f64() - written))
    }

    fn remove_output(&self) -> Result<()> {
        if self.output.exists() {
            fs::remove_file(&self.output)?;
        }
        Ok(())
    }
}

/// Writes a safetensors file of BF16 tensors with so many bytes in all.
fn write_original(path: &Path, bytes: usize) -> Result<()> {
    let mut tensor = Buffer::new(TENSOR_BYTES.min(bytes / 2 * 2));
    synthetic::fill(Dtype::Bf16, tensor.bytes_mut());
    let mut header = serde_json::Map::new();
    for (index, start) in (0..bytes / 2 * 2).step_by(TENSOR_BYTES).enumerate() {
        let end = bytes.min(start + TENSOR_BYTES) / 2 * 2;
        let entry = serde_json::json!({"dtype": "BF16", "shape": [(end - start) / 2], "data_offsets": [start, end]});
        header.insert(format!("layers.{index:04}.weight"), entry);
    }
    let mut text = serde_json::to_string(&header)?;
    text += &" ".repeat(text.len().next_multiple_of(8) - text.len());
    let mut file = File::create_new(path)?;
    file.write_all(&(text.len() as u64).to_le_bytes())?;
    file.write_all(text.as_bytes())?;
    for start in (0..bytes / 2 * 2).step_by(TENSOR_BYTES) {
        file.write_all(&tensor.bytes()[..TENSOR_BYTES.min(bytes / 2 * 2 - start)])?;
    }
    Ok(())
}
