//! Validated views of streams (docs/format.md, "Reading").

use alloc::vec::Vec;

use crate::geometry::SEGMENT_UNIT;
use crate::hash::{combine, content_hash, content_pieces, piece_hash};
use crate::validate::{CascadeBlocks, TwoWindowsBlocks};
use crate::{
    Block, BlockEntry, Coding, Dtype, FormatError, FormatErrorKind as Kind, Header, Layout, Result, Section, segment,
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
    /// The first fault in this order: header fields, lengths, section padding, symbols, then block by block table entry, segment length
    /// and what is in the segment.
    pub fn open(bytes: &'a [u8]) -> Result<Self> {
        let header = Header::parse_fields(bytes)?;
        let layout = check_lengths(&header, bytes.len())?;
        for (name, section) in layout.sections() {
            check_zero(bytes, section.padding(), name)?;
        }
        let (header, layout) = with_section(header, layout, bytes)?;
        let part = |section: Section| &bytes[section.range()];
        match header.coding {
            Coding::Stored => {}
            Coding::TwoWindows(windows) => {
                let (table, mask, variable) = (part(layout.table), part(layout.mask), part(layout.variable));
                TwoWindowsBlocks { layout: &layout, windows, table, mask, variable: Some(variable) }.validate()?;
            }
            Coding::Cascade(cascade) => {
                let (table, low_plane, variable) = (part(layout.table), part(layout.low_plane), part(layout.variable));
                CascadeBlocks { layout: &layout, cascade, table, low_plane, variable }.validate()?;
            }
        }
        Ok(Self { bytes, header, layout })
    }

    /// Validates a stream that lies in device memory from its downloaded parts; gives its header and layout.
    ///
    /// `front` is the start of the stream, [`Header::FRONT_BYTES`] or all if there are fewer, and `len` the length of the stream in
    /// device memory; `part` is called for each section that is needed and returns its bytes: the table and the mask in codec 1, the
    /// table, the low plane and the variable section in codec 2. Padding between sections is not checked, nor is codec 1's inside
    /// segments: it lies in parts that are not downloaded.
    ///
    /// # Errors
    ///
    /// As [`open`](Self::open); errors of `part` are passed on.
    pub fn open_parts<E: From<FormatError>>(
        front: &[u8],
        len: usize,
        mut part: impl FnMut(Section) -> Result<Vec<u8>, E>,
    ) -> Result<(Header, Layout), E> {
        let header = Header::parse_fields(front)?;
        let layout = check_lengths(&header, len)?;
        let (header, layout) = with_section(header, layout, front)?;
        let mut part = |section: Section| -> Result<Vec<u8>, E> {
            let bytes = part(section)?;
            if bytes.len() == section.len {
                return Ok(bytes);
            }
            let kind = Kind::SourceLength { expected: section.len as u64, found: bytes.len() as u64 };
            Err(FormatError::at(kind, section.offset).into())
        };
        match header.coding {
            Coding::Stored => {}
            Coding::TwoWindows(windows) => {
                let (table, mask) = (&part(layout.table)?, &part(layout.mask)?);
                TwoWindowsBlocks { layout: &layout, windows, table, mask, variable: None }.validate()?;
            }
            Coding::Cascade(cascade) => {
                let (table, low_plane) = (&part(layout.table)?, &part(layout.low_plane)?);
                let variable = &part(layout.variable)?;
                CascadeBlocks { layout: &layout, cascade, table, low_plane, variable }.validate()?;
            }
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

    /// The codec's own section, which is a piece of the payload hash; empty if the codec has none.
    #[must_use]
    pub fn symbol_section(&self) -> &'a [u8] {
        &self.bytes[self.layout.symbols.range()]
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
                let whole = |part: &'a [u8]| (!part.is_empty()).then(|| piece_hash(&[part]));
                let blocks = self.blocks().map(|block| piece_hash(&block.parts()));
                combine(whole(self.symbol_section()).into_iter().chain(blocks).chain(whole(self.tail())))
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

/// Header and layout with the parameters that the codec's own section holds.
fn with_section(header: Header, mut layout: Layout, bytes: &[u8]) -> Result<(Header, Layout)> {
    let header = header.with_section(bytes)?;
    layout.coding = header.coding;
    Ok((header, layout))
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
