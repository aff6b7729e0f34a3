//! Writing a profile: checked before the work that it is made from, and never left half written.

use std::fs::File;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use enec::{Error, Profile};
use tempfile::{Builder, PersistError};

use crate::failure::Failure;

/// Where a profile is going to be written.
#[derive(Debug)]
pub(crate) struct ProfileFile {
    path: PathBuf,
    force: bool,
}

impl ProfileFile {
    /// Checks that the file may be written, beside the main output.
    ///
    /// # Errors
    ///
    /// [`Failure::Usage`] if it is the main output, if it exists and is not to be replaced or is no profile, or if there is no folder
    /// for it.
    pub(crate) fn new(path: &Path, output: &Path, force: bool) -> Result<Self, Failure> {
        let shown = path.display();
        let usage = |message: String, hint: &str| Err(Failure::Usage { message, hint: Some(hint.to_owned()) });
        if place(path) == place(output) {
            return usage(format!("profile and output are both `{shown}`"), "choose another name");
        }
        if path.symlink_metadata().is_ok() {
            if !force {
                let hint = "choose another name, or replace it with `--force`";
                return usage(format!("profile `{shown}` exists already"), hint);
            }
            // A slip in the name must not cost somebody the input.
            if Profile::read(path).is_err() {
                let hint = "choose another name, or remove it yourself";
                return usage(format!("`{shown}` exists and is no profile, so it is not replaced"), hint);
            }
        }
        if !folder(path).is_dir() {
            let message = format!("there is no folder `{}` for the profile", folder(path).display());
            return usage(message, "create it first");
        }
        Ok(Self { path: path.to_owned(), force })
    }

    /// Writes the profile.
    ///
    /// # Errors
    ///
    /// [`Failure::Library`] if the system refuses.
    pub(crate) fn write(&self, profile: &Profile) -> Result<(), Failure> {
        let failed = |source| Error::Io { action: "write", path: self.path.clone(), source };
        Ok(self.try_write(profile.to_json().as_bytes()).map_err(failed)?)
    }

    fn try_write(&self, text: &[u8]) -> io::Result<()> {
        let mut builder = Builder::new();
        // By default only the owner may read a temporary.
        #[cfg(unix)]
        builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
        let mut temporary = builder.tempfile_in(folder(&self.path))?;
        temporary.write_all(text)?;
        temporary.as_file().sync_all()?;
        let result: Result<File, PersistError> =
            if self.force { temporary.persist(&self.path) } else { temporary.persist_noclobber(&self.path) };
        result.map(drop).map_err(|error| error.error)
    }
}

fn folder(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

/// Where a file lies or would lie, if its folder exists.
fn place(path: &Path) -> Option<PathBuf> {
    Some(folder(path).canonicalize().ok()?.join(path.file_name()?))
}
