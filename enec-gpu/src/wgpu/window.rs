//! A window: what a slot does at a time, written down before any of it is done.

use std::ops::Range;

use enec_core::Source;
use enec_format::Dtype;

use crate::wgpu::gpu::BINDING_ALIGNMENT;
use crate::wgpu::memory::Bytes;
use crate::wgpu::pipelines::{Kernel, Kind};

/// Places in a slot's buffers begin at multiples of this.
const PLACE_ALIGNMENT: u64 = 64;
/// What kernels read and write where it lies begins at multiples of this: they move 16 bytes at a time.
pub(crate) const KERNEL_ALIGNMENT: u64 = 16;

/// Where a job reads, with what must be known of device memory.
#[derive(Debug, Clone)]
pub(crate) enum Origin<'a> {
    /// Host memory.
    Host(&'a [u8]),
    /// Device memory.
    Memory(Bytes),
}

impl<'a> Origin<'a> {
    /// The source of a job.
    ///
    /// # Errors
    ///
    /// If it is not this backend's memory.
    pub(crate) fn new(source: &'a Source<'_>) -> enec_core::Result<Self> {
        Ok(match source {
            Source::Host(bytes) => Self::Host(bytes),
            Source::Device(slice) => Self::Memory(Bytes::of(slice)?),
        })
    }
}

/// One of the two large buffers of a slot.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Space {
    /// What kernels read.
    Input,
    /// What kernels write.
    Output,
}

/// Bytes in a slot or in device memory.
#[derive(Debug, Clone)]
pub(crate) enum Place {
    /// So many bytes from an offset of a space.
    Slot(Space, u64, usize),
    /// Device memory.
    Memory(Bytes),
}

/// Where results go.
#[derive(Debug, Clone)]
pub(crate) enum To {
    /// To byte `at` of the host memory of job `job`.
    Host {
        /// Index of the job.
        job: usize,
        /// Byte of its target.
        at: usize,
    },
    /// To device memory of the same length.
    Memory(Bytes),
}

/// What a kernel binds: a whole space of the slot, or a piece of device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Bound {
    /// A space of the slot.
    Slot(Space),
    /// Device memory from an aligned offset on.
    Memory(Bytes),
}

impl Bound {
    /// Binds bytes that begin at a multiple of 16, with the words before them that the alignment brings along.
    ///
    /// Gives the number of these words too; `None` if that is more than can be bound.
    pub(crate) fn new(bytes: &Bytes, limit: u64) -> Option<(Self, u64)> {
        let offset = bytes.offset / BINDING_ALIGNMENT * BINDING_ALIGNMENT;
        let len = (bytes.offset + bytes.len as u64 - offset).next_multiple_of(4);
        let fits = bytes.offset.is_multiple_of(KERNEL_ALIGNMENT) && len <= limit && len > 0;
        let bound = Bytes { buffer: bytes.buffer.clone(), offset, len: usize::try_from(len).ok()? };
        fits.then_some((Self::Memory(bound), (bytes.offset - offset) / 4))
    }
}

/// One or, for encoding, three dispatches over the same parts.
#[derive(Debug)]
pub(crate) struct Dispatch {
    pub(crate) kernel: Kernel,
    pub(crate) dtype: Dtype,
    pub(crate) kind: Kind,
    pub(crate) source: Bound,
    pub(crate) target: Bound,
    /// The parts' words.
    pub(crate) parts: Vec<u32>,
    pub(crate) count: u32,
    /// Workgroups.
    pub(crate) blocks: u32,
}

/// Work for one slot.
#[derive(Debug, Default)]
pub(crate) struct Window<'a> {
    /// Bytes in use of each buffer.
    pub(crate) input: u64,
    pub(crate) output: u64,
    pub(crate) scratch: u64,
    /// Words at the start of the scratch memory that the host wants to know after the kernels.
    pub(crate) status_words: usize,
    /// Host bytes and where in the input they go, in ascending order.
    pub(crate) host: Vec<(u64, &'a [u8])>,
    /// Device bytes and where in the input they go.
    pub(crate) gathered: Vec<(u64, Bytes)>,
    pub(crate) dispatches: Vec<Dispatch>,
    /// Results that need not wait for a status.
    pub(crate) results: Vec<(Place, To)>,
    /// Decoded bytes of all that is in it.
    pub(crate) load: usize,
}

impl<'a> Window<'a> {
    /// Whether nothing has been written down.
    pub(crate) fn is_empty(&self) -> bool {
        self.host.is_empty() && self.gathered.is_empty() && self.dispatches.is_empty() && self.results.is_empty()
    }

    /// Takes room in a space.
    pub(crate) fn take(&mut self, space: Space, len: usize) -> u64 {
        let end = match space {
            Space::Input => &mut self.input,
            Space::Output => &mut self.output,
        };
        let start = *end;
        *end = (start + len as u64).next_multiple_of(PLACE_ALIGNMENT);
        start
    }

    /// Takes room for words in the scratch memory and gives the index of the first.
    pub(crate) fn take_scratch(&mut self, words: usize) -> u32 {
        let start = self.scratch;
        self.scratch += 4 * words as u64;
        word(start)
    }

    /// Brings a range of a source into the input and gives the offset there.
    pub(crate) fn bring(&mut self, from: &Origin<'a>, range: Range<usize>) -> u64 {
        let at = self.take(Space::Input, range.len());
        match from {
            _ if range.is_empty() => {}
            Origin::Host(bytes) => self.host.push((at, &bytes[range])),
            Origin::Memory(bytes) => self.gathered.push((at, bytes.part(range))),
        }
        at
    }

    /// The dispatch that a part can join, new if there is none yet.
    pub(crate) fn dispatch(
        &mut self,
        kernel: Kernel,
        dtype: Dtype,
        kind: Kind,
        source: &Bound,
        target: &Bound,
    ) -> &mut Dispatch {
        let joins = |dispatch: &Dispatch| {
            dispatch.kernel == kernel
                && (dispatch.dtype, dispatch.kind) == (dtype, kind)
                && (&dispatch.source, &dispatch.target) == (source, target)
        };
        let index = self.dispatches.iter().position(joins).unwrap_or_else(|| {
            let (source, target) = (source.clone(), target.clone());
            let parts = Vec::new();
            self.dispatches.push(Dispatch { kernel, dtype, kind, source, target, parts, count: 0, blocks: 0 });
            self.dispatches.len() - 1
        });
        &mut self.dispatches[index]
    }
}

/// The index of the word at a byte offset into something that is bound, which has at most 2^31 bytes.
pub(crate) fn word(offset: u64) -> u32 {
    count(offset / 4)
}

/// A number of words, tiles or blocks of something that is bound.
pub(crate) fn count(number: u64) -> u32 {
    u32::try_from(number).unwrap_or(u32::MAX)
}
