//! The golden streams of `testdata/v1`, frozen with the format, and the list that says what each of them is.

use std::fs;
use std::path::{Path, PathBuf};

use enec_format::{Cascade, Coding, Dtype, EncodePlan, FormatError, TwoWindows, reference};
use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

use crate::inputs::Input;
use crate::{Result, checkout, ensure};

/// Where the golden streams lie.
#[must_use]
pub fn folder() -> PathBuf {
    checkout().join("testdata/v1")
}

/// One golden stream, described by what it was made from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Golden {
    /// Name, and name of the file without its `.enec`.
    pub name: String,
    /// The structural case that it covers.
    pub covers: String,
    /// Safetensors name of the element type, or `OPAQUE`.
    pub dtype: String,
    /// Elements.
    pub elements: usize,
    /// The builder of the elements.
    pub input: Input,
    /// Common base and common width that were asked for; absent where another codec was asked for.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub windows: Option<(u8, u8)>,
    /// Symbols of the cascade that was asked for, in order of their ranks.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub symbols: Option<Vec<u8>>,
    /// Whether the stored rule was left out.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub forced: bool,
    /// SHA-256 of the elements.
    #[serde(default)]
    pub input_sha256: String,
    /// SHA-256 of the stream.
    #[serde(default)]
    pub stream_sha256: String,
}

/// The file `manifest.json`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Manifest {
    /// Version of the stream format.
    pub version: u16,
    /// The streams.
    pub streams: Vec<Golden>,
}

impl Manifest {
    /// Reads the manifest of `testdata/v1`.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is no manifest.
    pub fn read() -> Result<Self> {
        Self::read_from(&folder())
    }

    fn read_from(folder: &Path) -> Result<Self> {
        let path = folder.join("manifest.json");
        let text = fs::read_to_string(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        Ok(serde_json::from_str(&text).map_err(|error| format!("{}: {error}", path.display()))?)
    }

    /// Encodes the streams and writes those that a folder lacks, and the manifest with their hashes. Returns how many were written.
    ///
    /// # Errors
    ///
    /// If a stream there, or its entry in the manifest there, is another or would go. Nothing is written then.
    pub fn write(mut self, folder: &Path) -> Result<usize> {
        let mut missing = Vec::new();
        for golden in &mut self.streams {
            let stream = golden.encoded()?;
            golden.input_sha256 = sha256(&golden.elements());
            golden.stream_sha256 = sha256(&stream);
            let path = folder.join(golden.file_name());
            match fs::read(&path) {
                Ok(existing) if existing == stream => {}
                Ok(_) => return Err(format!("{} is frozen and differs", path.display()).into()),
                Err(_) => missing.push((path, stream)),
            }
        }
        if let Ok(frozen) = Self::read_from(folder) {
            for golden in &frozen.streams {
                let is_kept = self.streams.contains(golden);
                ensure!(is_kept, "golden stream `{}` is frozen; its entry may not change or go", golden.name);
            }
        }
        fs::create_dir_all(folder)?;
        for (path, stream) in &missing {
            fs::write(path, stream)?;
        }
        fs::write(folder.join("manifest.json"), serde_json::to_string_pretty(&self)? + "\n")?;
        Ok(missing.len())
    }
}

impl Golden {
    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        Dtype::from_name(&self.dtype).unwrap_or(Dtype::Opaque)
    }

    /// The elements.
    #[must_use]
    pub fn elements(&self) -> Vec<u8> {
        self.input.bytes(self.dtype(), self.elements)
    }

    /// The plan by which it was encoded.
    ///
    /// # Errors
    ///
    /// If the parameters are not valid for the dtype.
    pub fn plan(&self) -> Result<EncodePlan, FormatError> {
        let dtype = self.dtype();
        let coding = match (self.windows, &self.symbols) {
            (Some((base, width)), _) => TwoWindows::new(dtype, base, width)?.into(),
            (None, Some(symbols)) => Cascade::new(dtype, symbols)?.into(),
            (None, None) => Coding::Stored,
        };
        match self.forced {
            true => EncodePlan::window(dtype, coding, self.elements, 0),
            false => EncodePlan::new(dtype, coding, self.elements),
        }
    }

    /// The sealed stream as the reference encodes it now.
    ///
    /// # Errors
    ///
    /// As [`plan`](Self::plan).
    pub fn encoded(&self) -> Result<Vec<u8>, FormatError> {
        reference::encode_plan(&self.plan()?, &self.elements())
    }

    /// The name of its file.
    #[must_use]
    pub fn file_name(&self) -> String {
        format!("{}.enec", self.name)
    }

    /// The frozen stream, once its hash and that of its elements have been checked against the manifest.
    ///
    /// # Errors
    ///
    /// If it cannot be read, or a hash differs.
    pub fn frozen(&self) -> Result<Vec<u8>> {
        let path = folder().join(self.file_name());
        let bytes = fs::read(&path).map_err(|error| format!("cannot read {}: {error}", path.display()))?;
        ensure!(sha256(&bytes) == self.stream_sha256, "{}: not the file that the manifest names", path.display());
        ensure!(sha256(&self.elements()) == self.input_sha256, "{}: its input builder has changed", self.name);
        Ok(bytes)
    }
}

/// SHA-256 as lower-case hex digits.
#[must_use]
pub fn sha256(bytes: &[u8]) -> String {
    Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
}
