//! The files to measure on.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// The safetensors files among `paths` and in the folders among them, in order of their names within each folder.
pub(crate) fn files(paths: &[PathBuf]) -> Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if !path.is_dir() {
            files.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        for entry in fs::read_dir(path).map_err(|error| format!("{}: {error}", path.display()))? {
            let path = entry?.path();
            if path.extension().is_some_and(|extension| extension == "safetensors") {
                found.push(path);
            }
        }
        if found.is_empty() {
            return Err(format!("{}: no safetensors file in this folder", path.display()).into());
        }
        found.sort();
        files.append(&mut found);
    }
    Ok(files)
}

/// The name of a file without its folder and extension.
pub(crate) fn short_name(path: &Path) -> String {
    path.file_stem().unwrap_or(path.as_os_str()).to_string_lossy().into_owned()
}
