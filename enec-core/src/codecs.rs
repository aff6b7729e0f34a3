//! Codecs: which of them a backend has, and which one a caller wants.

use std::fmt;
use std::str::FromStr;

use enec_format::{Coding, TwoWindows};

use crate::Error;

/// The codecs that a backend encodes and those that it decodes. Storing bytes as they are, codec 0, is always among them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Codecs {
    /// One bit for each codec, by its number in the stream's header.
    encoded: u8,
    decoded: u8,
}

const STORED: u8 = 1 << 0;
const ENEC: u8 = 1 << 1;
const CASCADE: u8 = 1 << 2;

impl Codecs {
    /// Codec 1, the two windows, both ways: what every backend has.
    pub const ENEC: Self = Self { encoded: STORED | ENEC, decoded: STORED | ENEC };
    /// All codecs, both ways.
    pub const ALL: Self = Self { encoded: STORED | ENEC | CASCADE, decoded: STORED | ENEC | CASCADE };

    /// These, and codec 2 is decoded.
    #[must_use]
    pub const fn decoding_cascade(self) -> Self {
        Self { decoded: self.decoded | CASCADE, ..self }
    }

    /// These, and codec 2 is encoded.
    #[must_use]
    pub const fn encoding_cascade(self) -> Self {
        Self { encoded: self.encoded | CASCADE, ..self }
    }

    /// Whether tensors are encoded by this codec.
    #[must_use]
    pub const fn encodes(self, coding: Coding) -> bool {
        self.encoded >> coding.codec() & 1 == 1
    }

    /// Whether streams of this codec are decoded.
    #[must_use]
    pub const fn decodes(self, coding: Coding) -> bool {
        self.decoded >> coding.codec() & 1 == 1
    }

    /// Whether codec 2 is encoded.
    #[must_use]
    pub const fn encodes_cascade(self) -> bool {
        self.encoded & CASCADE != 0
    }

    /// Whether codec 2 is decoded.
    #[must_use]
    pub const fn decodes_cascade(self) -> bool {
        self.decoded & CASCADE != 0
    }
}

/// Which codec tensors are encoded by.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub enum CodecChoice {
    /// For each tensor the one that makes it smaller, by a sample of its elements.
    #[default]
    Auto,
    /// Codec 1, the paper's method with two windows: fastest, and what every backend has.
    Enec,
    /// Codec 2, the cascade: smallest for most weights.
    Cascade,
}

impl CodecChoice {
    /// All choices.
    pub const ALL: [CodecChoice; 3] = [CodecChoice::Auto, CodecChoice::Enec, CodecChoice::Cascade];

    /// The name as users type it: `auto`, `enec` or `cascade`.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            CodecChoice::Auto => "auto",
            CodecChoice::Enec => "enec",
            CodecChoice::Cascade => "cascade",
        }
    }
}

impl fmt::Display for CodecChoice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for CodecChoice {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Self::ALL
            .into_iter()
            .find(|choice| choice.name() == name)
            .ok_or_else(|| Error::Argument(format!("codec `{name}`: expected `auto`, `enec` or `cascade`")))
    }
}

/// The parameters of codec 1, `None` where bytes are stored: what a backend asks of a job's coding that has kernels for no other codec.
///
/// # Errors
///
/// [`Error::Argument`] for any other codec. Batches refuse such jobs before a backend sees them, going by [`DeviceInfo::codecs`](crate::DeviceInfo::codecs).
pub fn two_windows_only(backend: &str, coding: Coding) -> Result<Option<TwoWindows>, Error> {
    match coding {
        Coding::Stored => Ok(None),
        Coding::TwoWindows(windows) => Ok(Some(windows)),
        _ => Err(Error::Argument(format!("`{backend}` has no kernels for codec `{}`", codec_name(coding)))),
    }
}

/// The name of a stream's codec, as [`CodecChoice`] and users have it.
pub(crate) fn codec_name(coding: Coding) -> &'static str {
    match coding {
        Coding::TwoWindows(_) => CodecChoice::Enec.name(),
        Coding::Cascade(_) => CodecChoice::Cascade.name(),
        _ => "stored",
    }
}

#[cfg(test)]
mod tests {
    use enec_format::{Cascade, Dtype};

    use super::*;

    #[test]
    fn codecs_say_what_they_have() {
        let windows = Coding::from(TwoWindows::new(Dtype::Bf16, 127, 3).unwrap());
        let cascade = Coding::from(Cascade::new(Dtype::Bf16, &[3, 2, 1]).unwrap());
        for (codecs, encodes, decodes) in [
            (Codecs::ENEC, false, false),
            (Codecs::ENEC.decoding_cascade(), false, true),
            (Codecs::ENEC.encoding_cascade(), true, false),
            (Codecs::ALL, true, true),
        ] {
            for coding in [Coding::Stored, windows] {
                assert!(codecs.encodes(coding) && codecs.decodes(coding));
            }
            assert_eq!((codecs.encodes(cascade), codecs.decodes(cascade)), (encodes, decodes));
            assert_eq!((codecs.encodes_cascade(), codecs.decodes_cascade()), (encodes, decodes));
        }
        assert_eq!(Codecs::ENEC.decoding_cascade().encoding_cascade(), Codecs::ALL);
    }

    #[test]
    fn choices_have_names() {
        for choice in CodecChoice::ALL {
            assert_eq!(choice.name().parse::<CodecChoice>().unwrap(), choice);
        }
        assert!("Auto".parse::<CodecChoice>().unwrap_err().to_string().contains("`cascade`"));
    }
}
