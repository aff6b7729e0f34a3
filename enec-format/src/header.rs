//! The 64-byte header (docs/format.md, "Header").

use crate::geometry::{HEADER_BYTES, SYMBOL_SECTION_BYTES};
use crate::hash::xxh3_64;
use crate::{Cascade, Coding, Dtype, FormatError, FormatErrorKind as Kind, Result, TwoWindows};

const MAGIC: [u8; 8] = [0x89, b'E', b'N', b'E', b'C', 0x0D, 0x0A, 0x1A];
const VERSION: u16 = 1;
const FLAG_CONTENT_HASH: u16 = 1;
const FLAG_PAYLOAD_HASH: u16 = 2;

/// The content and payload hash of a stream. One that has both is *sealed*.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seal {
    /// Hash of the decoded bytes.
    pub content: u64,
    /// Hash of the stored bytes.
    pub payload: u64,
}

/// The header's fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Header {
    /// Element type.
    pub dtype: Dtype,
    /// Codec and its parameters.
    pub coding: Coding,
    /// Number of elements; of bytes for [`Dtype::Opaque`].
    pub elements: u64,
    /// Bytes of the whole stream, padding included.
    pub stream_len: u64,
    /// Bytes of the variable section before its padding.
    pub variable_len: u64,
    /// Hash of the decoded bytes, if present.
    pub content_hash: Option<u64>,
    /// Hash of the stored bytes, if present.
    pub payload_hash: Option<u64>,
}

impl Header {
    /// Reads a header, with the codec's own section behind it if it has one, and checks every field by itself; that the lengths
    /// agree is checked by [`Stream::open`](crate::Stream::open).
    ///
    /// `bytes` may be longer. [`FRONT_BYTES`](Self::FRONT_BYTES) are always enough.
    ///
    /// # Errors
    ///
    /// In this order: magic, truncation, header checksum, version, codec, dtype, flags, hash fields, the codec's own bytes, count,
    /// the codec's own section.
    pub fn parse(bytes: &[u8]) -> Result<Self> {
        Self::parse_fields(bytes)?.with_section(bytes)
    }

    /// Bytes of the longest header with a codec's own section.
    pub const FRONT_BYTES: usize = HEADER_BYTES + SYMBOL_SECTION_BYTES;

    /// The same header with the parameters that the codec's own section holds.
    pub(crate) fn with_section(mut self, bytes: &[u8]) -> Result<Self> {
        if let Coding::Cascade(cascade) = self.coding {
            let Some(section) = bytes.get(HEADER_BYTES..Self::FRONT_BYTES) else {
                let kind = Kind::Truncated { expected: Self::FRONT_BYTES as u64, found: bytes.len() as u64 };
                return Err(FormatError::at(kind, bytes.len()));
            };
            self.coding = Coding::Cascade(cascade.with_section(self.dtype, section)?);
        }
        Ok(self)
    }

    /// As [`parse`](Self::parse), without the codec's own section: a cascade has its levels and no symbols yet.
    pub(crate) fn parse_fields(bytes: &[u8]) -> Result<Self> {
        let seen = bytes.len().min(MAGIC.len());
        if bytes[..seen] != MAGIC[..seen] {
            return Err(FormatError::new(Kind::Magic, 0));
        }
        let Some(bytes) = bytes.first_chunk::<HEADER_BYTES>() else {
            let kind = Kind::Truncated { expected: HEADER_BYTES as u64, found: bytes.len() as u64 };
            return Err(FormatError::at(kind, bytes.len()));
        };
        let (stored, computed) = (read_u64(bytes, 56), xxh3_64(&bytes[..56]));
        if stored != computed {
            return Err(FormatError::new(Kind::HeaderChecksum { stored, computed }, 56));
        }
        match u16::from_le_bytes([bytes[8], bytes[9]]) {
            VERSION => {}
            0 => return Err(FormatError::new(Kind::VersionZero, 8)),
            version => return Err(FormatError::new(Kind::Version { version }, 8)),
        }
        let codec = bytes[10];
        if codec > 2 {
            return Err(FormatError::new(Kind::Codec { codec }, 10));
        }
        let dtype = Dtype::from_byte(bytes[11]).ok_or(FormatError::new(Kind::Dtype { dtype: bytes[11] }, 11))?;
        let flags = u16::from_le_bytes([bytes[14], bytes[15]]);
        if flags & !(FLAG_CONTENT_HASH | FLAG_PAYLOAD_HASH) != 0 {
            return Err(FormatError::new(Kind::Flags { flags }, 14));
        }
        let hash_field = |flag: u16, offset: usize| match (flags & flag != 0, read_u64(bytes, offset)) {
            (true, hash) => Ok(Some(hash)),
            (false, 0) => Ok(None),
            (false, _) => Err(FormatError::at(Kind::HashWithoutFlag, offset)),
        };
        let (content_hash, payload_hash) = (hash_field(FLAG_CONTENT_HASH, 40)?, hash_field(FLAG_PAYLOAD_HASH, 48)?);
        let coding = match codec {
            0 => {
                let unused = [12, 13].into_iter().chain(32..40).find(|&at| bytes[at] != 0);
                if let Some(at) = unused {
                    return Err(FormatError::at(Kind::Unused { codec, found: bytes[at] }, at));
                }
                Coding::Stored
            }
            1 => Coding::TwoWindows(TwoWindows::new(dtype, bytes[12], bytes[13])?),
            _ => {
                let cascade = Cascade::of_levels(dtype, bytes[12])?;
                if bytes[13] != 0 {
                    return Err(FormatError::new(Kind::Unused { codec, found: bytes[13] }, 13));
                }
                Coding::Cascade(cascade)
            }
        };
        let elements = read_u64(bytes, 16);
        if elements.checked_mul(dtype.element_bytes() as u64).is_none() {
            return Err(FormatError::new(Kind::Count { count: elements }, 16));
        }
        Ok(Self {
            dtype,
            coding,
            elements,
            stream_len: read_u64(bytes, 24),
            variable_len: read_u64(bytes, 32),
            content_hash,
            payload_hash,
        })
    }

    /// Writes the header, and behind it the codec's own section if it has one, to the start of a stream.
    ///
    /// # Panics
    ///
    /// If `stream` is shorter than that: see [`front_len`](Self::front_len).
    pub fn write(&self, stream: &mut [u8]) {
        stream[..HEADER_BYTES].copy_from_slice(&self.to_bytes());
        if let Coding::Cascade(cascade) = self.coding {
            stream[HEADER_BYTES..Self::FRONT_BYTES].copy_from_slice(&cascade.to_section());
        }
    }

    /// Bytes of the header and of the codec's own section: where the block table starts.
    #[must_use]
    pub fn front_len(&self) -> usize {
        match self.coding {
            Coding::Cascade(_) => Self::FRONT_BYTES,
            _ => HEADER_BYTES,
        }
    }

    /// The header's bytes, its checksum included.
    #[must_use]
    pub fn to_bytes(&self) -> [u8; HEADER_BYTES] {
        let mut bytes = [0; HEADER_BYTES];
        bytes[0..8].copy_from_slice(&MAGIC);
        bytes[8..10].copy_from_slice(&VERSION.to_le_bytes());
        bytes[10] = self.coding.codec();
        bytes[11] = self.dtype as u8;
        match self.coding {
            Coding::Stored => {}
            Coding::TwoWindows(windows) => {
                bytes[12] = windows.common_base();
                bytes[13] = windows.common_width();
            }
            Coding::Cascade(cascade) => bytes[12] = cascade.levels(),
        }
        let flag = |present: bool, flag: u16| if present { flag } else { 0 };
        let flags =
            flag(self.content_hash.is_some(), FLAG_CONTENT_HASH) | flag(self.payload_hash.is_some(), FLAG_PAYLOAD_HASH);
        bytes[14..16].copy_from_slice(&flags.to_le_bytes());
        bytes[16..24].copy_from_slice(&self.elements.to_le_bytes());
        bytes[24..32].copy_from_slice(&self.stream_len.to_le_bytes());
        bytes[32..40].copy_from_slice(&self.variable_len.to_le_bytes());
        bytes[40..48].copy_from_slice(&self.content_hash.unwrap_or(0).to_le_bytes());
        bytes[48..56].copy_from_slice(&self.payload_hash.unwrap_or(0).to_le_bytes());
        let checksum = xxh3_64(&bytes[..56]);
        bytes[56..64].copy_from_slice(&checksum.to_le_bytes());
        bytes
    }

    /// The same header with both hashes.
    #[must_use]
    pub fn sealed(mut self, seal: Seal) -> Self {
        self.content_hash = Some(seal.content);
        self.payload_hash = Some(seal.payload);
        self
    }

    /// Both hashes, if the stream has both.
    #[must_use]
    pub fn seal(&self) -> Option<Seal> {
        Some(Seal { content: self.content_hash?, payload: self.payload_hash? })
    }

    /// Compares the hash of the stored bytes with the header's.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsealed`] without a payload hash, [`Kind::PayloadHash`] if it disagrees.
    pub fn check_payload(&self, computed: u64) -> Result<()> {
        let stored = self.payload_hash.ok_or(FormatError::new(Kind::Unsealed { hash: "payload" }, 14))?;
        if stored == computed { Ok(()) } else { Err(FormatError::new(Kind::PayloadHash { stored, computed }, 48)) }
    }

    /// Compares the hash of the decoded bytes with the header's.
    ///
    /// # Errors
    ///
    /// [`Kind::Unsealed`] without a content hash, [`Kind::ContentHash`] if it disagrees.
    pub fn check_content(&self, computed: u64) -> Result<()> {
        let stored = self.content_hash.ok_or(FormatError::new(Kind::Unsealed { hash: "content" }, 14))?;
        if stored == computed { Ok(()) } else { Err(FormatError::new(Kind::ContentHash { stored, computed }, 40)) }
    }

    /// Decoded bytes. Cannot overflow: [`parse`](Self::parse) has checked the product.
    #[must_use]
    pub fn decoded_len(&self) -> u64 {
        self.elements.saturating_mul(self.dtype.element_bytes() as u64)
    }
}

fn read_u64(bytes: &[u8; HEADER_BYTES], offset: usize) -> u64 {
    let mut word = [0; 8];
    word.copy_from_slice(&bytes[offset..offset + 8]);
    u64::from_le_bytes(word)
}
