//! One value: splitting a word into exponent, byte and extra bits, and joining them (docs/format.md, "Splitting a value").

use crate::Dtype;

/// The three parts of an element.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Parts {
    /// Exponent, below 2^E.
    pub(super) exponent: u8,
    /// The byte of the byte plane.
    pub(super) byte: u8,
    /// The bits of the extra plane: 3 for F16, 16 for F32, none for BF16.
    pub(super) extra: u16,
}

/// Splits one little-endian element.
pub(super) fn split(dtype: Dtype, element: &[u8]) -> Parts {
    match dtype {
        Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        Dtype::Bf16 => split_half(8, u16::from_le_bytes([element[0], element[1]]), 0),
        Dtype::F16 => {
            let word = u16::from_le_bytes([element[0], element[1]]);
            split_half(5, word, (word.rotate_left(6) >> 5) & 7)
        }
        Dtype::F32 => {
            let (low, high) = ([element[0], element[1]], [element[2], element[3]]);
            split_half(8, u16::from_le_bytes(high), u16::from_le_bytes(low))
        }
    }
}

fn split_half(exponent_bits: u32, word: u16, extra: u16) -> Parts {
    let [low, byte] = word.rotate_left(exponent_bits + 1).to_le_bytes();
    Parts { exponent: low & (0xFF >> (8 - exponent_bits)), byte, extra }
}

/// Joins the parts of one element and writes it little-endian.
pub(super) fn join(dtype: Dtype, parts: Parts, element: &mut [u8]) {
    let Parts { exponent, byte, extra } = parts;
    match dtype {
        Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        Dtype::Bf16 => element.copy_from_slice(&u16::from_le_bytes([exponent, byte]).rotate_right(9).to_le_bytes()),
        Dtype::F16 => {
            let word = u16::from_le_bytes([exponent, byte]) | (extra << 5);
            element.copy_from_slice(&word.rotate_right(6).to_le_bytes());
        }
        Dtype::F32 => {
            element[..2].copy_from_slice(&extra.to_le_bytes());
            element[2..].copy_from_slice(&u16::from_le_bytes([exponent, byte]).rotate_right(9).to_le_bytes());
        }
    }
}

/// The exponent of one little-endian element.
///
/// # Panics
///
/// If `dtype` is opaque or `element` is shorter than an element.
#[must_use]
pub fn exponent(dtype: Dtype, element: &[u8]) -> u8 {
    split(dtype, element).exponent
}

/// The exponents of little-endian elements, in order.
pub fn exponents(dtype: Dtype, elements: &[u8]) -> impl Iterator<Item = u8> + '_ {
    elements.chunks_exact(dtype.element_bytes()).map(move |element| exponent(dtype, element))
}
