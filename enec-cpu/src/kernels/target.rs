//! Where kernels write: to memory that is in the cache, or past the caches, tile by tile.

use super::Behind;
use super::behind::Before;
use super::isa::Isa;

/// Where decoded tiles go.
pub(crate) enum DecodeTarget<'a, 'b> {
    /// To memory that is in the cache, or may well come to be.
    Cached(&'a mut [u8]),
    /// Past the caches. Each tile is shown while it is in the first of them.
    Streamed(&'a mut Behind<'b>, &'a mut dyn FnMut(&[u8])),
}

impl DecodeTarget<'_, '_> {
    /// Where tile `index` of `len` bytes is to be put, and the tile before it if that is to be streamed meanwhile.
    #[inline(always)]
    pub(super) fn tile(&mut self, index: usize, len: usize) -> (&mut [u8], Option<Before<'_>>) {
        match self {
            Self::Cached(target) => (&mut target[index * len..][..len], None),
            Self::Streamed(behind, _) => {
                let (tile, before) = behind.tile(len);
                (tile, Some(before))
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
    /// Where the planes of tile `index`, of `lens` bytes, are to be put, and those before them if they are to be streamed meanwhile.
    #[inline(always)]
    pub(super) fn tile(&mut self, index: usize, lens: [usize; 3]) -> ([&mut [u8]; 3], Option<[Before<'_>; 3]>) {
        match self {
            Self::Cached([byte, extra, low]) => {
                let byte = &mut byte[index * lens[0]..][..lens[0]];
                let extra = &mut extra[index * lens[1]..][..lens[1]];
                ([byte, extra, &mut low[index * lens[2]..][..lens[2]]], None)
            }
            Self::Streamed([byte, extra, low], _) => {
                let (byte, byte_before) = byte.tile(lens[0]);
                let (extra, extra_before) = extra.tile(lens[1]);
                let (low, low_before) = low.tile(lens[2]);
                ([byte, extra, low], Some([byte_before, extra_before, low_before]))
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
