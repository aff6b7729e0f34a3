//! What compressing and decompressing have in common: files and folders in, files and folders out.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use serde::Serialize;

use super::file::CheckpointFile;
use super::folder::{Entry, Folder};
use super::output::{Kind, NewFile, NewFolder, check_target, set_attributes, sync_folder};
use super::progress::{Progress, Step, advance};
use super::timings::{Stopwatch, Timings};
use super::{IoContext, input_metadata};
use crate::{Error, Result};

/// How a checkpoint is converted.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Options {
    /// Replace the output if it exists.
    pub force: bool,
    /// After compressing, decode what was written and compare it with the input before it gets its name.
    pub verify: bool,
    /// Decoded bytes that are in work at a time. Memory in use is about four times that; what is written does not depend on it.
    ///
    /// The default keeps a window in the cache until it is written, which took half the time of windows of 64 MiB on files in the page
    /// cache; a device behind a link may want more.
    pub window_bytes: usize,
    /// Fill [`Timings::hash_seconds`], which takes a few percent of the time.
    pub time_hashing: bool,
}

impl Options {
    pub(crate) fn stopwatch(&self) -> Stopwatch {
        Stopwatch { times_hashing: self.time_hashing, ..Stopwatch::default() }
    }
}

impl Default for Options {
    fn default() -> Self {
        Self { force: false, verify: true, window_bytes: 4 << 20, time_hashing: false }
    }
}

/// What a conversion did.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Report {
    /// Safetensors files.
    pub files: usize,
    /// Files copied as they are.
    pub copied_files: usize,
    /// Tensors in the safetensors files.
    pub tensors: usize,
    /// Tensors that are streams in the compressed checkpoint.
    pub streams: usize,
    /// Those of them whose codec the backend lacks, so that the codec's fallback encoded or decoded them.
    pub fallback_streams: usize,
    /// Bytes of all files read.
    pub input_bytes: u64,
    /// Bytes of all files written.
    pub output_bytes: u64,
    /// Bytes of all safetensors files, uncompressed.
    pub original_bytes: u64,
    /// Seconds spent in converting, reading and writing included.
    pub convert_seconds: f64,
    /// Seconds spent in decoding and comparing what was written.
    pub verify_seconds: f64,
    /// Where the time went.
    pub timings: Timings,
}

impl Report {
    /// Bytes read over bytes written, other files included: of compressing, the ratio; of decompressing, its reciprocal.
    #[must_use]
    pub fn ratio(&self) -> f64 {
        if self.output_bytes == 0 { 1.0 } else { to_f64(self.input_bytes) / to_f64(self.output_bytes) }
    }
}

/// A count for people; beyond 2^53 it loses digits that nobody reads.
#[expect(clippy::cast_precision_loss, reason = "for people")]
pub(crate) fn to_f64(count: u64) -> f64 {
    count as f64
}

/// How many streams a conversion made or read, and how many of those the fallback did.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct Streams {
    pub(crate) all: usize,
    pub(crate) by_fallback: usize,
}

/// What is done to each safetensors file.
pub(crate) trait Conversion {
    /// What it is called.
    const STEP: Step;

    /// Refuses a file that it is not made for.
    fn check(&self, file: &CheckpointFile) -> Result<()>;

    /// Bytes that the output has at most.
    fn output_bound(&self, file: &CheckpointFile) -> Result<u64>;

    /// Converts `file` into the new file `output`, which lies at `path`. Advances by the file's original length.
    fn convert(
        &self,
        file: &CheckpointFile,
        output: &File,
        path: &Path,
        progress: &mut dyn Progress,
    ) -> Result<Streams>;

    /// Where its time goes.
    fn stopwatch(&self) -> &Stopwatch;

    /// Whether what was written is verified.
    fn verifies(&self) -> bool;

    /// Verifies what was written. Advances by the file's original length.
    fn verify(&self, file: &CheckpointFile, path: &Path, progress: &mut dyn Progress) -> Result<()>;
}

/// Converts a file or folder.
pub(crate) fn run<C: Conversion>(
    conversion: &C,
    input: &Path,
    output: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Report> {
    let is_folder = input_metadata(input)?.is_dir();
    check_target(output, if is_folder { Kind::Folder } else { Kind::File }, options.force)?;
    check_apart(input, output)?;
    if is_folder {
        run_folder(conversion, input, output, options, progress)
    } else {
        run_file(conversion, input, output, options, progress)
    }
}

fn run_file<C: Conversion>(
    conversion: &C,
    input: &Path,
    output: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Report> {
    let file = CheckpointFile::open(input)?;
    conversion.check(&file)?;
    check_space(output, conversion.output_bound(&file)?)?;
    progress.total(work(conversion, &file));
    let new = NewFile::create(output, options.force)?;
    let mut report = Report::default();
    convert_file(conversion, &file, new.file(), new.path(), &mut report, progress)?;
    conversion.stopwatch().sync.time(|| new.finish(file.metadata()))?;
    report.timings = conversion.stopwatch().timings();
    Ok(report)
}

fn run_folder<C: Conversion>(
    conversion: &C,
    input: &Path,
    output: &Path,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Report> {
    let folder = Folder::list(input)?;
    check_kept(&folder, output)?;
    let files = folder.shards.iter().map(|entry| CheckpointFile::open(&entry.path)).collect::<Result<Vec<_>>>()?;
    files.iter().try_for_each(|file| conversion.check(file))?;
    let copied = || folder.others.iter().map(|entry| entry.metadata.len());
    let bounds = files.iter().map(|file| conversion.output_bound(file)).collect::<Result<Vec<_>>>()?;
    check_space(output, copied().chain(bounds).sum())?;
    progress.total(copied().chain(files.iter().map(|file| work(conversion, file))).sum());

    let new = NewFolder::create(output, options.force)?;
    let place = |entry: &Entry| new.path().join(&entry.relative);
    for entry in &folder.folders {
        fs::create_dir(place(entry)).cannot("create", &place(entry))?;
    }
    let mut report = Report::default();
    for (entry, file) in folder.shards.iter().zip(&files) {
        let path = place(entry);
        let output = create(&path)?;
        convert_file(conversion, file, &output, &path, &mut report, progress)?;
        set_attributes(&path, &entry.metadata)?;
        conversion.stopwatch().sync.time(|| output.sync_all()).cannot("write", &path)?;
    }
    for entry in &folder.others {
        copy(entry, &place(entry), &mut report, progress)?;
    }
    // From the bottom up: a folder's time changes when something is put into it, and its mode may forbid that.
    for entry in folder.folders.iter().rev() {
        set_attributes(&place(entry), &entry.metadata)?;
        sync_folder(&place(entry))?;
    }
    conversion.stopwatch().sync.time(|| new.finish(&folder.metadata))?;
    report.timings = conversion.stopwatch().timings();
    Ok(report)
}

/// The progress that a file takes.
fn work<C: Conversion>(conversion: &C, file: &CheckpointFile) -> u64 {
    file.original_len() * if conversion.verifies() { 2 } else { 1 }
}

fn convert_file<C: Conversion>(
    conversion: &C,
    file: &CheckpointFile,
    output: &File,
    path: &Path,
    report: &mut Report,
    progress: &mut dyn Progress,
) -> Result<()> {
    progress.file(C::STEP, file.path());
    let start = Instant::now();
    let streams = conversion.convert(file, output, path, progress)?;
    report.streams += streams.all;
    report.fallback_streams += streams.by_fallback;
    report.convert_seconds += seconds(start);
    if conversion.verifies() {
        progress.file(Step::Verify, file.path());
        let start = Instant::now();
        conversion.verify(file, path, progress)?;
        report.verify_seconds += seconds(start);
    }
    report.files += 1;
    report.tensors += file.original().tensors().len();
    report.input_bytes += file.byte_len();
    report.original_bytes += file.original_len();
    report.output_bytes += output.metadata().cannot("read", path)?.len();
    Ok(())
}

fn seconds(start: Instant) -> f64 {
    Duration::as_secs_f64(&start.elapsed())
}

/// A new file of a folder that nobody else knows of yet.
fn create(path: &Path) -> Result<File> {
    File::options().read(true).write(true).create_new(true).open(path).cannot("create", path)
}

fn copy(entry: &Entry, target: &Path, report: &mut Report, progress: &mut dyn Progress) -> Result<()> {
    /// Between two looks at whether the call is to end.
    const PIECE: u64 = 32 << 20;
    progress.file(Step::Copy, &entry.path);
    let mut source = File::open(&entry.path).cannot("open", &entry.path)?;
    let mut output = create(target)?;
    loop {
        let copied = io::copy(&mut Read::by_ref(&mut source).take(PIECE), &mut output).cannot("copy", &entry.path)?;
        if copied == 0 {
            break;
        }
        report.input_bytes += copied;
        report.output_bytes += copied;
        advance(progress, copied)?;
    }
    report.copied_files += 1;
    set_attributes(target, &entry.metadata)?;
    output.sync_all().cannot("write", target)
}

/// The names under which a path can be reached: where its last part lies, and where that leads to if it exists.
fn real_paths(path: &Path) -> Vec<PathBuf> {
    let parent = path.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let lies = parent.canonicalize().ok().zip(path.file_name()).map(|(parent, name)| parent.join(name));
    lies.into_iter().chain(path.canonicalize()).collect()
}

/// Refuses an output that is the input, lies in it, or holds it.
pub(crate) fn check_apart(input: &Path, output: &Path) -> Result<()> {
    for source in &real_paths(input) {
        for target in &real_paths(output) {
            let relation = match (target.starts_with(source), source.starts_with(target)) {
                (true, true) => "is the input itself",
                (true, false) => "lies inside the input",
                (false, true) => "holds the input",
                (false, false) => continue,
            };
            return Err(Error::Argument(format!("output `{}` {relation}: choose another place", output.display())));
        }
    }
    Ok(())
}

/// Refuses to replace a folder in which files lie that links of the input lead to.
fn check_kept(folder: &Folder, output: &Path) -> Result<()> {
    let Ok(replaced) = output.canonicalize() else { return Ok(()) };
    for entry in folder.shards.iter().chain(&folder.others) {
        if entry.path.canonicalize().is_ok_and(|real| real.starts_with(&replaced)) {
            return Err(Error::Argument(format!(
                "`{}` leads into output `{}`, which would be replaced: choose another place",
                entry.path.display(),
                output.display()
            )));
        }
    }
    Ok(())
}

/// Refuses to begin what the disk has no room for.
fn check_space(output: &Path, needed: u64) -> Result<()> {
    let folder = output.parent().filter(|parent| !parent.as_os_str().is_empty()).unwrap_or(Path::new("."));
    // Where the system cannot say, the disk will.
    let Ok(free) = fs4::available_space(folder) else { return Ok(()) };
    if free >= needed {
        return Ok(());
    }
    let message = format!("up to {needed} bytes needed, {free} free: make room or choose another place");
    let source = io::Error::new(io::ErrorKind::StorageFull, message);
    Err(Error::Io { action: "write", path: output.to_owned(), source })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn too_little_space_is_refused_before_anything_is_written() {
        let folder = tempfile::tempdir().unwrap();
        let output = folder.path().join("out");
        check_space(&output, 1).unwrap();
        let error = check_space(&output, u64::MAX).unwrap_err();
        assert!(matches!(&error, Error::Io { source, .. } if source.kind() == io::ErrorKind::StorageFull), "{error}");
        assert!(error.to_string().contains("18446744073709551615 bytes needed"), "{error}");
    }
}
