//! How the elements of a stream are coded: the codec and its parameters.

use crate::{Cascade, Dtype, FormatError, FormatErrorKind, Result};

/// A codec with its parameters, as the header and the codec's own section give them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Coding {
    /// Codec 0: the bytes verbatim.
    Stored,
    /// Codec 1: a common window per tensor and a wide window per block.
    TwoWindows(TwoWindows),
    /// Codec 2: levels of 2-bit codes.
    Cascade(Cascade),
}

impl Coding {
    /// The header's codec byte.
    #[must_use]
    pub const fn codec(self) -> u8 {
        match self {
            Coding::Stored => 0,
            Coding::TwoWindows(_) => 1,
            Coding::Cascade(_) => 2,
        }
    }

    /// The parameters of codec 1, if it is that one.
    #[must_use]
    pub const fn two_windows(self) -> Option<TwoWindows> {
        match self {
            Coding::TwoWindows(windows) => Some(windows),
            _ => None,
        }
    }

    /// The parameters of codec 2, if it is that one.
    #[must_use]
    pub const fn cascade(self) -> Option<Cascade> {
        match self {
            Coding::Cascade(cascade) => Some(cascade),
            _ => None,
        }
    }

    /// Whether these parameters are valid for elements of `dtype`: they know nothing of the dtype that they were made for.
    ///
    /// # Errors
    ///
    /// As [`TwoWindows::new`] and [`Cascade::new`]; storing is valid for every dtype.
    pub fn check(self, dtype: Dtype) -> Result<()> {
        match self {
            Coding::Stored => Ok(()),
            Coding::TwoWindows(windows) => {
                TwoWindows::new(dtype, windows.common_base(), windows.common_width()).map(|_| ())
            }
            Coding::Cascade(cascade) => Cascade::new(dtype, cascade.symbols()).map(|_| ()),
        }
    }
}

impl From<TwoWindows> for Coding {
    fn from(windows: TwoWindows) -> Self {
        Coding::TwoWindows(windows)
    }
}

impl From<Cascade> for Coding {
    fn from(cascade: Cascade) -> Self {
        Coding::Cascade(cascade)
    }
}

/// Parameters of codec 1, valid for the dtype they were made for: the paper's `b` and `m`.
///
/// They change the size of a stream, never its correctness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct TwoWindows {
    common_base: u8,
    common_width: u8,
}

impl TwoWindows {
    /// The common window `[common_base - 2^common_width + 1, common_base]` of exponents.
    ///
    /// # Errors
    ///
    /// [`FormatErrorKind::CommonBase`] unless `common_base < 2^E`, [`FormatErrorKind::CommonWidth`] unless
    /// `common_width <= E`, and [`FormatErrorKind::OpaqueCoded`] for opaque bytes, which have no exponents.
    pub const fn new(dtype: Dtype, common_base: u8, common_width: u8) -> Result<Self> {
        if matches!(dtype, Dtype::Opaque) {
            return Err(FormatError::new(FormatErrorKind::OpaqueCoded, 11));
        }
        if common_base > dtype.exponent_mask() {
            let kind = FormatErrorKind::CommonBase { found: common_base, largest: dtype.exponent_mask() };
            return Err(FormatError::new(kind, 12));
        }
        if common_width > dtype.exponent_bits() {
            let kind = FormatErrorKind::CommonWidth { found: common_width, largest: dtype.exponent_bits() };
            return Err(FormatError::new(kind, 13));
        }
        Ok(Self { common_base, common_width })
    }

    /// Largest exponent of the common window (the paper's `b`).
    #[must_use]
    pub const fn common_base(self) -> u8 {
        self.common_base
    }

    /// Bits per exponent in a common lane (the paper's `m`).
    #[must_use]
    pub const fn common_width(self) -> u8 {
        self.common_width
    }

    /// Whether a lane whose exponents span `smallest..=largest` is common.
    #[must_use]
    pub const fn is_common(self, smallest: u8, largest: u8) -> bool {
        largest <= self.common_base && ((self.common_base - smallest) as u16) >> self.common_width == 0
    }
}
