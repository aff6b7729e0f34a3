//! Where each section of a stream lies (docs/format.md, "Stream").

use core::ops::Range;

use crate::geometry::{
    ALIGNMENT, BLOCK_TILES, CODE_BITS, CONTENT_PIECE_BYTES, HEADER_BYTES, ROW_BYTES, SYMBOL_SECTION_BYTES,
    TABLE_ENTRY_BYTES, TILE_BYTE_PLANE_BYTES, TILE_ELEMENTS, TILE_MASK_BYTES,
};
use crate::{Coding, Dtype, FormatError, FormatErrorKind as Kind, Result};

/// One section: a byte offset from the start of the stream, a multiple of 64, and its length before padding.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Section {
    /// First byte.
    pub offset: usize,
    /// Bytes before the padding.
    pub len: usize,
}

impl Section {
    /// The section's bytes without padding.
    #[must_use]
    pub fn range(self) -> Range<usize> {
        self.offset..self.offset + self.len
    }

    /// The padding behind the section: up to the next multiple of 64, nothing if the section is empty or ends there.
    #[must_use]
    pub fn padding(self) -> Range<usize> {
        let end = self.offset + self.len;
        end..end.next_multiple_of(ALIGNMENT)
    }
}

/// The sections of a stream. All offsets are known to fit the host's `usize`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Layout {
    /// Element type.
    pub dtype: Dtype,
    /// Codec and parameters.
    pub coding: Coding,
    /// Elements of the tensor.
    pub elements: usize,
    /// Whole tiles; none in a stored stream, whose bytes are all tail.
    pub tiles: usize,
    /// Codec 2's symbols; empty in other codecs.
    pub symbols: Section,
    /// Block table.
    pub table: Section,
    /// Mask, empty in codec 2.
    pub mask: Section,
    /// Byte plane.
    pub byte_plane: Section,
    /// Extra plane, empty for BF16.
    pub extra_plane: Section,
    /// Low plane: codec 1's low bits, codec 2's first level.
    pub low_plane: Section,
    /// Variable section: the blocks' segments.
    pub variable: Section,
    /// Elements after the last whole tile, or all bytes of a stored stream.
    pub tail: Section,
    /// Bytes of the whole stream.
    pub stream_len: usize,
}

/// Where the fixed-size parts of one block lie, as byte ranges from the start of the stream.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlockRanges {
    /// Tiles of the block, as indices into the tensor's tiles.
    pub tiles: Range<usize>,
    /// Its table entry.
    pub entry: Range<usize>,
    /// Its masks.
    pub mask: Range<usize>,
    /// Its byte plane.
    pub byte_plane: Range<usize>,
    /// Its extra plane.
    pub extra_plane: Range<usize>,
    /// Its low plane.
    pub low_plane: Range<usize>,
}

impl BlockRanges {
    /// The places of tile `index` of the block, whose table entry it shares.
    ///
    /// # Panics
    ///
    /// If the block has no such tile.
    #[must_use]
    pub fn tile(&self, index: usize) -> Self {
        assert!(index < self.tiles.len(), "tile {index} of {}", self.tiles.len());
        let part = |range: &Range<usize>| {
            let len = range.len() / self.tiles.len();
            range.start + index * len..range.start + (index + 1) * len
        };
        Self {
            tiles: self.tiles.start + index..self.tiles.start + index + 1,
            entry: self.entry.clone(),
            mask: part(&self.mask),
            byte_plane: part(&self.byte_plane),
            extra_plane: part(&self.extra_plane),
            low_plane: part(&self.low_plane),
        }
    }
}

impl Layout {
    /// The layout that codec, dtype, element count and length of the variable section imply.
    ///
    /// # Errors
    ///
    /// [`Kind::Count`] if the stream would not fit this host's address space.
    pub fn new(dtype: Dtype, coding: Coding, elements: u64, variable_len: u64) -> Result<Self> {
        let too_large = || FormatError::new(Kind::Count { count: elements }, 16);
        let elements = usize::try_from(elements).map_err(|_| too_large())?;
        let variable_len = usize::try_from(variable_len).map_err(|_| too_large())?;
        Self::checked(dtype, coding, elements, variable_len).ok_or_else(too_large)
    }

    fn checked(dtype: Dtype, coding: Coding, elements: usize, variable_len: usize) -> Option<Self> {
        let bytes = elements.checked_mul(dtype.element_bytes())?;
        let tile = TileSizes::new(dtype, coding);
        let tiles = if coding == Coding::Stored { 0 } else { elements / TILE_ELEMENTS };
        let mut end = HEADER_BYTES;
        let mut section = |len: Option<usize>| {
            let (offset, len) = (end, len?);
            end = end.checked_add(len)?.checked_next_multiple_of(ALIGNMENT)?;
            Some(Section { offset, len })
        };
        Some(Self {
            dtype,
            coding,
            elements,
            tiles,
            symbols: section(Some(if matches!(coding, Coding::Cascade(_)) { SYMBOL_SECTION_BYTES } else { 0 }))?,
            table: section(tiles.div_ceil(BLOCK_TILES).checked_mul(TABLE_ENTRY_BYTES))?,
            mask: section(tiles.checked_mul(tile.mask))?,
            byte_plane: section(tiles.checked_mul(tile.byte_plane))?,
            extra_plane: section(tiles.checked_mul(tile.extra_plane))?,
            low_plane: section(tiles.checked_mul(tile.low_plane))?,
            variable: section(Some(variable_len))?,
            tail: section(bytes.checked_sub(tiles.checked_mul(dtype.tile_bytes())?))?,
            stream_len: end,
        })
    }

    /// Blocks, the last of which may be short.
    #[must_use]
    pub fn blocks(&self) -> usize {
        self.tiles.div_ceil(BLOCK_TILES)
    }

    /// Decoded bytes.
    #[must_use]
    pub fn decoded_len(&self) -> usize {
        self.elements * self.dtype.element_bytes()
    }

    /// Pieces of the content hash.
    #[must_use]
    pub fn content_pieces(&self) -> usize {
        self.decoded_len().div_ceil(CONTENT_PIECE_BYTES)
    }

    /// Pieces of the payload hash: one for the codec's own section if it has one, one per block, and one for the tail if there is one; a
    /// stored stream is cut like its content.
    #[must_use]
    pub fn payload_pieces(&self) -> usize {
        match self.coding {
            Coding::Stored => self.content_pieces(),
            _ => self.block_pieces().end + usize::from(self.tail.len > 0),
        }
    }

    /// Which pieces of the payload hash are blocks. The one before them, if any, is the codec's own section, the one behind them the tail.
    #[must_use]
    pub fn block_pieces(&self) -> Range<usize> {
        let first = usize::from(self.symbols.len > 0);
        first..first + self.blocks()
    }

    /// Bytes before the block table: the header and the codec's own section, which whoever makes a plan writes, not the encoder.
    #[must_use]
    pub fn front_len(&self) -> usize {
        HEADER_BYTES + self.symbols.len
    }

    /// Every section in stream order, with its name.
    #[must_use]
    pub fn sections(&self) -> [(&'static str, Section); 8] {
        [
            ("symbols", self.symbols),
            ("block table", self.table),
            ("mask", self.mask),
            ("byte plane", self.byte_plane),
            ("extra plane", self.extra_plane),
            ("low plane", self.low_plane),
            ("variable section", self.variable),
            ("tail", self.tail),
        ]
    }

    /// The places of block `index`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[inline]
    #[must_use]
    pub fn block(&self, index: usize) -> BlockRanges {
        assert!(index < self.blocks(), "block {index} of {}", self.blocks());
        let tiles = index * BLOCK_TILES..self.tiles.min((index + 1) * BLOCK_TILES);
        let tile = TileSizes::new(self.dtype, self.coding);
        let part =
            |section: Section, bytes: usize| section.offset + tiles.start * bytes..section.offset + tiles.end * bytes;
        let entry = self.table.offset + index * TABLE_ENTRY_BYTES;
        BlockRanges {
            entry: entry..entry + TABLE_ENTRY_BYTES,
            mask: part(self.mask, tile.mask),
            byte_plane: part(self.byte_plane, tile.byte_plane),
            extra_plane: part(self.extra_plane, tile.extra_plane),
            low_plane: part(self.low_plane, tile.low_plane),
            tiles,
        }
    }

    /// Decoded byte range of the tiles `tiles`.
    #[inline]
    #[must_use]
    pub fn decoded_range(&self, tiles: Range<usize>) -> Range<usize> {
        tiles.start * self.dtype.tile_bytes()..tiles.end * self.dtype.tile_bytes()
    }
}

/// Bytes of one tile in each fixed-size section.
struct TileSizes {
    mask: usize,
    byte_plane: usize,
    extra_plane: usize,
    low_plane: usize,
}

impl TileSizes {
    #[inline]
    fn new(dtype: Dtype, coding: Coding) -> Self {
        match coding {
            Coding::Stored => Self { mask: 0, byte_plane: 0, extra_plane: 0, low_plane: 0 },
            Coding::TwoWindows(windows) => Self {
                mask: TILE_MASK_BYTES,
                byte_plane: TILE_BYTE_PLANE_BYTES,
                extra_plane: dtype.tile_extra_bytes(),
                low_plane: usize::from(windows.common_width()) * ROW_BYTES,
            },
            Coding::Cascade(_) => Self {
                mask: 0,
                byte_plane: TILE_BYTE_PLANE_BYTES,
                extra_plane: dtype.tile_extra_bytes(),
                low_plane: CODE_BITS * ROW_BYTES,
            },
        }
    }
}
