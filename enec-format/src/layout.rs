//! Where each section of a stream lies (docs/format.md, "Stream").

use core::ops::Range;

use crate::geometry::{
    ALIGNMENT, BLOCK_TILES, CONTENT_PIECE_BYTES, HEADER_BYTES, ROW_BYTES, TABLE_ENTRY_BYTES, TILE_BYTE_PLANE_BYTES,
    TILE_ELEMENTS, TILE_MASK_BYTES,
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
    /// Block table.
    pub table: Section,
    /// Mask.
    pub mask: Section,
    /// Byte plane.
    pub byte_plane: Section,
    /// Extra plane, empty for BF16.
    pub extra_plane: Section,
    /// Low plane.
    pub low_plane: Section,
    /// Variable section: codec 1's high segments.
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

    /// Pieces of the payload hash: one per block and one for the tail if there is one; a stored stream is cut like its content.
    #[must_use]
    pub fn payload_pieces(&self) -> usize {
        match self.coding {
            Coding::Stored => self.content_pieces(),
            Coding::TwoWindows(_) => self.blocks() + usize::from(self.tail.len > 0),
        }
    }

    /// Every section in stream order, with its name.
    #[must_use]
    pub fn sections(&self) -> [(&'static str, Section); 7] {
        [
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
    fn new(dtype: Dtype, coding: Coding) -> Self {
        match coding {
            Coding::Stored => Self { mask: 0, byte_plane: 0, extra_plane: 0, low_plane: 0 },
            Coding::TwoWindows(windows) => Self {
                mask: TILE_MASK_BYTES,
                byte_plane: TILE_BYTE_PLANE_BYTES,
                extra_plane: dtype.tile_extra_bytes(),
                low_plane: usize::from(windows.common_width()) * ROW_BYTES,
            },
        }
    }
}
