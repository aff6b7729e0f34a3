//! Moving bits of a word to the places of a mask and back: BMI2's PDEP and PEXT, or tables.

/// How bits are moved. Masks consist of whole pairs of bits, and so does what is moved.
pub(in crate::kernels) trait Bits: Copy {
    /// Moves the lowest pairs of `pairs`, in order, to the pairs that `mask` has set; zero elsewhere.
    fn spread(self, pairs: u64, mask: u64) -> u64;

    /// Moves the pairs that `mask` has set, in order, to the lowest; zero behind them.
    fn gather(self, pairs: u64, mask: u64) -> u64;
}

/// Tables of four pairs at a time: for processors without these instructions, and for those that take dozens of cycles for them.
#[derive(Debug, Clone, Copy)]
pub(in crate::kernels) struct Tables;

impl Bits for Tables {
    #[inline(always)]
    fn spread(self, pairs: u64, mask: u64) -> u64 {
        let (mut pairs, mut spread) = (pairs, [0; 8]);
        for (spread, index) in spread.iter_mut().zip(indices(mask)) {
            *spread = SPREAD[usize::from(index)][usize::from(pairs.to_le_bytes()[0])];
            pairs >>= SHIFTS[usize::from(index)];
        }
        u64::from_le_bytes(spread)
    }

    #[inline(always)]
    fn gather(self, pairs: u64, mask: u64) -> u64 {
        let (mut gathered, mut position) = (0, 0);
        for (byte, index) in pairs.to_le_bytes().into_iter().zip(indices(mask)) {
            gathered |= u64::from(GATHER[usize::from(index)][usize::from(byte)]) << position;
            position += SHIFTS[usize::from(index)];
        }
        gathered
    }
}

/// For each byte of the mask, which of its four pairs are set: the rows of the tables.
#[inline(always)]
fn indices(mask: u64) -> [u8; 8] {
    let ones = mask & 0x5555_5555_5555_5555;
    let twos = (ones | ones >> 1) & 0x3333_3333_3333_3333;
    ((twos | twos >> 2) & 0x0F0F_0F0F_0F0F_0F0F).to_le_bytes().map(|index| index & 0x0F)
}

/// For each set of pairs, how many bits they have.
static SHIFTS: [u32; 16] = {
    let mut shifts = [0; 16];
    let mut index: usize = 0;
    while index < 16 {
        shifts[index] = 2 * index.count_ones();
        index += 1;
    }
    shifts
};

/// For each set of pairs, what becomes of a byte when its lowest pairs move there.
static SPREAD: [[u8; 256]; 16] = {
    let mut table = [[0; 256]; 16];
    let mut index = 0;
    while index < 16 {
        let mut byte: u8 = 0;
        loop {
            let (mut rest, mut pair) = (byte, 0);
            while pair < 4 {
                if index >> pair & 1 == 1 {
                    table[index][byte as usize] |= (rest & 3) << (2 * pair);
                    rest >>= 2;
                }
                pair += 1;
            }
            if byte == u8::MAX {
                break;
            }
            byte += 1;
        }
        index += 1;
    }
    table
};

/// For each set of pairs, what becomes of a byte when these pairs move to the lowest.
static GATHER: [[u8; 256]; 16] = {
    let mut table = [[0; 256]; 16];
    let mut index = 0;
    while index < 16 {
        let mut byte: u8 = 0;
        loop {
            let (mut place, mut pair) = (0, 0);
            while pair < 4 {
                if index >> pair & 1 == 1 {
                    table[index][byte as usize] |= (byte >> (2 * pair) & 3) << place;
                    place += 2;
                }
                pair += 1;
            }
            if byte == u8::MAX {
                break;
            }
            byte += 1;
        }
        index += 1;
    }
    table
};

#[cfg(test)]
mod tests {
    use super::*;

    /// Bit by bit, as the instructions are described.
    fn expected(pairs: u64, mask: u64) -> (u64, u64) {
        let (mut spread, mut gathered, mut rank) = (0, 0, 0);
        for bit in (0..64).filter(|bit| mask >> bit & 1 == 1) {
            spread |= (pairs >> rank & 1) << bit;
            gathered |= (pairs >> bit & 1) << rank;
            rank += 1;
        }
        (spread, gathered)
    }

    #[test]
    fn tables_move_bits_as_the_instructions_do() {
        let mut state = 1_u64;
        let mut random = || {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            state ^ state >> 29
        };
        let pairs_of = |ones: u64| (ones & 0x5555_5555_5555_5555) * 3;
        let masks = [0, u64::MAX, pairs_of(1), pairs_of(1 << 62), pairs_of(u64::MAX << 30)];
        let masks = masks.into_iter().chain((0..10_000).map(|_| pairs_of(random()))).collect::<Vec<_>>();
        for mask in masks {
            let pairs = random();
            let found = (Tables.spread(pairs, mask), Tables.gather(pairs, mask));
            assert_eq!(found, expected(pairs, mask), "{pairs:x} {mask:x}");
        }
    }
}
