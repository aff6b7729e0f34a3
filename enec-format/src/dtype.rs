//! Element types and how each is split into exponent and planes (docs/format.md, "Splitting a value").

use crate::geometry::{ROW_BYTES, TILE_ELEMENTS};

/// The element type of a stream. The discriminant is the header's dtype byte.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Dtype {
    /// Bytes without structure; an element is one byte. Legal only in stored streams.
    Opaque = 0,
    /// bfloat16: 8 exponent bits, 7 mantissa bits.
    Bf16 = 1,
    /// IEEE 754 binary16: 5 exponent bits, 10 mantissa bits.
    F16 = 2,
    /// IEEE 754 binary32: 8 exponent bits, 23 mantissa bits.
    F32 = 3,
}

impl Dtype {
    /// The types that can be compressed.
    pub const FLOATS: [Dtype; 3] = [Dtype::Bf16, Dtype::F16, Dtype::F32];

    /// The type of the header's dtype byte, or `None` if this version does not know it.
    #[must_use]
    pub const fn from_byte(byte: u8) -> Option<Self> {
        match byte {
            0 => Some(Dtype::Opaque),
            1 => Some(Dtype::Bf16),
            2 => Some(Dtype::F16),
            3 => Some(Dtype::F32),
            _ => None,
        }
    }

    /// The safetensors name of the type; `"OPAQUE"` for opaque bytes.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Dtype::Opaque => "OPAQUE",
            Dtype::Bf16 => "BF16",
            Dtype::F16 => "F16",
            Dtype::F32 => "F32",
        }
    }

    /// The compressible type with this safetensors name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::FLOATS.into_iter().find(|dtype| dtype.name() == name)
    }

    /// Bytes of one element.
    #[must_use]
    pub const fn element_bytes(self) -> usize {
        match self {
            Dtype::Opaque => 1,
            Dtype::Bf16 | Dtype::F16 => 2,
            Dtype::F32 => 4,
        }
    }

    /// Exponent bits of one element, the paper's E; 0 for opaque bytes.
    #[must_use]
    pub const fn exponent_bits(self) -> u8 {
        match self {
            Dtype::Opaque => 0,
            Dtype::Bf16 | Dtype::F32 => 8,
            Dtype::F16 => 5,
        }
    }

    /// Mask of the exponent bits: `2^E - 1`.
    #[must_use]
    pub const fn exponent_mask(self) -> u8 {
        match self {
            Dtype::Opaque => 0,
            Dtype::Bf16 | Dtype::F32 => 0xFF,
            Dtype::F16 => 0x1F,
        }
    }

    /// Decoded bytes of one tile.
    #[must_use]
    pub const fn tile_bytes(self) -> usize {
        TILE_ELEMENTS * self.element_bytes()
    }

    /// Bytes of the extra plane of one tile: F16 has 3 packed bits per element, F32 has one 16-bit word.
    #[must_use]
    pub const fn tile_extra_bytes(self) -> usize {
        match self {
            Dtype::Opaque | Dtype::Bf16 => 0,
            Dtype::F16 => 3 * ROW_BYTES,
            Dtype::F32 => 2 * TILE_ELEMENTS,
        }
    }
}
