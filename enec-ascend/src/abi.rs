//! What host and kernels agree on: `kernels/abi.h` in Rust. A test compares the two.

use std::ffi::CStr;

use enec_core::{Result, two_windows_only};
use enec_format::{Dtype, Layout, TwoWindows};

use crate::acl::memory::Span;

/// Finds the wide lanes of every block, and the window that covers them.
pub(crate) const ANALYSE: &CStr = c"enec_analyse_v1";
/// Writes the sections of a stream.
pub(crate) const ENCODE: &CStr = c"enec_encode_v1";
/// Writes elements.
pub(crate) const DECODE: &CStr = c"enec_decode_v1";

/// Boundary that addresses which kernels use lie on.
pub(crate) const ADDRESS_ALIGNMENT: usize = 32;
/// Words of a job record.
const JOB_WORDS: usize = 16;
/// Bytes of a job record.
pub(crate) const JOB_BYTES: usize = JOB_WORDS * 8;
/// Bytes of what the analysis says of a block.
pub(crate) const SUMMARY_BYTES: usize = 32;

/// A job record as the device reads it.
pub(crate) type JobRecord = [u8; JOB_BYTES];

/// Places of a stream's sections in device memory.
pub(crate) struct Sections<'m> {
    pub(crate) layout: &'m Layout,
    /// The whole stream, from its header on.
    pub(crate) stream: Span<'m>,
}

impl Sections<'_> {
    fn address(&self, offset: usize) -> u64 {
        self.stream.address() + offset as u64
    }
}

/// One tensor to encode (`EncodeJob`).
pub(crate) struct EncodeRecord<'m> {
    pub(crate) first_item: u64,
    pub(crate) first_segment: u64,
    pub(crate) windows: TwoWindows,
    pub(crate) sections: Sections<'m>,
    pub(crate) variable_len: usize,
    pub(crate) source: Span<'m>,
    pub(crate) summary: Span<'m>,
}

impl EncodeRecord<'_> {
    pub(crate) fn to_bytes(&self) -> JobRecord {
        let layout = self.sections.layout;
        let at = |offset| self.sections.address(offset);
        record([
            self.first_item,
            layout.tiles as u64,
            dtype(layout.dtype),
            self.windows.common_base().into(),
            self.windows.common_width().into(),
            self.first_segment,
            self.source.address(),
            self.summary.address(),
            at(layout.table.offset),
            at(layout.mask.offset),
            at(layout.byte_plane.offset),
            at(layout.extra_plane.offset),
            at(layout.low_plane.offset),
            at(layout.variable.offset),
            self.variable_len as u64,
            0,
        ])
    }
}

/// Tiles of one stream to decode (`DecodeJob`).
pub(crate) struct DecodeRecord<'m> {
    pub(crate) first_item: u64,
    pub(crate) windows: TwoWindows,
    pub(crate) sections: Sections<'m>,
    pub(crate) tiles: std::ops::Range<usize>,
    pub(crate) target: Span<'m>,
}

impl DecodeRecord<'_> {
    pub(crate) fn to_bytes(&self) -> JobRecord {
        let layout = self.sections.layout;
        let at = |offset| self.sections.address(offset);
        record([
            self.first_item,
            layout.tiles as u64,
            dtype(layout.dtype),
            self.windows.common_base().into(),
            self.windows.common_width().into(),
            0,
            self.tiles.start as u64,
            self.tiles.end as u64,
            at(layout.table.offset),
            at(layout.mask.offset),
            at(layout.byte_plane.offset),
            at(layout.extra_plane.offset),
            at(layout.low_plane.offset),
            at(layout.variable.offset),
            layout.variable.len as u64,
            self.target.address(),
        ])
    }
}

/// What the analysis found out about a block (`BlockSummary`).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BlockSummary {
    pub(crate) wide_base: u8,
    pub(crate) wide_width: u8,
    pub(crate) wide_lanes: usize,
}

impl BlockSummary {
    /// Reads a record; `None` if the device wrote what cannot be.
    pub(crate) fn from_bytes(bytes: &[u8]) -> Option<Self> {
        let word = |at: usize| {
            let bytes = bytes.get(4 * at..4 * at + 4)?;
            Some(u32::from_le_bytes(bytes.try_into().ok()?))
        };
        Some(Self {
            wide_base: word(0)?.try_into().ok()?,
            wide_width: word(1)?.try_into().ok()?,
            wide_lanes: word(2)?.try_into().ok()?,
        })
    }
}

/// The parameters of a layout that has tiles to do.
///
/// # Errors
///
/// [`Error::Argument`](enec_core::Error::Argument) for a codec that there are no kernels for.
pub(crate) fn windows(layout: &Layout) -> Result<Option<TwoWindows>> {
    Ok(two_windows_only("ascend", layout.coding)?.filter(|_| layout.tiles > 0))
}

fn dtype(dtype: Dtype) -> u64 {
    match dtype {
        Dtype::Opaque => 0,
        Dtype::Bf16 => 1,
        Dtype::F16 => 2,
        Dtype::F32 => 3,
    }
}

fn record(words: [u64; JOB_WORDS]) -> JobRecord {
    let mut bytes = [0; JOB_BYTES];
    for (bytes, word) in bytes.chunks_exact_mut(8).zip(words) {
        bytes.copy_from_slice(&word.to_le_bytes());
    }
    bytes
}

#[cfg(test)]
mod tests;
