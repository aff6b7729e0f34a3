//! What the vectorised kernels need of an instruction set.

use super::behind::LINE;
use super::cascade::{Bits, PlaceTable};
use super::scratch::WideRows;

/// An instruction set with vectors of 16 lanes of 16 bits. A value of the type proves that the processor has it.
///
/// All methods are inlined into the function that [`vectorise`](Self::vectorise) compiles for the instruction set.
pub(super) trait Isa: Copy + Send + Sync {
    /// 16 lanes of 16 bits. A lane often holds a pair of bytes: one of a row in 0..8, one of the row 8 below it.
    type Vector: Copy;

    /// 16 bytes to look up.
    type Table;

    /// Whether kernels are compiled for each width, or once for all: straight code is faster, but takes the compiler a while.
    const FIXED_WIDTHS: bool;

    /// Where [`interleave`](Self::interleave) puts each pair of lanes, as 64-bit words of its result.
    const LANE_PAIRS: [usize; 8];

    /// Whether [`stream_line`](Self::stream_line) goes past the caches.
    const STREAMS: bool = false;

    /// Runs a kernel in a function compiled for this instruction set.
    fn vectorise<K: Kernel>(self, kernel: K) -> K::Output;

    /// Runs a kernel in a function compiled for this instruction set, with the fastest way to move bits that the processor has.
    fn vectorise_with_bits<K: BitKernel>(self, kernel: K) -> K::Output;

    /// Reads 16 little-endian words.
    fn load(self, bytes: &[u8; 32]) -> Self::Vector;

    /// Writes 16 little-endian words.
    fn store(self, vector: Self::Vector, bytes: &mut [u8; 32]);

    /// Reads 16 little-endian double words: their lower and their upper halves.
    fn load_double(self, bytes: &[u8; 64]) -> (Self::Vector, Self::Vector);

    /// Writes 16 little-endian double words, given their lower and their upper halves.
    fn store_double(self, lower: Self::Vector, upper: Self::Vector, bytes: &mut [u8; 64]);

    /// The same word in every lane.
    fn splat(self, word: u16) -> Self::Vector;

    /// Bitwise and.
    fn and(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Bitwise or.
    fn or(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Bitwise exclusive or.
    fn xor(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// `a` where the mask's lane is all ones, `b` where it is zero.
    fn select(self, mask: Self::Vector, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Bytes of `a` minus bytes of `b`, modulo 256.
    fn subtract_bytes(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Words shifted up; `count` below 16.
    fn shift_up(self, vector: Self::Vector, count: usize) -> Self::Vector;

    /// Words shifted down, zeros coming in; `count` below 16.
    fn shift_down(self, vector: Self::Vector, count: usize) -> Self::Vector;

    /// Smaller words, unsigned.
    fn smaller(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// Larger words, unsigned.
    fn larger(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// All ones in the lanes where `a > b`; words below 2^15.
    fn greater(self, a: Self::Vector, b: Self::Vector) -> Self::Vector;

    /// One bit per lane of two masks, those of `a` first.
    fn lane_bits(self, a: Self::Vector, b: Self::Vector) -> u32;

    /// The mask with these lanes set.
    fn lane_mask(self, bits: u16) -> Self::Vector;

    /// Ors the columns of `wide` from `rank` on into the lanes that are set in `bits`, in order.
    ///
    /// # Panics
    ///
    /// If `rank` is above the number of lanes of a block.
    fn expand(self, pairs: &mut [Self::Vector; 8], bits: u16, wide: &WideRows, rank: usize);

    /// Writes the lanes that are set in `bits`, in order, to the columns of `wide` from `rank` on; the columns behind them are
    /// overwritten with anything.
    ///
    /// # Panics
    ///
    /// As [`expand`](Self::expand).
    fn compact(self, pairs: &[Self::Vector; 8], bits: u16, wide: &mut WideRows, rank: usize);

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

    /// Asks for share `index` of `count` of the bytes that lie `distance` bytes behind the start of `bytes`, as many as these.
    ///
    /// Rows are read with a stride, which the processor's own prefetching does not follow well. What is asked for may lie behind
    /// the slice, in the next block of the same plane or nowhere: nothing is read.
    #[inline(always)]
    fn prefetch(self, bytes: &[u8], distance: usize, index: usize, count: usize) {
        let _ = (bytes, distance, index, count);
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
    fn run<I: Isa, B: Bits>(self, isa: I, bits: B) -> Self::Output;
}
