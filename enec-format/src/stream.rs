//! Validated views of streams (docs/format.md, "Reading").

use alloc::vec::Vec;

use crate::geometry::{SEGMENT_UNIT, TABLE_ENTRY_BYTES, TILE_MASK_BYTES};
use crate::hash::{combine, content_hash, content_pieces, piece_hash};
use crate::{
    Block, BlockEntry, Coding, Dtype, FormatError, FormatErrorKind as Kind, Header, Layout, Result, TwoWindows,
    padded_lanes, segment, segment_len, wide_lanes,
};

/// A stream whose structure has been validated: every size and offset in it can be trusted, its hashes have not been checked.
///
/// The bytes must not change while the view lives.
#[derive(Debug, Clone)]
pub struct Stream<'a> {
    bytes: &'a [u8],
    header: Header,
    layout: Layout,
}

impl<'a> Stream<'a> {
    /// Validates a stream that fills `bytes` exactly. Nothing is allocated.
    ///
    /// # Errors
    ///
    /// The first fault in this order: header fields, lengths, section padding, then block by block table entry, segment length and
    /// segment padding.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let header = Header::parse(bytes)?;
        let layout = check_lengths(&header, bytes.len())?;
        for (name, section) in layout.sections() {
            check_zero(bytes, section.padding(), name)?;
        }
        if let Coding::TwoWindows(windows) = header.coding {
            BlockTable {
                layout: &layout,
                windows,
                table: &bytes[layout.table.range()],
                mask: &bytes[layout.mask.range()],
                variable: Some(&bytes[layout.variable.range()]),
            }
            .validate()?;
        }
        Ok(Self { bytes, header, layout })
    }

    /// Validates a stream that lies in device memory from its downloaded parts; gives its header and layout.
    ///
    /// `header` is the first 64 bytes, `len` the length of the stream in device memory; `parts` is called with the layout and
    /// returns the table and the mask. Padding is not checked: it lies in parts that were not downloaded.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); errors of `parts` are passed on.
    pub fn open_parts<E: From<FormatError>>(
        header: &[u8],
        len: usize,
        parts: impl FnOnce(&Layout) -> Result<(Vec<u8>, Vec<u8>), E>,
    ) -> Result<(Header, Layout), E> {
        let header = Header::parse(header)?;
        let layout = check_lengths(&header, len)?;
        if let Coding::TwoWindows(windows) = header.coding {
            let (table, mask) = parts(&layout)?;
            for (section, found) in [(layout.table, table.len()), (layout.mask, mask.len())] {
                if found != section.len {
                    let kind = Kind::SourceLength { expected: section.len as u64, found: found as u64 };
                    return Err(FormatError::at(kind, section.offset).into());
                }
            }
            BlockTable { layout: &layout, windows, table: &table, mask: &mask, variable: None }.validate()?;
        }
        Ok((header, layout))
    }

    /// The stream's bytes.
    #[must_use]
    pub fn bytes(&self) -> &'a [u8] {
        self.bytes
    }

    /// The header.
    #[must_use]
    pub fn header(&self) -> &Header {
        &self.header
    }

    /// Where the sections lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.header.dtype
    }

    /// Codec and parameters.
    #[must_use]
    pub fn coding(&self) -> Coding {
        self.header.coding
    }

    /// Elements.
    #[must_use]
    pub fn elements(&self) -> usize {
        self.layout.elements
    }

    /// Decoded bytes.
    #[must_use]
    pub fn decoded_len(&self) -> usize {
        self.layout.decoded_len()
    }

    /// Elements after the last whole tile, verbatim; of a stored stream, all bytes.
    #[must_use]
    pub fn tail(&self) -> &'a [u8] {
        &self.bytes[self.layout.tail.range()]
    }

    /// Block `index`.
    ///
    /// # Panics
    ///
    /// If there is no such block.
    #[must_use]
    pub fn block(&self, index: usize) -> Block<'a> {
        let ranges = self.layout.block(index);
        let entry_bytes = &self.bytes[ranges.entry];
        let table = &self.bytes[self.layout.table.range()];
        let entry = BlockEntry::read(table, index);
        let variable = &self.bytes[self.layout.variable.range()];
        Block {
            entry_bytes,
            entry,
            mask: &self.bytes[ranges.mask],
            byte_plane: &self.bytes[ranges.byte_plane],
            extra_plane: &self.bytes[ranges.extra_plane],
            low_plane: &self.bytes[ranges.low_plane],
            segment: segment(variable, BlockEntry::start(table, index), entry.end),
        }
    }

    /// All blocks.
    pub fn blocks(&self) -> impl ExactSizeIterator<Item = Block<'a>> + '_ {
        (0..self.layout.blocks()).map(|index| self.block(index))
    }

    /// Computes the hash of the stored bytes. Section padding is not part of it.
    #[must_use]
    pub fn payload_hash(&self) -> u64 {
        match self.header.coding {
            Coding::Stored => combine(content_pieces(self.tail())),
            _ => {
                let blocks = self.blocks().map(|block| piece_hash(&block.parts()));
                let tail = self.tail();
                combine(blocks.chain((!tail.is_empty()).then(|| piece_hash(&[tail]))))
            }
        }
    }

    /// Compares the stored bytes with the payload hash.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsealed`] without a payload hash, [`Kind::PayloadHash`] if it disagrees.
    pub fn check_payload(&self) -> Result<()> {
        self.header.check_payload(self.payload_hash())
    }

    /// Compares decoded bytes with the content hash.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsealed`] without a content hash, [`Kind::ContentHash`] if it disagrees.
    pub fn check_content(&self, decoded: &[u8]) -> Result<()> {
        self.header.check_content(content_hash(decoded))
    }
}

/// The layout, once the header's lengths agree with each other and with the bytes present.
fn check_lengths(header: &Header, found: usize) -> Result<Layout> {
    let length_fault = || FormatError::new(Kind::StreamLength { stored: header.stream_len }, 24);
    let layout = match Layout::new(header.dtype, header.coding, header.elements, header.variable_len) {
        Ok(layout) if layout.stream_len as u64 == header.stream_len => layout,
        // A layout beyond the address space cannot have this length either.
        _ => return Err(length_fault()),
    };
    if header.coding != Coding::Stored {
        if layout.tiles == 0 {
            let kind = Kind::NoTile { codec: header.coding.codec(), found: header.elements };
            return Err(FormatError::new(kind, 16));
        }
        if !layout.variable.len.is_multiple_of(SEGMENT_UNIT) {
            return Err(FormatError::new(Kind::VariableLength { found: header.variable_len }, 32));
        }
    }
    let lengths = (header.stream_len, found as u64);
    match found.cmp(&layout.stream_len) {
        core::cmp::Ordering::Less => {
            Err(FormatError::at(Kind::Truncated { expected: lengths.0, found: lengths.1 }, found))
        }
        core::cmp::Ordering::Greater => {
            Err(FormatError::at(Kind::Trailing { expected: lengths.0, found: lengths.1 }, layout.stream_len))
        }
        core::cmp::Ordering::Equal => Ok(layout),
    }
}

fn check_zero(bytes: &[u8], range: core::ops::Range<usize>, section: &'static str) -> Result<()> {
    match bytes[range.clone()].iter().position(|&byte| byte != 0) {
        None => Ok(()),
        Some(at) => Err(FormatError::at(Kind::Padding { section }, range.start + at)),
    }
}

/// What validation of codec 1's blocks looks at.
struct BlockTable<'a> {
    layout: &'a Layout,
    windows: TwoWindows,
    table: &'a [u8],
    mask: &'a [u8],
    /// Absent when the stream lies in device memory.
    variable: Option<&'a [u8]>,
}

impl BlockTable<'_> {
    fn validate(&self) -> Result<()> {
        let section = (self.layout.variable.len / SEGMENT_UNIT) as u64;
        let mut start = 0;
        for index in 0..self.layout.blocks() {
            start = self.validate_block(index, start, section)?;
        }
        if start != section {
            let at = self.layout.table.range().end - TABLE_ENTRY_BYTES + 2;
            return Err(FormatError::at(Kind::TableEnd { end: start, section }, at));
        }
        Ok(())
    }

    /// Checks one block and returns where its segment ends, in units.
    fn validate_block(&self, index: usize, start: u64, section: u64) -> Result<u64> {
        let entry = BlockEntry::read(self.table, index);
        let at = self.layout.table.offset + index * TABLE_ENTRY_BYTES;
        let block = index as u64;
        let (common_width, exponent_bits) = (self.windows.common_width(), self.layout.dtype.exponent_bits());
        let largest = self.layout.dtype.exponent_mask();
        if entry.wide_base > largest {
            return Err(FormatError::at(Kind::WideBase { block, found: entry.wide_base, largest }, at));
        }
        if entry.wide_width < common_width || entry.wide_width > exponent_bits {
            let (found, smallest, largest) = (entry.wide_width, common_width, exponent_bits);
            return Err(FormatError::at(Kind::WideWidth { block, found, smallest, largest }, at + 1));
        }
        if entry.end < start {
            return Err(FormatError::at(Kind::TableOrder { block, start, end: entry.end }, at + 2));
        }
        if entry.end > section {
            return Err(FormatError::at(Kind::TableBeyond { block, end: entry.end, section }, at + 2));
        }
        let tiles = self.layout.block(index).tiles;
        let lanes = wide_lanes(&self.mask[tiles.start * TILE_MASK_BYTES..tiles.end * TILE_MASK_BYTES]);
        if lanes == 0 && entry.wide_base != 0 {
            return Err(FormatError::at(Kind::WideBaseUnused { block, found: entry.wide_base }, at));
        }
        if lanes == 0 && entry.wide_width != common_width {
            let kind = Kind::WideWidthUnused { block, found: entry.wide_width, expected: common_width };
            return Err(FormatError::at(kind, at + 1));
        }
        let high_width = entry.wide_width - common_width;
        let expected = segment_len(lanes, high_width);
        let found = (entry.end - start) * SEGMENT_UNIT as u64;
        if found != expected as u64 {
            return Err(FormatError::at(Kind::SegmentLength { block, found, expected: expected as u64 }, at + 2));
        }
        if let Some(variable) = self.variable {
            let (row_len, used) = (2 * padded_lanes(lanes), 2 * lanes);
            let first = variable.len() - segment(variable, start, section).len();
            for row in 0..usize::from(high_width) {
                let padding = first + row * row_len + used..first + (row + 1) * row_len;
                if let Some(at) = variable[padding.clone()].iter().position(|&byte| byte != 0) {
                    let offset = self.layout.variable.offset + padding.start + at;
                    return Err(FormatError::at(Kind::Padding { section: "row of a high segment" }, offset));
                }
            }
        }
        Ok(entry.end)
    }
}
