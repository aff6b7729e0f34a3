//! The parameters of codec 2: its symbols (docs/format.md, "The cascade").

use crate::geometry::{HEADER_BYTES, LEVEL_SYMBOLS, MAX_LEVELS, MAX_SYMBOLS, SYMBOL_SECTION_BYTES};
use crate::{Dtype, FormatError, FormatErrorKind as Kind, Result};

/// Parameters of codec 2, valid for the dtype they were made for: three exponents for each level of 2-bit codes.
///
/// They change the size of a stream, never its correctness.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Cascade {
    levels: u8,
    /// Zero beyond those of the levels.
    symbols: [u8; MAX_SYMBOLS],
}

impl Cascade {
    /// A cascade that codes these exponents: those of the first level, which should be the most frequent ones, first.
    ///
    /// # Errors
    ///
    /// [`Kind::SymbolCount`] unless there are 3, 6, 9, 12 or 15 symbols, [`Kind::SymbolRange`] unless each is below 2^E,
    /// [`Kind::SymbolTwice`] if one occurs twice, and [`Kind::OpaqueCoded`] for opaque bytes, which have no exponents.
    pub fn new(dtype: Dtype, symbols: &[u8]) -> Result<Self> {
        if dtype == Dtype::Opaque {
            return Err(FormatError::new(Kind::OpaqueCoded, 11));
        }
        let (levels, rest) = (symbols.len() / LEVEL_SYMBOLS, symbols.len() % LEVEL_SYMBOLS);
        let [levels, ..] = match levels {
            1..=MAX_LEVELS if rest == 0 => levels.to_le_bytes(),
            _ => return Err(FormatError::new(Kind::SymbolCount { found: symbols.len() as u64 }, 12)),
        };
        for (index, &symbol) in symbols.iter().enumerate() {
            let at = HEADER_BYTES + index;
            if symbol > dtype.exponent_mask() {
                return Err(FormatError::at(Kind::SymbolRange { found: symbol, largest: dtype.exponent_mask() }, at));
            }
            if symbols[..index].contains(&symbol) {
                return Err(FormatError::at(Kind::SymbolTwice { found: symbol }, at));
            }
        }
        let mut own = [0; MAX_SYMBOLS];
        own[..symbols.len()].copy_from_slice(symbols);
        Ok(Self { levels, symbols: own })
    }

    /// A cascade of some levels whose symbols are still to be read.
    pub(crate) fn of_levels(dtype: Dtype, levels: u8) -> Result<Self> {
        if dtype == Dtype::Opaque {
            return Err(FormatError::new(Kind::OpaqueCoded, 11));
        }
        if levels == 0 || usize::from(levels) > MAX_LEVELS {
            return Err(FormatError::new(Kind::Levels { found: levels }, 12));
        }
        Ok(Self { levels, symbols: [0; _] })
    }

    /// The cascade with the same levels whose symbols a codec's own section holds.
    pub(crate) fn with_section(self, dtype: Dtype, section: &[u8]) -> Result<Self> {
        let (symbols, padding) = section.split_at(usize::from(self.levels) * LEVEL_SYMBOLS);
        let cascade = Self::new(dtype, symbols)?;
        match padding.iter().position(|&byte| byte != 0) {
            None => Ok(cascade),
            Some(at) => Err(FormatError::at(Kind::Padding { section: "symbols" }, HEADER_BYTES + symbols.len() + at)),
        }
    }

    /// The codec's own section: the symbols, then zeros.
    #[must_use]
    pub fn to_section(self) -> [u8; SYMBOL_SECTION_BYTES] {
        let mut section = [0; SYMBOL_SECTION_BYTES];
        section[..MAX_SYMBOLS].copy_from_slice(&self.symbols);
        section
    }

    /// Levels of codes, 1 to 5.
    #[must_use]
    pub const fn levels(self) -> u8 {
        self.levels
    }

    /// The symbols, three a level, in order of their ranks.
    #[must_use]
    pub fn symbols(&self) -> &[u8] {
        &self.symbols[..usize::from(self.raw_rank())]
    }

    /// The rank of an exponent that is no symbol and is stored raw: the number of symbols.
    #[must_use]
    pub const fn raw_rank(self) -> u8 {
        // LEVEL_SYMBOLS is a size, ranks are bytes.
        3 * self.levels
    }

    /// The rank of every exponent: its place among the symbols, or [`raw_rank`](Self::raw_rank).
    #[must_use]
    pub fn ranks(&self) -> [u8; 256] {
        let mut ranks = [self.raw_rank(); 256];
        for (rank, &symbol) in (0..).zip(self.symbols()) {
            ranks[usize::from(symbol)] = rank;
        }
        ranks
    }
}

const _: () = assert!(LEVEL_SYMBOLS == 3 && SYMBOL_SECTION_BYTES >= MAX_SYMBOLS);
