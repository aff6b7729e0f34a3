//! Where kernels write: to memory that is in the cache, or past the caches, tile by tile.

use super::Behind;
use super::isa::Isa;

/// Where decoded tiles go.
pub(crate) enum DecodeTarget<'a, 'b> {
    /// To memory that is in the cache, or may well come to be.
    Cached(&'a mut [u8]),
    /// Past the caches. Each tile is shown while it is in the first of them.
    Streamed(&'a mut Behind<'b>, &'a mut dyn FnMut(&[u8])),
}

impl DecodeTarget<'_, '_> {
    /// Where tile `index` of `len` bytes is to be put. Streams one of `shares` shares of the tile before it.
    #[inline(always)]
    pub(super) fn tile<I: Isa>(&mut self, isa: I, index: usize, len: usize, shares: usize) -> &mut [u8] {
        match self {
            Self::Cached(target) => &mut target[index * len..][..len],
            Self::Streamed(behind, _) => {
                behind.advance(isa, len / shares);
                behind.tile(len)
            }
        }
    }

    /// The tile that was put there is complete.
    #[inline(always)]
    pub(super) fn complete<I: Isa>(&mut self, isa: I, len: usize) {
        if let Self::Streamed(behind, show) = self {
            show(behind.complete(isa, len));
        }
    }

    /// There is no tile any more.
    #[inline(always)]
    pub(super) fn finish<I: Isa>(&mut self, isa: I) {
        if let Self::Streamed(behind, _) = self {
            behind.finish(isa);
        }
    }
}

/// Where the planes of a block go, byte, extra and low plane; each has exactly its length.
pub(crate) enum PlanesTarget<'a, 'b> {
    /// To memory that is in the cache, or may well come to be.
    Cached([&'a mut [u8]; 3]),
    /// Past the caches. Each plane of each tile is shown, with its index, while it is in the first of them.
    Streamed(&'a mut [Behind<'b>; 3], &'a mut dyn FnMut(usize, &[u8])),
}

impl PlanesTarget<'_, '_> {
    /// Where the planes of tile `index`, of `lens` bytes, are to be put. Streams one of `shares` shares of those before them.
    #[inline(always)]
    pub(super) fn tile<I: Isa>(&mut self, isa: I, index: usize, lens: [usize; 3], shares: usize) -> [&mut [u8]; 3] {
        match self {
            Self::Cached([byte, extra, low]) => [
                &mut byte[index * lens[0]..][..lens[0]],
                &mut extra[index * lens[1]..][..lens[1]],
                &mut low[index * lens[2]..][..lens[2]],
            ],
            Self::Streamed(behind, _) => {
                for (behind, len) in behind.iter_mut().zip(lens) {
                    behind.advance(isa, len / shares);
                }
                let [byte, extra, low] = behind;
                [byte.tile(lens[0]), extra.tile(lens[1]), low.tile(lens[2])]
            }
        }
    }

    /// The planes that were put there are complete.
    #[inline(always)]
    pub(super) fn complete<I: Isa>(&mut self, isa: I, lens: [usize; 3]) {
        if let Self::Streamed(behind, show) = self {
            for (plane, behind) in behind.iter_mut().enumerate() {
                show(plane, behind.complete(isa, lens[plane]));
            }
        }
    }

    /// There is no tile any more.
    #[inline(always)]
    pub(super) fn finish<I: Isa>(&mut self, isa: I) {
        if let Self::Streamed(behind, _) = self {
            for behind in behind.iter_mut() {
                behind.finish(isa);
            }
        }
    }
}
