//! Places: a symbol's level and code in four bits, the same for any number of levels.
//!
//! | place, two bits and two bits | symbol |
//! |---|---|
//! | 0 and code | of level 1 |
//! | 1 and code | of level 2 |
//! | 2 and code | of level 3 |
//! | 3 and code | of level 4 |
//! | code and 3 | of level 5 |
//! | 3 and 3 | none: the exponent is stored raw |
//!
//! So 16 bytes in a register turn places into exponents, and an element that escapes gets both halves of its place from the next level by
//! one move each, however many levels there are.

/// Codes of a level that stand for a symbol.
const CODES: usize = 3;

/// Most levels.
pub(super) const LEVELS: usize = 5;

/// The place of raw exponents.
pub(super) const RAW: u8 = 15;

/// Symbols of the levels before the last one that has a column of its own.
const COLUMNS: usize = (LEVELS - 1) * CODES;

/// The place of the symbol of a rank.
const fn place(rank: usize) -> usize {
    if rank < COLUMNS { rank / CODES * 4 + rank % CODES } else { (rank - COLUMNS) * 4 + 3 }
}

/// The upper half of the places of level `level`, for those that have one, in every code of a word.
#[inline(always)]
pub(super) const fn level_word(level: usize) -> u64 {
    0x5555_5555_5555_5555 * (level as u64 - 1)
}

/// Exponents by place.
#[inline(always)]
pub(super) fn exponents(symbols: &[u8]) -> [u8; 16] {
    let mut exponents = [0; 16];
    for (rank, &symbol) in symbols.iter().enumerate().take(LEVELS * CODES) {
        exponents[place(rank)] = symbol;
    }
    exponents
}

/// Places by exponent.
#[derive(Debug, Clone)]
pub(in crate::kernels) struct PlaceTable {
    /// The place of every exponent, [`RAW`] for those that are no symbols.
    pub(in crate::kernels) places: [u8; 256],
    /// For the upper halves of exponents that symbols have: that half, and the complements of the places by lower half; 0 for none.
    rows: [(u8, [u8; 16]); LEVELS * CODES],
    used: usize,
}

impl PlaceTable {
    /// The table of these symbols.
    pub(super) fn new(symbols: &[u8]) -> Self {
        let mut table = Self { places: [RAW; 256], rows: [(0, [0; 16]); _], used: 0 };
        for (rank, &symbol) in symbols.iter().enumerate().take(LEVELS * CODES) {
            let place = place(rank).to_le_bytes()[0];
            table.places[usize::from(symbol)] = place;
            let (upper, lower) = (symbol & 0xF0, usize::from(symbol & 0x0F));
            let known = table.rows[..table.used].iter().position(|row| row.0 == upper);
            let row = known.unwrap_or_else(|| {
                table.rows[table.used].0 = upper;
                table.used += 1;
                table.used - 1
            });
            table.rows[row].1[lower] = place ^ RAW;
        }
        table
    }

    /// The rows that have a symbol: the upper half of their exponents, and by the lower half the place's complement, 0 where there is none.
    #[inline(always)]
    pub(in crate::kernels) fn rows(&self) -> impl Iterator<Item = (u8, &[u8; 16])> {
        self.rows[..self.used].iter().map(|(upper, complements)| (*upper, complements))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_rank_has_a_place_of_its_own_and_none_is_raw() {
        let mut places: Vec<_> = (0..LEVELS * CODES).map(place).collect();
        places.sort_unstable();
        assert_eq!(places, (0..15).collect::<Vec<_>>());
    }

    #[test]
    fn the_table_undoes_the_list_of_exponents() {
        let symbols = [0, 127, 126, 128, 3, 255, 16, 15, 17, 1, 2, 130, 140, 111, 112];
        let (exponents, table) = (exponents(&symbols), PlaceTable::new(&symbols));
        for exponent in 0..=u8::MAX {
            let place = table.places[usize::from(exponent)];
            assert_eq!(place == RAW, !symbols.contains(&exponent));
            if place != RAW {
                assert_eq!(exponents[usize::from(place)], exponent);
            }
            let complement = table.rows().find(|row| row.0 == exponent & 0xF0);
            let complement = complement.map_or(0, |row| row.1[usize::from(exponent & 0x0F)]);
            assert_eq!(complement ^ RAW, place);
        }
        assert_eq!(table.rows().count(), 6);
    }
}
