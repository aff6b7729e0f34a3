//! Checkpoint folders: which files are compressed and which are copied.
//!
//! A folder in Hugging Face layout holds one or more safetensors files, an index that says which tensor lies in which of them, and
//! files that are none of our business. Symbolic links are followed, as a snapshot in the hub's cache consists of links.

use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::fs::{self, Metadata};
use std::path::{Component, Path, PathBuf};

use serde::Deserialize;

use super::header::UniqueMap;
use super::{IoContext, fault, foreign, input_metadata};
use crate::{Error, Result};

const SAFETENSORS: &str = "safetensors";
const INDEX: &str = ".index.json";

/// The files below a folder, symbolic links followed.
#[derive(Debug)]
pub(crate) struct Folder {
    /// Its path.
    pub(crate) path: PathBuf,
    /// Mode and times of the folder.
    pub(crate) metadata: Metadata,
    /// Folders below it, each after the one that it lies in.
    pub(crate) folders: Vec<Entry>,
    /// Safetensors files.
    pub(crate) shards: Vec<Entry>,
    /// All other files.
    pub(crate) others: Vec<Entry>,
}

/// A file or folder below a folder.
#[derive(Debug)]
pub(crate) struct Entry {
    /// Its path below the folder.
    pub(crate) relative: PathBuf,
    /// Its path.
    pub(crate) path: PathBuf,
    /// Mode, times and length of what the path leads to.
    pub(crate) metadata: Metadata,
}

impl Folder {
    /// Lists a folder, in the order of the names, and checks its indices.
    ///
    /// # Errors
    ///
    /// [`Error::File`] for a loop of links, a link that leads nowhere, a file that is neither file nor folder, an index that names
    /// a file outside the folder or one that is missing, and for a folder without safetensors files.
    pub(crate) fn list(path: &Path) -> Result<Self> {
        let metadata = input_metadata(path)?;
        let mut folder =
            Self { path: path.to_owned(), metadata, folders: Vec::new(), shards: Vec::new(), others: Vec::new() };
        folder.walk(Path::new(""), &mut Vec::new())?;
        if folder.shards.is_empty() {
            return Err(folder.without_shards());
        }
        folder.check_indices()?;
        Ok(folder)
    }

    /// Adds what lies in the subfolder `relative`; `above` are the real paths of the folders that it lies in.
    fn walk(&mut self, relative: &Path, above: &mut Vec<PathBuf>) -> Result<()> {
        let path = self.path.join(relative);
        let real = path.canonicalize().cannot("read", &path)?;
        if above.contains(&real) {
            let message = format!("a symbolic link leads back to `{}`: the folder has no end", real.display());
            return Err(fault(&path, message, Some("remove the link")));
        }
        above.push(real);
        let names: Result<BTreeSet<_>> =
            path.read_dir().cannot("list", &path)?.map(|entry| Ok(entry.cannot("list", &path)?.file_name())).collect();
        for name in names? {
            let (relative, path) = (relative.join(&name), path.join(&name));
            let metadata = path.metadata().map_err(|error| unreadable(&path, error))?;
            let entry = Entry { relative, path, metadata };
            if entry.metadata.is_dir() {
                let below = entry.relative.clone();
                self.folders.push(entry);
                self.walk(&below, above)?;
            } else if !entry.metadata.is_file() {
                return Err(fault(&entry.path, "neither a file nor a folder", Some("move it out of the checkpoint")));
            } else if entry.path.extension() == Some(OsStr::new(SAFETENSORS)) {
                self.shards.push(entry);
            } else {
                self.others.push(entry);
            }
        }
        above.pop();
        Ok(())
    }

    fn without_shards(&self) -> Error {
        let other_weights = self.others.iter().find_map(|entry| foreign::refuse(&entry.path, &[]));
        other_weights.unwrap_or_else(|| {
            let hint = "name a `.safetensors` file or a folder that holds some";
            fault(&self.path, "no `.safetensors` file in this folder", Some(hint))
        })
    }

    fn check_indices(&self) -> Result<()> {
        for entry in &self.others {
            if entry.path.file_name().is_some_and(|name| name.as_encoded_bytes().ends_with(INDEX.as_bytes())) {
                let folder = entry.relative.parent().unwrap_or(Path::new(""));
                for shard in read_index(&entry.path)? {
                    self.check_indexed(&entry.path, folder, &shard)?;
                }
            }
        }
        Ok(())
    }

    /// Checks one file name out of an index that lies in `folder`.
    fn check_indexed(&self, index: &Path, folder: &Path, name: &str) -> Result<()> {
        let inside = !name.is_empty() && Path::new(name).components().all(|part| matches!(part, Component::Normal(_)));
        if !inside {
            let message = format!("the index names `{name}`, which leaves the folder");
            return Err(fault(index, message, Some("do not use this checkpoint unless you know why")));
        }
        // An index of files in another format may stay behind when only the safetensors files are fetched.
        let is_shard = Path::new(name).extension() == Some(OsStr::new(SAFETENSORS));
        let shard = folder.join(name);
        if is_shard && !self.shards.iter().any(|entry| entry.relative == shard) {
            let message = format!("the index names `{name}`, which is missing");
            return Err(fault(index, message, Some("fetch the missing file")));
        }
        Ok(())
    }
}

fn unreadable(path: &Path, error: std::io::Error) -> Error {
    let is_link = path.symlink_metadata().is_ok_and(|metadata| metadata.is_symlink());
    match fs::read_link(path) {
        Ok(link) if is_link => {
            let message = format!("a symbolic link to `{}`, which cannot be read: {error}", link.display());
            fault(path, message, Some("fetch the file that it leads to, or remove the link"))
        }
        _ => Error::Io { action: "read", path: path.to_owned(), source: error },
    }
}

/// The part of an index that is checked.
#[derive(Deserialize)]
struct Index {
    weight_map: UniqueMap,
}

/// The files that an index names; none for a file that only looks like an index by its name.
fn read_index(path: &Path) -> Result<BTreeSet<String>> {
    let text = fs::read(path).cannot("read", path)?;
    match serde_json::from_slice::<Index>(&text) {
        Ok(index) => Ok(index.weight_map.0.into_values().collect()),
        Err(error) if path.as_os_str().as_encoded_bytes().ends_with(b".safetensors.index.json") => {
            Err(fault(path, format_args!("not an index of a checkpoint: {error}"), None))
        }
        Err(_) => Ok(BTreeSet::new()),
    }
}
