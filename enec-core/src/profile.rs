//! Profiles: parameters made from one model and reused on others, as in section VI-E of the paper.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use enec_format::{Cascade, Dtype, TwoWindows};
use serde::{Deserialize, Serialize};

use crate::search::choice::Known;
use crate::search::{search_cascade_sampled, search_sampled};
use crate::{Error, Result};

/// Blocks sampled of all tensors of one dtype: sixteen times those of one tensor, as the tensors of a model differ.
const PROFILE_BLOCKS: usize = 16 * crate::search::SAMPLE_BLOCKS;

/// Parameters per dtype: common base and width of the two windows, symbols of the cascade, or both. As a file it is a small JSON object:
///
/// ```json
/// {"enec_profile": 1, "BF16": {"b": 124, "m": 3, "symbols": [123, 122, 124, 121, 120, 119]}}
/// ```
///
/// What a profile does not have of a dtype comes from the tensor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Profile {
    known: BTreeMap<Dtype, Known>,
}

/// Any other key is taken for a dtype, and refused as one.
#[derive(Serialize, Deserialize)]
struct ProfileFile {
    enec_profile: u32,
    #[serde(flatten)]
    dtypes: BTreeMap<String, ParametersFile>,
}

#[derive(Default, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct ParametersFile {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    b: Option<u8>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    m: Option<u8>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    symbols: Vec<u8>,
}

impl Profile {
    /// A profile without any parameters.
    #[must_use]
    pub fn new() -> Self {
        Self::default()
    }

    /// The same profile with these two windows for tensors of `dtype`.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if they are not valid for the dtype: common base below 2^E, common width at most E.
    pub fn with(mut self, dtype: Dtype, common_base: u8, common_width: u8) -> Result<Self> {
        self.known.entry(dtype).or_default().windows = Some(TwoWindows::new(dtype, common_base, common_width)?);
        Ok(self)
    }

    /// The same profile with a cascade of these symbols for tensors of `dtype`.
    ///
    /// # Errors
    ///
    /// [`Error::Format`] if they are not valid for the dtype: 3, 6, 9, 12 or 15 different ones below 2^E.
    pub fn with_cascade(mut self, dtype: Dtype, symbols: &[u8]) -> Result<Self> {
        self.known.entry(dtype).or_default().cascade = Some(Cascade::new(dtype, symbols)?);
        Ok(self)
    }

    /// The best single parameters of both codecs per dtype for these tensors: what to reuse on similar models. Opaque ones are ignored.
    #[must_use]
    pub fn search(tensors: &[(Dtype, &[u8])]) -> Self {
        let mut profile = Self::new();
        for dtype in Dtype::FLOATS {
            let of_dtype: Vec<&[u8]> =
                tensors.iter().filter(|(other, _)| *other == dtype).map(|&(_, elements)| elements).collect();
            if !of_dtype.is_empty() {
                let known = Known {
                    windows: Some(search_sampled(dtype, &of_dtype, PROFILE_BLOCKS)),
                    cascade: Some(search_cascade_sampled(dtype, &of_dtype, PROFILE_BLOCKS)),
                };
                profile.known.insert(dtype, known);
            }
        }
        profile
    }

    /// The two windows for tensors of `dtype`, if the profile has them.
    #[must_use]
    pub fn windows(&self, dtype: Dtype) -> Option<TwoWindows> {
        self.known(dtype).windows
    }

    /// The cascade for tensors of `dtype`, if the profile has one.
    #[must_use]
    pub fn cascade(&self, dtype: Dtype) -> Option<Cascade> {
        self.known(dtype).cascade
    }

    pub(crate) fn known(&self, dtype: Dtype) -> Known {
        self.known.get(&dtype).copied().unwrap_or_default()
    }

    /// Whether the profile names no dtype.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.known.is_empty()
    }

    /// The profile as JSON text.
    #[must_use]
    pub fn to_json(&self) -> String {
        let dtypes = self.known.iter().map(|(dtype, Known { windows, cascade })| {
            let parameters = ParametersFile {
                b: windows.map(TwoWindows::common_base),
                m: windows.map(TwoWindows::common_width),
                symbols: cascade.map_or_else(Vec::new, |cascade| cascade.symbols().to_vec()),
            };
            (dtype.name().to_owned(), parameters)
        });
        let file = ProfileFile { enec_profile: 1, dtypes: dtypes.collect() };
        serde_json::to_string_pretty(&file).unwrap_or_default() + "\n"
    }

    /// Reads a profile from JSON text.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`] if the text is not a profile, or one of a newer version.
    pub fn from_json(text: &str) -> Result<Self> {
        let file: ProfileFile =
            serde_json::from_str(text).map_err(|error| Error::Argument(format!("not a profile: {error}")))?;
        if file.enec_profile != 1 {
            let message = format!("profile of version {}, this program reads version 1", file.enec_profile);
            return Err(Error::Argument(message));
        }
        let mut profile = Self::new();
        for (name, ParametersFile { b, m, symbols }) in file.dtypes {
            let dtype = Dtype::from_name(&name).ok_or_else(|| {
                Error::Argument(format!("profile names dtype `{name}`, expected `BF16`, `F16` or `F32`"))
            })?;
            let invalid = |error: Error| match error {
                Error::Format(error) => Error::Argument(format!("profile: {name}: {}", error.kind())),
                other => other,
            };
            profile = match (b, m) {
                (Some(b), Some(m)) => profile.with(dtype, b, m).map_err(invalid)?,
                (None, None) if !symbols.is_empty() => profile,
                _ => {
                    let message = format!("profile: {name}: expected `b` and `m`, `symbols`, or all three");
                    return Err(Error::Argument(message));
                }
            };
            if !symbols.is_empty() {
                profile = profile.with_cascade(dtype, &symbols).map_err(invalid)?;
            }
        }
        Ok(profile)
    }

    /// Reads a profile from a file.
    ///
    /// # Errors
    ///
    /// [`Error::Io`] if it cannot be read, [`Error::File`] if it is not a profile.
    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|source| Error::Io {
            action: "read the profile",
            path: path.to_owned(),
            source,
        })?;
        Self::from_json(&text).map_err(|error| Error::File {
            path: path.to_owned(),
            message: error.to_string(),
            hint: Some("make a profile with `--make-profile FILE`".into()),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn json_round_trip() {
        let profile = Profile::new().with(Dtype::Bf16, 124, 3).unwrap().with(Dtype::F16, 14, 2).unwrap();
        assert_eq!(Profile::from_json(&profile.to_json()).unwrap(), profile);
        let both = profile.clone().with_cascade(Dtype::Bf16, &[124, 123, 0]).unwrap();
        let both = both.with_cascade(Dtype::F32, &[124, 123, 0, 3, 2, 1]).unwrap();
        assert_eq!(Profile::from_json(&both.to_json()).unwrap(), both);
        assert_eq!(both.cascade(Dtype::F32).unwrap().levels(), 2);
        assert_eq!((both.windows(Dtype::F32), both.cascade(Dtype::F16)), (None, None));
        assert_eq!(profile.windows(Dtype::F32), None);
    }

    #[test]
    fn search_takes_one_pair_per_dtype() {
        let ones = 0x3F80_u16.to_le_bytes().repeat(2048);
        let twos = 0x4000_u16.to_le_bytes().repeat(2048);
        let profile = Profile::search(&[(Dtype::Bf16, &ones), (Dtype::Opaque, &ones), (Dtype::Bf16, &twos)]);
        let windows = profile.windows(Dtype::Bf16).unwrap();
        assert_eq!((windows.common_base(), windows.common_width()), (128, 0));
        assert_eq!(profile.cascade(Dtype::Bf16).unwrap().symbols(), [127, 128, 0]);
        assert_eq!(profile.windows(Dtype::F16), None);
    }

    #[test]
    fn bad_profiles_are_refused() {
        for (text, expected) in [
            ("", "not a profile"),
            ("{}", "not a profile"),
            (r#"{"enec_profile": 2}"#, "version 2"),
            (r#"{"enec_profile": 1, "F64": {"b": 1, "m": 1}}"#, "`F64`"),
            (r#"{"enec_profile": 1, "F16": {"b": 32, "m": 1}}"#, "common base 32"),
            (r#"{"enec_profile": 1, "BF16": {"b": 32, "m": 9}}"#, "common width 9"),
            (r#"{"enec_profile": 1, "BF16": {"b": 300, "m": 1}}"#, "not a profile"),
            (r#"{"enec_profile": 1, "BF16": {"b": 3, "m": 1, "n": 4}}"#, "not a profile"),
            (r#"{"enec_profile": 1, "BF16": {"b": 3}}"#, "`symbols`"),
            (r#"{"enec_profile": 1, "BF16": {}}"#, "`symbols`"),
            (r#"{"enec_profile": 1, "BF16": {"symbols": [1, 2]}}"#, "2 symbols"),
            (r#"{"enec_profile": 1, "BF16": {"symbols": [1, 2, 2]}}"#, "twice"),
            (r#"{"enec_profile": 1, "F16": {"symbols": [1, 2, 32]}}"#, "symbol 32"),
        ] {
            let error = Profile::from_json(text).unwrap_err().to_string();
            assert!(error.contains(expected), "{text}: {error}");
        }
    }
}
