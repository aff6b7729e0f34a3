//! Checking a compressed checkpoint against its hashes, or against its original.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::time::Instant;

use enec_format::FormatErrorKind;
use enec_format::geometry::BLOCK_ELEMENTS;
use serde::Serialize;

use super::conversion::Options;
use super::decode::{Check, Receiver, decode_tensors};
use super::file::CheckpointFile;
use super::folder::{Entry, Folder};
use super::progress::{Progress, Step, advance};
use super::tensor::TensorRef;
use super::work::Work;
use super::{IoContext, fault, input_metadata};
use crate::{Codec, Error, Result};

/// What checking a checkpoint found.
#[derive(Debug, Clone, Default, PartialEq, Serialize)]
pub struct Verification {
    /// Safetensors files checked.
    pub files: usize,
    /// Tensors checked.
    pub tensors: usize,
    /// Streams whose codec the backend lacks, so that the codec's fallback decoded them.
    pub fallback_streams: usize,
    /// Decoded bytes checked.
    pub bytes: u64,
    /// Everything that is wrong; empty if the checkpoint is sound.
    pub damages: Vec<Damage>,
    /// Seconds spent.
    pub seconds: f64,
}

/// Something that is wrong with a checkpoint.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Damage {
    /// The file.
    pub file: PathBuf,
    /// The tensor; `None` if the file as a whole is damaged, so that none of its tensors was checked.
    pub tensor: Option<String>,
    /// The block of 16,384 elements in which the fault lies, if that is known. A hash covers a whole tensor and does not say.
    pub block: Option<u64>,
    /// What is wrong.
    pub message: String,
}

/// Checks every hash of a compressed file, or of all of them in a folder; with `against`, also that they decode to the original file or
/// folder, whose other files must be the same.
///
/// What is wrong with one tensor or file does not keep the others from being checked. `options` gives the size of windows only.
///
/// # Errors
///
/// [`Error::Io`] if something cannot be read, [`Error::File`] if the input is a file that is not compressed or a folder in which
/// something is wrong beside the safetensors files, [`Error::Device`] if the device fails, [`Error::Cancelled`].
pub fn verify(
    codec: &Codec,
    input: &Path,
    against: Option<&Path>,
    options: &Options,
    progress: &mut dyn Progress,
) -> Result<Verification> {
    let (start, stopwatch) = (Instant::now(), options.stopwatch());
    let mut verifier =
        Verifier { work: Work::new(codec, options, &stopwatch), progress, result: Verification::default() };
    let is_folder = |path: &Path| Ok::<_, Error>(input_metadata(path)?.is_dir());
    if let Some(original) = against
        && is_folder(input)? != is_folder(original)?
    {
        let (input, original) = (input.display(), original.display());
        return Err(Error::Argument(format!("of `{input}` and `{original}` one is a file and the other a folder")));
    }
    if is_folder(input)? {
        verifier.folder(input, against)?;
    } else {
        let file = CheckpointFile::open(input)?;
        file.require_compressed()?;
        verifier.progress.total(file.original_len());
        verifier.file(&file, against)?;
    }
    verifier.result.seconds = start.elapsed().as_secs_f64();
    Ok(verifier.result)
}

struct Verifier<'a> {
    work: Work<'a>,
    progress: &'a mut dyn Progress,
    result: Verification,
}

impl Verifier<'_> {
    fn folder(&mut self, input: &Path, against: Option<&Path>) -> Result<()> {
        let folder = Folder::list(input)?;
        let original = against.map(Folder::list).transpose()?;
        let mut files = Vec::new();
        for entry in &folder.shards {
            match CheckpointFile::open(&entry.path).and_then(|file| file.require_compressed().map(|()| file)) {
                Ok(file) => files.push((entry, file)),
                Err(error @ Error::File { .. }) => self.damage_file(&entry.path, &error),
                Err(error) => return Err(error),
            }
        }
        self.progress.total(files.iter().map(|(_, file)| file.original_len()).sum());
        for (entry, file) in &files {
            let against = original.as_ref().and_then(|original| find(&original.shards, entry));
            self.file(file, against.map(|entry| entry.path.as_path()))?;
        }
        if let Some(original) = original {
            self.other_files(&folder, &original)?;
        }
        Ok(())
    }

    /// Reports files that only one of two folders has, and other files that differ.
    fn other_files(&mut self, folder: &Folder, original: &Folder) -> Result<()> {
        let by_name = |folder: &Folder| -> BTreeMap<PathBuf, PathBuf> {
            let entries = folder.shards.iter().chain(&folder.others);
            entries.map(|entry| (entry.relative.clone(), entry.path.clone())).collect()
        };
        let (ours, theirs) = (by_name(folder), by_name(original));
        for (name, path) in &ours {
            if !theirs.contains_key(name) {
                self.damage_file(path, &fault(path, "not in the original folder", None));
            }
        }
        for (name, path) in &theirs {
            if !ours.contains_key(name) {
                self.damage_file(&folder.path.join(name), &fault(path, "only in the original folder", None));
            }
        }
        for entry in &folder.others {
            if let Some(theirs) = find(&original.others, entry)
                && !is_same(&entry.path, &theirs.path)?
            {
                self.damage_file(
                    &entry.path,
                    &fault(&entry.path, "differs from the file in the original folder", None),
                );
            }
        }
        Ok(())
    }

    fn file(&mut self, file: &CheckpointFile, against: Option<&Path>) -> Result<()> {
        self.progress.file(Step::Verify, file.path());
        let original = against.map(CheckpointFile::open).transpose()?;
        if let Some(original) = &original {
            original.require_original()?;
            if original.original().text() != file.original().text() {
                self.damage_file(file.path(), &fault(file.path(), "has another header than the original", None));
                return Ok(());
            }
        }
        self.result.files += 1;
        self.result.fallback_streams += self.work.streams_of(file).by_fallback;
        advance(self.progress, file.original().data_start())?;
        let work = self.work;
        let mut inspection = FileVerifier { verifier: self, original: original.as_ref(), differences: BTreeMap::new() };
        decode_tensors(work, file.in_data_order(), Check::ContentAndPayload, &mut inspection)
    }

    fn damage_file(&mut self, path: &Path, error: &Error) {
        let message = match error {
            Error::File { message, .. } => message.clone(),
            other => other.to_string(),
        };
        self.result.damages.push(Damage { file: path.to_owned(), tensor: None, block: None, message });
    }
}

/// Checks the tensors of one file.
struct FileVerifier<'v, 'p, 'o> {
    verifier: &'v mut Verifier<'p>,
    original: Option<&'o CheckpointFile>,
    /// First byte in which a tensor differs from the original, for each that is being received.
    differences: BTreeMap<String, u64>,
}

impl<'a> Receiver<'a> for FileVerifier<'_, '_, '_> {
    fn bytes(&mut self, _tensor: TensorRef<'a>, _offset: u64, bytes: &[u8]) -> Result<()> {
        self.verifier.result.bytes += bytes.len() as u64;
        advance(self.verifier.progress, bytes.len() as u64)
    }

    fn expected(&self, tensor: TensorRef<'a>) -> Option<&[u8]> {
        self.original.map(|original| original.stored_bytes(tensor.name()))
    }

    fn differs(&mut self, tensor: TensorRef<'a>, byte: u64) -> Result<()> {
        self.differences.entry(tensor.name().to_owned()).or_insert(byte);
        Ok(())
    }

    fn end(&mut self, tensor: TensorRef<'a>, result: Result<()>) -> Result<()> {
        self.verifier.result.tensors += 1;
        let difference = self.differences.remove(tensor.name());
        let difference_block = difference.and_then(|byte| {
            let block_bytes = BLOCK_ELEMENTS * tensor.float_dtype()?.element_bytes();
            Some(byte / block_bytes as u64)
        });
        let (block, message) = match (result, difference) {
            (Err(error @ (Error::Tensor { .. } | Error::Format(_) | Error::Container(_))), _) => {
                (block_of(&error).or(difference_block), innermost(&error))
            }
            (Err(error), _) => return Err(error),
            (Ok(()), Some(byte)) => (difference_block, format!("differs from the original from byte {byte} on")),
            (Ok(()), None) => return Ok(()),
        };
        let damage = Damage { file: tensor.path().to_owned(), tensor: Some(tensor.name().to_owned()), block, message };
        self.verifier.result.damages.push(damage);
        Ok(())
    }
}

/// The message without file and tensor, which the damage names.
fn innermost(error: &Error) -> String {
    match error {
        Error::Tensor { source, .. } => source.to_string(),
        other => other.to_string(),
    }
}

/// The block that an error is about.
fn block_of(error: &Error) -> Option<u64> {
    use FormatErrorKind as Kind;
    let error = match error {
        Error::Tensor { source, .. } => return block_of(source),
        Error::Format(error) => error,
        _ => return None,
    };
    match error.kind() {
        Kind::WideBase { block, .. }
        | Kind::WideWidth { block, .. }
        | Kind::WideBaseUnused { block, .. }
        | Kind::WideWidthUnused { block, .. }
        | Kind::TableOrder { block, .. }
        | Kind::TableBeyond { block, .. }
        | Kind::SegmentLength { block, .. }
        | Kind::TableUnused { block, .. }
        | Kind::LevelsLength { block, .. }
        | Kind::RawExponent { block, .. } => Some(block),
        _ => None,
    }
}

fn find<'a>(entries: &'a [Entry], like: &Entry) -> Option<&'a Entry> {
    entries.iter().find(|entry| entry.relative == like.relative)
}

/// Whether two files hold the same bytes.
fn is_same(left: &Path, right: &Path) -> Result<bool> {
    let open = |path: &Path| Ok::<_, Error>(BufReader::with_capacity(1 << 20, File::open(path).cannot("open", path)?));
    let (mut left_file, mut right_file) = (open(left)?, open(right)?);
    loop {
        let left_bytes = left_file.fill_buf().cannot("read", left)?;
        let right_bytes = right_file.fill_buf().cannot("read", right)?;
        let both = left_bytes.len().min(right_bytes.len());
        if both == 0 {
            return Ok(left_bytes.len() == right_bytes.len());
        }
        if left_bytes[..both] != right_bytes[..both] {
            return Ok(false);
        }
        left_file.consume(both);
        right_file.consume(both);
    }
}
