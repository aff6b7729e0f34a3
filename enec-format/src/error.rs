//! What can be wrong with a stream or with a request, each fault as its own kind.

use core::fmt;

/// Result with a [`FormatError`].
pub type Result<T, E = FormatError> = core::result::Result<T, E>;

/// A fault and where it lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct FormatError {
    kind: FormatErrorKind,
    offset: u64,
}

impl FormatError {
    /// A fault at a byte offset from the start of the stream.
    #[must_use]
    pub const fn new(kind: FormatErrorKind, offset: u64) -> Self {
        Self { kind, offset }
    }

    /// A fault at a position in memory.
    #[must_use]
    pub(crate) const fn at(kind: FormatErrorKind, offset: usize) -> Self {
        Self { kind, offset: offset as u64 }
    }

    /// What is wrong.
    #[must_use]
    pub const fn kind(&self) -> FormatErrorKind {
        self.kind
    }

    /// Byte offset, from the start of the stream, of the wrong byte or of the field that disagrees.
    #[must_use]
    pub const fn offset(&self) -> u64 {
        self.offset
    }

    /// Whether a call was at fault, not the stream: buffers or ranges that do not fit it.
    #[must_use]
    pub const fn is_argument(&self) -> bool {
        use FormatErrorKind as Kind;
        matches!(
            self.kind,
            Kind::SourceLength { .. }
                | Kind::TargetLength { .. }
                | Kind::PartialElement { .. }
                | Kind::TileRange { .. }
        )
    }

    /// Whether the stream is intact as far as can be told, but needs a newer version of this crate.
    #[must_use]
    pub const fn is_newer(&self) -> bool {
        use FormatErrorKind as Kind;
        matches!(self.kind, Kind::Version { .. } | Kind::Codec { .. } | Kind::Dtype { .. } | Kind::Flags { .. })
    }
}

impl fmt::Display for FormatError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} (byte {})", self.kind, self.offset)
    }
}

impl core::error::Error for FormatError {}

/// The kinds of fault. Fields hold what was found and what was expected.
#[derive(Debug, Clone, Copy, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum FormatErrorKind {
    /// The first eight bytes are not the magic.
    #[error("not an ENEC stream: wrong magic")]
    Magic,
    /// Fewer bytes than the header says, or than a header has.
    #[error("truncated: {expected} bytes expected, {found} found")]
    Truncated {
        /// Bytes expected.
        expected: u64,
        /// Bytes present.
        found: u64,
    },
    /// More bytes than the header says.
    #[error("bytes after the stream: {expected} bytes expected, {found} found")]
    Trailing {
        /// Bytes expected.
        expected: u64,
        /// Bytes present.
        found: u64,
    },
    /// The header's own checksum disagrees.
    #[error("header checksum mismatch: stored {stored:016x}, computed {computed:016x}")]
    HeaderChecksum {
        /// The checksum in the header.
        stored: u64,
        /// The checksum of its bytes.
        computed: u64,
    },
    /// Version 0 was never written.
    #[error("version 0 does not exist")]
    VersionZero,
    /// A version above 1.
    #[error("written by a newer version: stream version {version}, this program reads up to 1")]
    Version {
        /// The version in the header.
        version: u16,
    },
    /// An unknown codec.
    #[error("written by a newer version: unknown codec {codec}")]
    Codec {
        /// The codec in the header.
        codec: u8,
    },
    /// An unknown dtype.
    #[error("written by a newer version: unknown dtype {dtype}")]
    Dtype {
        /// The dtype in the header.
        dtype: u8,
    },
    /// An unknown flag.
    #[error("written by a newer version: unknown flags {flags:#06x}")]
    Flags {
        /// The flags in the header.
        flags: u16,
    },
    /// A hash field is used although its flag is clear.
    #[error("hash field not zero although its flag is clear")]
    HashWithoutFlag,
    /// A header byte that the codec does not use is not zero.
    #[error("header byte that codec {codec} does not use is {found}, expected 0")]
    Unused {
        /// The codec.
        codec: u8,
        /// The byte.
        found: u8,
    },
    /// Opaque bytes with a codec that needs exponents.
    #[error("opaque bytes can only be stored")]
    OpaqueCoded,
    /// The common base is not below 2^E.
    #[error("common base {found} above {largest}")]
    CommonBase {
        /// The base.
        found: u8,
        /// The largest legal one.
        largest: u8,
    },
    /// The common width is above E.
    #[error("common width {found} above the exponent's {largest} bits")]
    CommonWidth {
        /// The width.
        found: u8,
        /// The largest legal one.
        largest: u8,
    },
    /// The number of levels is not 1 to 5.
    #[error("{found} levels, expected 1 to 5")]
    Levels {
        /// The number.
        found: u8,
    },
    /// Symbols that are not those of whole levels.
    #[error("{found} symbols, expected 3, 6, 9, 12 or 15")]
    SymbolCount {
        /// The number.
        found: u64,
    },
    /// A symbol is not below 2^E.
    #[error("symbol {found} above {largest}")]
    SymbolRange {
        /// The symbol.
        found: u8,
        /// The largest legal one.
        largest: u8,
    },
    /// A symbol occurs twice.
    #[error("symbol {found} occurs twice")]
    SymbolTwice {
        /// The symbol.
        found: u8,
    },
    /// Fewer elements than one tile in a codec that needs one.
    #[error("codec {codec} needs a whole tile of 2048 elements, found {found}")]
    NoTile {
        /// The codec.
        codec: u8,
        /// The element count.
        found: u64,
    },
    /// Element count times element size does not fit 64 bits, or the stream cannot exist in this host's memory.
    #[error("element count {count} is too large")]
    Count {
        /// The element count.
        count: u64,
    },
    /// The header's stream length is not the one its other fields imply.
    #[error("stream length {stored} differs from what the header's other fields imply")]
    StreamLength {
        /// The length in the header.
        stored: u64,
    },
    /// The variable section's length is not a multiple of 32.
    #[error("variable section of {found} bytes, expected a multiple of 32")]
    VariableLength {
        /// The length in the header.
        found: u64,
    },
    /// A padding byte is not zero.
    #[error("padding after the {section} is not zero")]
    Padding {
        /// What the padding follows.
        section: &'static str,
    },
    /// A block's wide base is not below 2^E.
    #[error("block {block}: wide base {found} above {largest}")]
    WideBase {
        /// The block.
        block: u64,
        /// The base.
        found: u8,
        /// The largest legal one.
        largest: u8,
    },
    /// A block's wide width is not within m to E.
    #[error("block {block}: wide width {found} outside {smallest} to {largest}")]
    WideWidth {
        /// The block.
        block: u64,
        /// The width.
        found: u8,
        /// The common width.
        smallest: u8,
        /// The exponent's bits.
        largest: u8,
    },
    /// A block without a wide lane has a wide base other than 0.
    #[error("block {block}: wide base {found} without a wide lane, expected 0")]
    WideBaseUnused {
        /// The block.
        block: u64,
        /// The base.
        found: u8,
    },
    /// A block without a wide lane has a wide width other than m.
    #[error("block {block}: wide width {found} without a wide lane, expected {expected}")]
    WideWidthUnused {
        /// The block.
        block: u64,
        /// The width.
        found: u8,
        /// The common width.
        expected: u8,
    },
    /// A block's table entry has a base or a width although the codec has none.
    #[error("block {block}: table byte that codec {codec} does not use is {found}, expected 0")]
    TableUnused {
        /// The block.
        block: u64,
        /// The codec.
        codec: u8,
        /// The byte.
        found: u8,
    },
    /// A block's segment ends before it starts.
    #[error(
        "block {block}: block table not monotone, segment ends at {end} before it starts at {start} (units of 32 bytes)"
    )]
    TableOrder {
        /// The block.
        block: u64,
        /// Start in units of 32 bytes.
        start: u64,
        /// End in units of 32 bytes.
        end: u64,
    },
    /// A block's segment ends beyond the variable section.
    #[error("block {block}: segment ends at {end}, beyond the variable section of {section} (units of 32 bytes)")]
    TableBeyond {
        /// The block.
        block: u64,
        /// End in units of 32 bytes.
        end: u64,
        /// The section's length in units of 32 bytes.
        section: u64,
    },
    /// A block's segment is not as long as its widths and mask imply.
    #[error("block {block}: segment of {found} bytes, its widths and mask imply {expected}")]
    SegmentLength {
        /// The block.
        block: u64,
        /// Bytes by the table.
        found: u64,
        /// Bytes by widths and mask.
        expected: u64,
    },
    /// A block's segment is not as long as its levels imply.
    #[error("block {block}: segment of {found} bytes, its levels imply {expected} or more")]
    LevelsLength {
        /// The block.
        block: u64,
        /// Bytes by the table.
        found: u64,
        /// Bytes by the codes that are there; more if there are codes missing, which could escape.
        expected: u64,
    },
    /// A raw exponent is not below 2^E.
    #[error("block {block}: raw exponent {found} above {largest}")]
    RawExponent {
        /// The block.
        block: u64,
        /// The exponent.
        found: u8,
        /// The largest legal one.
        largest: u8,
    },
    /// The last block's segment ends before the variable section does.
    #[error("the block table ends at {end}, the variable section at {section} (units of 32 bytes)")]
    TableEnd {
        /// End of the last block in units of 32 bytes.
        end: u64,
        /// The section's length in units of 32 bytes.
        section: u64,
    },
    /// The stream carries no hash to check.
    #[error("the stream is not sealed: it carries no {hash} hash")]
    Unsealed {
        /// Which hash.
        hash: &'static str,
    },
    /// The stored bytes are not those that were hashed.
    #[error("payload hash mismatch: stored {stored:016x}, computed {computed:016x}")]
    PayloadHash {
        /// The hash in the header.
        stored: u64,
        /// The hash of the stored bytes.
        computed: u64,
    },
    /// The decoded bytes are not those that were hashed.
    #[error("content hash mismatch: stored {stored:016x}, computed {computed:016x}")]
    ContentHash {
        /// The hash in the header.
        stored: u64,
        /// The hash of the decoded bytes.
        computed: u64,
    },
    /// A source buffer of the wrong length.
    #[error("source of {found} bytes, expected {expected}")]
    SourceLength {
        /// Bytes expected.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// A target buffer that is too short.
    #[error("target of {found} bytes, expected at least {expected}")]
    TargetLength {
        /// Bytes needed.
        expected: u64,
        /// Bytes given.
        found: u64,
    },
    /// Bytes that are not a whole number of elements.
    #[error("{found} bytes are not a whole number of elements of {element_bytes} bytes")]
    PartialElement {
        /// Bytes given.
        found: u64,
        /// Bytes of an element.
        element_bytes: u64,
    },
    /// A range of tiles that the stream does not have.
    #[error("tiles {start}..{end} of a stream of {tiles}")]
    TileRange {
        /// First tile.
        start: u64,
        /// Tile after the last.
        end: u64,
        /// Tiles of the stream.
        tiles: u64,
    },
}

/// An error travels in every result of the crate: keep it small.
const _: () = assert!(size_of::<FormatError>() <= 64);
