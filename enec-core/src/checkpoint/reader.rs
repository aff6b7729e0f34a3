//! A checkpoint for reading: one safetensors file, or all of them in a folder.

use std::path::{Path, PathBuf};

use super::file::CheckpointFile;
use super::folder::Folder;
use super::tensor::TensorRef;
use super::{fault, input_metadata};
use crate::{Profile, Result};

/// An opened checkpoint, original or compressed.
///
/// ```no_run
/// # fn decode(codec: &enec_core::Codec) -> enec_core::Result<()> {
/// use enec_core::checkpoint::Checkpoint;
///
/// let checkpoint = Checkpoint::open("model.enec.safetensors".as_ref())?;
/// let tensor = checkpoint.tensor("model.embed_tokens.weight")?;
/// let mut bytes = vec![0; usize::try_from(tensor.byte_len()).unwrap()];
/// tensor.decode_into(codec, &mut bytes)?;
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct Checkpoint {
    path: PathBuf,
    files: Vec<CheckpointFile>,
}

impl Checkpoint {
    /// Opens a safetensors file, or a folder with all safetensors files in it and below it.
    ///
    /// # Errors
    ///
    /// [`Error::Io`](crate::Error::Io) if something cannot be read, [`Error::File`](crate::Error::File) if a file is no safetensors file or its header is damaged, or if the
    /// folder holds none, an index that names a missing file, or a loop of links.
    pub fn open(path: &Path) -> Result<Self> {
        let is_folder = input_metadata(path)?.is_dir();
        let files = if is_folder {
            let folder = Folder::list(path)?;
            folder.shards.iter().map(|entry| CheckpointFile::open(&entry.path)).collect::<Result<_>>()?
        } else {
            vec![CheckpointFile::open(path)?]
        };
        Ok(Self { path: path.to_owned(), files })
    }

    /// The file or folder.
    #[must_use]
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The safetensors files, by name.
    #[must_use]
    pub fn files(&self) -> &[CheckpointFile] {
        &self.files
    }

    /// The tensors of all files.
    pub fn tensors(&self) -> impl Iterator<Item = TensorRef<'_>> {
        self.files.iter().flat_map(CheckpointFile::tensors)
    }

    /// The tensor called `name`.
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if there is none, or if several files of a folder have one.
    pub fn tensor(&self, name: &str) -> Result<TensorRef<'_>> {
        let mut found = self.files.iter().filter_map(|file| file.tensor(name));
        match (found.next(), found.next()) {
            (Some(tensor), None) => Ok(tensor),
            (Some(first), Some(second)) => {
                let (first, second) = (first.path().display(), second.path().display());
                let message = format!("tensor `{name}` lies in `{first}` and in `{second}`");
                Err(fault(&self.path, message, Some("name the file instead of the folder")))
            }
            (None, _) => {
                let hint = "`enec inspect` lists the tensors";
                Err(fault(&self.path, format_args!("there is no tensor `{name}`"), Some(hint)))
            }
        }
    }

    /// One pair of parameters for each dtype of an original checkpoint, by a sample of all its tensors: see [`Profile::search`].
    ///
    /// # Errors
    ///
    /// [`Error::File`](crate::Error::File) if a file is compressed, or if no tensor is long enough to learn from.
    pub fn profile(&self) -> Result<Profile> {
        self.files.iter().try_for_each(CheckpointFile::require_original)?;
        let elements = self.tensors().filter_map(|tensor| Some((tensor.float_dtype()?, tensor.stored_bytes())));
        let tiled = elements.filter(|(dtype, elements)| elements.len() >= dtype.tile_bytes());
        let profile = Profile::search(&Vec::from_iter(tiled));
        if profile.is_empty() {
            return Err(fault(&self.path, "no BF16, F16 or F32 tensor of 2048 elements to make a profile from", None));
        }
        Ok(profile)
    }
}
