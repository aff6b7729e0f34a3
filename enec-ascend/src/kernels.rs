//! The kernels as they are loaded: an object that CANN compiled, from a file or embedded.

use std::borrow::Cow;
use std::env;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

/// Environment variable: the path of a kernel object, used instead of the embedded one.
pub const KERNELS_VARIABLE: &str = "ENEC_ASCEND_KERNELS";

/// The object that `build.rs` compiled.
#[cfg(enec_ascend_object)]
const EMBEDDED: Option<&[u8]> = Some(include_bytes!(concat!(env!("OUT_DIR"), "/enec_kernels.o")));
/// No object: the feature `cann-build` is off.
#[cfg(not(enec_ascend_object))]
const EMBEDDED: Option<&[u8]> = None;

macro_rules! sources {
    ($($name:literal)*) => {
        /// The kernels' sources by file name, to compile them where CANN is (docs/ascend.md).
        pub const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../kernels/", $name)))),*];
    };
}

sources! {
    "abi.h" "analyse.h" "blocks.h" "decode.h" "elements.h" "encode.h" "kernels.cpp" "lanes.h" "packing.h" "platform.h" "rows.h" "words32.h"
    "work.h"
}

/// Where the kernels come from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum KernelSource {
    /// A kernel object in a file.
    File(PathBuf),
    /// A kernel object's bytes.
    Object(Cow<'static, [u8]>),
}

impl KernelSource {
    /// The object that [`KERNELS_VARIABLE`] names, otherwise the embedded one, if there is one.
    #[must_use]
    pub fn find() -> Option<Self> {
        match env::var_os(KERNELS_VARIABLE) {
            Some(path) => Some(Self::File(path.into())),
            None => EMBEDDED.map(|object| Self::Object(object.into())),
        }
    }

    /// Hands the object to `load` as a file with an absolute path. Bytes go to a file that only this user can read, and that is gone afterwards.
    ///
    /// # Errors
    ///
    /// A sentence if there is no such file, or none can be written; otherwise what `load` returns.
    pub(crate) fn with_file<T>(&self, load: impl FnOnce(&Path) -> Result<T, String>) -> Result<T, String> {
        match self {
            Self::File(path) => {
                let absolute = fs::canonicalize(path)
                    .map_err(|error| format!("kernel object `{}` cannot be read: {error}", path.display()))?;
                load(&absolute)
            }
            Self::Object(bytes) => {
                let failed = |error| format!("cannot write the kernel object to a temporary file: {error}");
                let mut file =
                    tempfile::Builder::new().prefix("enec-kernels-").suffix(".o").tempfile().map_err(failed)?;
                file.write_all(bytes).and_then(|()| file.flush()).map_err(failed)?;
                load(&std::path::absolute(file.path()).map_err(failed)?)
            }
        }
    }
}

/// What to do without an object.
pub(crate) fn absent() -> String {
    format!(
        "this build has no kernels for it: build with the feature `cann-build` on a machine with the CANN toolkit, or compile \
         `enec-ascend/kernels` there and name the object with `{KERNELS_VARIABLE}`"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_become_a_private_file_that_is_gone_afterwards() {
        let source = KernelSource::Object(b"object".as_slice().into());
        let path = source.with_file(|path| {
            assert!(path.is_absolute());
            assert_eq!(fs::read(path).unwrap(), b"object");
            #[cfg(unix)]
            {
                use std::os::unix::fs::PermissionsExt;
                assert_eq!(fs::metadata(path).unwrap().permissions().mode() & 0o777, 0o600);
            }
            Ok(path.to_owned())
        });
        assert!(!path.unwrap().exists());
    }

    #[test]
    fn all_sources_are_embedded() {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("kernels");
        let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
        let mut files: Vec<String> = entries.collect();
        files.sort();
        let embedded: Vec<&str> = SOURCES.iter().map(|(name, _)| *name).collect();
        assert_eq!(embedded, files);
    }

    #[test]
    fn a_file_keeps_its_path_but_an_absolute_one() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let path = KernelSource::File(file.path().into()).with_file(|path| Ok(path.to_owned())).unwrap();
        assert_eq!(path, fs::canonicalize(file.path()).unwrap());
        let missing = KernelSource::File("no such object.o".into()).with_file(|_| Ok(())).unwrap_err();
        assert!(missing.contains("`no such object.o`"), "{missing}");
    }
}
