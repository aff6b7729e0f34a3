//! Where kernels write: to memory that is in the cache, or past the caches, tile by tile.

use super::Behind;
use super::behind::Before;
use super::isa::Isa;

/// Where the tiles of a block go, decoded, or one of their planes.
pub(crate) enum TileTarget<'a, 'b> {
    /// To memory that is in the cache, or may well come to be.
    Cached(&'a mut [u8]),
    /// Past the caches. Each is shown while it is in the first of them.
    Streamed(&'a mut Behind<'b>, &'a mut dyn FnMut(&[u8])),
}

impl TileTarget<'_, '_> {
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
