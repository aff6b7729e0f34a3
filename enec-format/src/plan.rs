//! Plans: what a conversion reads and writes, checked once, so that backends can trust sizes and offsets.

use core::ops::Range;

use crate::geometry::{ALIGNMENT, HEADER_BYTES, LANES, TILE_ELEMENTS, align_up};
use crate::{
    Coding, Dtype, FormatError, FormatErrorKind as Kind, Header, Layout, Levels, Result, Seal, Stream, segment_len,
};

/// The longest stream that an encoder makes of `bytes` decoded bytes: what storing them takes.
///
/// # Errors
///
/// [`Kind::Count`] if that is more than `usize::MAX`.
pub fn max_encoded_len(bytes: usize) -> Result<usize> {
    align_up(bytes)
        .and_then(|body| body.checked_add(HEADER_BYTES))
        .ok_or(FormatError::new(Kind::Count { count: bytes as u64 }, 16))
}

/// What an encoder did with a tensor.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EncodeOutcome {
    /// The planned coding, with this many bytes in the variable section.
    Coded {
        /// Bytes of the variable section, a multiple of 32.
        variable_len: usize,
    },
    /// The bytes verbatim, because the coding would not have made them smaller.
    Stored,
}

/// Where an encoder puts the bytes of one tensor, or of one window of whole blocks of a tensor.
///
/// The target has the layout of a stream of its own; whoever made the plan writes the header and the codec's own section.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct EncodePlan {
    layout: Layout,
    first_segment: u64,
    variable_limit: usize,
    target_len: usize,
}

impl EncodePlan {
    /// A plan that follows the stored rule: the coding is used only if the stream becomes strictly shorter than a stored one.
    ///
    /// # Errors
    ///
    /// [`Kind::Count`] if the tensor does not fit the address space; as [`Coding::check`] if the parameters are another dtype's.
    pub fn new(dtype: Dtype, coding: Coding, elements: usize) -> Result<Self> {
        coding.check(dtype)?;
        let stored = Layout::new(dtype, Coding::Stored, elements as u64, 0)?;
        let coded = Layout::new(dtype, coding, elements as u64, 0);
        match coded {
            Ok(layout) if layout.tiles > 0 && layout.stream_len < stored.stream_len => {
                // Lengths are multiples of 64, so "strictly shorter" leaves 64 bytes less than the difference.
                let variable_limit = stored.stream_len - layout.stream_len - ALIGNMENT;
                Ok(Self { layout, first_segment: 0, variable_limit, target_len: stored.stream_len })
            }
            _ => {
                let target_len = stored.stream_len;
                Ok(Self { layout: stored, first_segment: 0, variable_limit: 0, target_len })
            }
        }
    }

    /// A plan without the stored rule, for a window of whole blocks of a larger tensor or for tests of kernels.
    ///
    /// `first_segment` is where the window's first segment starts in the tensor's variable section, in units of 32 bytes;
    /// table entries count from the start of that section, while the window's own variable section starts with that segment.
    ///
    /// # Errors
    ///
    /// [`Kind::NoTile`] with fewer elements than a tile unless they are stored, otherwise as [`new`](Self::new).
    pub fn window(dtype: Dtype, coding: impl Into<Coding>, elements: usize, first_segment: u64) -> Result<Self> {
        let coding = coding.into();
        coding.check(dtype)?;
        if elements < TILE_ELEMENTS && coding != Coding::Stored {
            let kind = Kind::NoTile { codec: coding.codec(), found: elements as u64 };
            return Err(FormatError::new(kind, 16));
        }
        let layout = Layout::new(dtype, coding, elements as u64, 0)?;
        let variable_limit = match coding {
            Coding::Stored => Some(0),
            Coding::TwoWindows(windows) => {
                Some(segment_len(layout.tiles * LANES, dtype.exponent_bits() - windows.common_width()))
            }
            Coding::Cascade(cascade) => Levels::longest_segment(cascade.levels(), layout.tiles * TILE_ELEMENTS),
        };
        let longest = variable_limit.and_then(|limit| layout.stream_len.checked_add(limit)).and_then(align_up);
        let (Some(variable_limit), Some(target_len)) = (variable_limit, longest) else {
            return Err(FormatError::new(Kind::Count { count: elements as u64 }, 16));
        };
        Ok(Self { layout, first_segment, variable_limit, target_len })
    }

    /// The layout with an empty variable section: all sections before it lie where they will lie in the end.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Element type.
    #[must_use]
    pub fn dtype(&self) -> Dtype {
        self.layout.dtype
    }

    /// Coding; [`Coding::Stored`] if the stored rule left nothing else.
    #[must_use]
    pub fn coding(&self) -> Coding {
        self.layout.coding
    }

    /// Start of the first segment, in units of 32 bytes, as table entries count it.
    #[must_use]
    pub fn first_segment(&self) -> u64 {
        self.first_segment
    }

    /// Most bytes the variable section may have; an encoder that would need more stores the tensor instead.
    #[must_use]
    pub fn variable_limit(&self) -> usize {
        self.variable_limit
    }

    /// Bytes of the source.
    #[must_use]
    pub fn source_len(&self) -> usize {
        self.layout.decoded_len()
    }

    /// Bytes that the target must have. No encoder writes beyond them.
    #[must_use]
    pub fn target_len(&self) -> usize {
        self.target_len
    }

    /// The layout of what the encoder wrote.
    ///
    /// # Errors
    ///
    /// [`Kind::Count`] if it does not fit the address space, which an outcome within the plan's limit always does.
    pub fn written(&self, outcome: EncodeOutcome) -> Result<Layout> {
        let (coding, variable_len) = match outcome {
            EncodeOutcome::Coded { variable_len } => (self.layout.coding, variable_len),
            EncodeOutcome::Stored => (Coding::Stored, 0),
        };
        Layout::new(self.layout.dtype, coding, self.layout.elements as u64, variable_len as u64)
    }

    /// The header of what the encoder wrote.
    ///
    /// # Errors
    ///
    /// As [`written`](Self::written).
    pub fn header(&self, outcome: EncodeOutcome, seal: Option<Seal>) -> Result<Header> {
        Ok(self.written(outcome)?.header(seal))
    }
}

impl Layout {
    /// The header of a stream with this layout.
    #[must_use]
    pub fn header(&self, seal: Option<Seal>) -> Header {
        Header {
            dtype: self.dtype,
            coding: self.coding,
            elements: self.elements as u64,
            stream_len: self.stream_len as u64,
            variable_len: self.variable.len as u64,
            content_hash: seal.map(|seal| seal.content),
            payload_hash: seal.map(|seal| seal.payload),
        }
    }
}

/// Which part of a validated stream is decoded: a range of tiles, and the tail or not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct DecodePlan {
    layout: Layout,
    tiles: Range<usize>,
    tail: bool,
}

impl DecodePlan {
    /// The whole stream.
    #[must_use]
    pub fn whole(stream: &Stream<'_>) -> Self {
        Self::of_layout(stream.layout().clone())
    }

    /// The whole of a stream that was validated by [`Stream::open_parts`].
    #[must_use]
    pub fn of_layout(layout: Layout) -> Self {
        let tiles = 0..layout.tiles;
        Self { layout, tiles, tail: true }
    }

    /// The same stream, but only these tiles of it, and the tail if `tail`.
    ///
    /// A stored stream has no tiles; take its bytes from [`Stream::tail`].
    ///
    /// # Errors
    ///
    /// [`Kind::TileRange`] if the stream has no such tiles, or if the tail is wanted without the tile before it.
    pub fn with_tiles(mut self, tiles: Range<usize>, tail: bool) -> Result<Self> {
        let valid =
            tiles.start <= tiles.end && tiles.end <= self.layout.tiles && (!tail || tiles.end == self.layout.tiles);
        if !valid {
            let (start, end) = (tiles.start as u64, tiles.end as u64);
            let kind = Kind::TileRange { start, end, tiles: self.layout.tiles as u64 };
            return Err(FormatError::new(kind, 16));
        }
        self.tiles = tiles;
        self.tail = tail;
        Ok(self)
    }

    /// Where the sections lie.
    #[must_use]
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The tiles to decode.
    #[must_use]
    pub fn tiles(&self) -> Range<usize> {
        self.tiles.clone()
    }

    /// The byte range of the stream that follows the tiles verbatim, empty unless the plan includes the tail.
    #[must_use]
    pub fn tail(&self) -> Range<usize> {
        if self.tail { self.layout.tail.range() } else { self.layout.tail.offset..self.layout.tail.offset }
    }

    /// Whether the plan covers the whole stream.
    #[must_use]
    pub fn is_whole(&self) -> bool {
        self.tiles == (0..self.layout.tiles) && self.tail
    }

    /// Bytes of the source: the whole stream, whatever part of it is decoded.
    #[must_use]
    pub fn source_len(&self) -> usize {
        self.layout.stream_len
    }

    /// Bytes of the target.
    #[must_use]
    pub fn target_len(&self) -> usize {
        self.tiles.len() * self.layout.dtype.tile_bytes() + self.tail().len()
    }
}
