//! What the vectorised kernels need of an instruction set.

use enec_format::geometry::{LANES, ROWS, TILE_MASK_BYTES};

use super::behind::LINE;
use super::cascade::{Bits, PlaceTable};
use super::float::Float;
use super::scratch::WideRows;

/// Vectors of a row that are analysed one after the other, row after row: two whole cache lines of 16-bit words or more. In this order the
/// processor's own prefetching follows; a vector of every row at a time halves the speed at which memory is read.
pub(super) const AT_ONCE: usize = 4;

/// An instruction set with vectors of words of 16 bits. A value of the type proves that the processor has it.
///
/// All methods are inlined into the function that [`vectorise`](Self::vectorise) compiles for the instruction set.
pub(super) trait Isa: Copy + Send + Sync {
    /// A word of each of [`LANES`](Self::LANES) lanes. It often holds a pair of bytes: one of a row in 0..8, one of the row 8 below it.
    type Vector: Copy;

    /// A condition for each lane.
    type Mask: Copy;

    /// Vectors of 16 lanes of the same processor, for what comes 16 lanes at a time.
    type Narrow: NarrowIsa;

    /// Lanes of a vector, 16 or 32.
    const LANES: usize;

    /// Vectors in a row of words.
    const VECTORS: usize = LANES / Self::LANES;

    /// Whether kernels are compiled for each width, or once for all: straight code is faster, but takes the compiler a while.
    const FIXED_WIDTHS: bool;

    /// Whether [`stream_line`](Self::stream_line) goes past the caches.
    const STREAMS: bool = false;

    /// Runs a kernel in a function compiled for this instruction set.
    fn vectorise<K: Kernel>(self, kernel: K) -> K::Output;

    /// The same processor with vectors of 16 lanes.
    fn narrow(self) -> Self::Narrow;

    /// Reads vector `index` of little-endian words.
    ///
    /// # Panics
    ///
    /// If there are not that many.
    fn load(self, words: &[u8], index: usize) -> Self::Vector;

    /// Writes vector `index` of little-endian words.
    ///
    /// # Panics
    ///
    /// As [`load`](Self::load).
    fn store(self, vector: Self::Vector, words: &mut [u8], index: usize);

    /// Reads the lower and the upper halves of little-endian double words, as many as a vector has lanes.
    ///
    /// # Panics
    ///
    /// As [`load`](Self::load).
    fn load_double(self, words: &[u8], index: usize) -> (Self::Vector, Self::Vector);

    /// Writes little-endian double words, given their lower and their upper halves.
    ///
    /// # Panics
    ///
    /// As [`load`](Self::load).
    fn store_double(self, lower: Self::Vector, upper: Self::Vector, words: &mut [u8], index: usize);

    /// The same word in every lane.
    fn splat(self, word: u16) -> Self::Vector;

    /// Bitwise and.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Bitwise or.
    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Bitwise exclusive or.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a` in the lanes of the mask, `b` in the others.
    fn select(self, mask: Self::Mask, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Bytes of `a` minus bytes of `b`, modulo 256.
    fn subtract_bytes(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Words shifted up; `count` below 16.
    fn shift_up(self, vector: Self::Vector, count: usize) -> Self::Vector;

    /// Words shifted down, zeros coming in; `count` below 16.
    fn shift_down(self, vector: Self::Vector, count: usize) -> Self::Vector;

    /// Words rotated up; `count` in 1..16.
    #[inline(always)]
    fn rotate_up(self, vector: Self::Vector, count: usize) -> Self::Vector {
        self.or(self.shift_up(vector, count), self.shift_down(vector, 16 - count))
    }

    /// Both vectors with the high bytes of their words exchanged.
    #[inline(always)]
    fn exchange_high_bytes(self, a: Self::Vector, b: Self::Vector) -> (Self::Vector, Self::Vector) {
        let difference = self.and(self.xor(a, b), self.splat(0xFF00));
        (self.xor(a, difference), self.xor(b, difference))
    }

    /// Smaller words, unsigned.
    fn smaller(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Larger words, unsigned.
    fn larger(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// The lanes where `a > b`; words below 2^15.
    fn greater(self, a: Self::Vector, b: Self::Vector) -> Self::Mask;

    /// The lanes of either mask.
    fn either(self, a: Self::Mask, b: Self::Mask) -> Self::Mask;

    /// The mask of these lanes; bits behind them are zero.
    fn mask(self, lanes: u32) -> Self::Mask;

    /// Writes masks, one after the other, a bit per lane.
    ///
    /// # Panics
    ///
    /// If there is no room for them.
    fn store_masks(self, masks: [Self::Mask; AT_ONCE], bits: &mut [u8]);

    /// Smallest and largest exponents of the lanes of some vectors of a tile, from vector `first` on. Asks for as much of the tile before it.
    #[inline(always)]
    fn lane_ranges<F: Float>(self, tile: &[u8], first: usize) -> [(Self::Vector, Self::Vector); AT_ONCE] {
        // Without the sign, words compare as their exponents do.
        let mut bounds = [(self.splat(0xFFFF), self.splat(0)); AT_ONCE];
        for row in 0..ROWS {
            self.prefetch(tile, -1, first / AT_ONCE * ROWS + row, Self::VECTORS / AT_ONCE * ROWS);
            for (index, (smallest, largest)) in bounds.iter_mut().enumerate() {
                let (words, _) = F::load(self, tile, row, first + index);
                let magnitudes = self.and(words, self.splat(0x7FFF));
                *smallest = self.smaller(*smallest, magnitudes);
                *largest = self.larger(*largest, magnitudes);
            }
        }
        for (smallest, largest) in &mut bounds {
            (*smallest, *largest) =
                (self.shift_down(*smallest, F::EXPONENT_BIT), self.shift_down(*largest, F::EXPONENT_BIT));
        }
        bounds
    }

    /// Reads the columns of the first rows of `wide` from `rank` on into the lanes that are set in `lanes`, in order; the others become zero.
    ///
    /// # Panics
    ///
    /// If `rank` is above the number of lanes of a block.
    fn expand(self, rows: &mut [Self::Vector], lanes: u32, wide: &WideRows, rank: usize);

    /// Writes the lanes that are set in `lanes`, in order, to the columns of the first rows of `wide` from `rank` on; the columns behind
    /// them are overwritten with anything.
    ///
    /// # Panics
    ///
    /// As [`expand`](Self::expand).
    fn compact(self, rows: &[Self::Vector], lanes: u32, wide: &mut WideRows, rank: usize);

    /// Asks for share `index` of `count` of as many bytes as `bytes`, which lie so many times their length behind these, or before them.
    ///
    /// Rows are read with a stride, which the processor's own prefetching does not follow well. What is asked for may lie behind
    /// the slice, in the next block of the same plane or nowhere: nothing is read.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], steps: isize, index: usize, count: usize) {
        let _ = (bytes, steps, index, count);
    }

    /// As [`prefetch`](Self::prefetch), but not as far as the first-level cache, which can wait for a few lines only: too few at a time to
    /// read at the speed of memory.
    #[inline(always)]
    fn prefetch_to_second_level(self, bytes: &[u8], steps: isize, index: usize, count: usize) {
        let _ = (bytes, steps, index, count);
    }

    /// Copies a line, past the caches if the instruction set can.
    ///
    /// # Panics
    ///
    /// If the target does not lie on a 64-byte boundary.
    #[inline(always)]
    fn stream_line(self, source: &[u8; LINE], target: &mut [u8; LINE]) {
        *target = *source;
    }

    /// Orders what was streamed before what follows.
    fn fence(self) {}
}

/// An instruction set with vectors of 16 lanes, and what the cascade needs of it.
pub(super) trait NarrowIsa: Isa {
    /// 16 bytes to look up.
    type Table;

    /// Where [`interleave`](Self::interleave) puts each pair of lanes, as 64-bit words of its result.
    const LANE_PAIRS: [usize; 8];

    /// Runs a kernel in a function compiled for this instruction set, with the fastest way to move bits that the processor has.
    fn vectorise_with_bits<K: BitKernel>(self, kernel: K) -> K::Output;

    /// Puts two words of each lane side by side, so that a lane is 32 bits, in the order of [`LANE_PAIRS`](Self::LANE_PAIRS).
    fn interleave(self, first: Self::Vector, second: Self::Vector) -> [Self::Vector; 2];

    /// Undoes [`interleave`](Self::interleave).
    fn separate(self, lanes: [Self::Vector; 2]) -> [Self::Vector; 2];

    /// Of each lane's 32 bits, as interleaved, bytes 0 and 2, and bytes 1 and 3, as pairs: byte 0 or 1 in the *high* byte.
    fn lane_bytes(self, lanes: [Self::Vector; 2]) -> [Self::Vector; 2];

    /// Undoes [`lane_bytes`](Self::lane_bytes).
    fn lane_strings(self, bytes: [Self::Vector; 2]) -> [Self::Vector; 2];

    /// A table for [`lookup`](Self::lookup).
    fn table(self, bytes: &[u8; 16]) -> Self::Table;

    /// For each byte of `indices`, all below 16, that byte of the table.
    fn lookup(self, table: &Self::Table, indices: Self::Vector) -> Self::Vector;

    /// The places of exponents.
    fn places(self, exponents: &[Self::Vector; 8], table: &PlaceTable) -> [Self::Vector; 8];

    /// Whether all bits are zero.
    fn is_zero(self, vector: Self::Vector) -> bool;
}

/// The lanes of a vector that are set in the mask of a tile.
#[inline(always)]
pub(super) fn tile_lanes<I: Isa>(mask: &[u8; TILE_MASK_BYTES], vector: usize) -> u32 {
    if I::LANES == 16 {
        u32::from(u16::from_le_bytes(mask.as_chunks().0[vector]))
    } else {
        u32::from_le_bytes(mask.as_chunks().0[vector])
    }
}

/// Code that is compiled once for each instruction set.
pub(super) trait Kernel {
    /// What it returns.
    type Output;

    /// Runs it.
    ///
    /// Implementations and all they call with vectors are `#[inline(always)]`: what is not inlined is not compiled for the instruction
    /// set. So no closure may touch a vector, least of all one that is passed to the standard library.
    fn run<I: Isa>(self, isa: I) -> Self::Output;
}

/// A [`Kernel`] that moves bits, too.
pub(super) trait BitKernel {
    /// What it returns.
    type Output;

    /// Runs it, as [`Kernel::run`].
    fn run<I: NarrowIsa, B: Bits>(self, isa: I, bits: B) -> Self::Output;
}
