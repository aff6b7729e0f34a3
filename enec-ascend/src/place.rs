//! Where the bytes of jobs lie: on the host or on the device, as they are or in scratch memory on a boundary that kernels can use.

use std::ops::Range;

use enec_core::{DeviceSlice, Error, Result, Source, TargetMut};

use crate::acl::memory::{Memory, Span};
use crate::queue::Batch;

/// Boundary of everything in scratch memory: transfers on it are fastest.
const SCRATCH_ALIGNMENT: usize = 512;

/// Ranges of scratch memory, given out before there is any.
#[derive(Debug, Default)]
pub(crate) struct Room {
    end: usize,
}

impl Room {
    /// A range that nothing else has.
    pub(crate) fn take(&mut self, len: usize) -> Range<usize> {
        let start = self.end;
        self.end = start + len.next_multiple_of(SCRATCH_ALIGNMENT);
        start..start + len
    }

    /// Bytes that have been given out.
    pub(crate) fn len(&self) -> usize {
        self.end
    }
}

/// The bytes of a slice of this backend's memory.
///
/// # Errors
///
/// [`Error::Argument`] if it is another backend's.
pub(crate) fn span(slice: &DeviceSlice) -> Result<Span<'_>> {
    let memory: Option<&Memory> = slice.buffer().downcast();
    let memory = memory.ok_or_else(|| Error::Argument("device memory of another backend".into()))?;
    Ok(memory.span(slice.range()))
}

/// Device memory of a job's source, if kernels can read it there.
pub(crate) fn usable_source<'j>(source: &'j Source<'_>, alignment: usize) -> Result<Option<Span<'j>>> {
    match source {
        Source::Host(_) => Ok(None),
        Source::Device(slice) => Ok(Some(span(slice)?).filter(|span| span.is_aligned(alignment))),
    }
}

/// Device memory of a job's target, if kernels can write it there.
pub(crate) fn usable_target<'j>(target: &TargetMut<'j>, alignment: usize) -> Result<Option<Span<'j>>> {
    match *target {
        TargetMut::Host(_) => Ok(None),
        TargetMut::Device(slice) => Ok(Some(span(slice)?).filter(|span| span.is_aligned(alignment))),
    }
}

/// Device memory: a job's own, or a range of scratch memory.
pub(crate) enum Place<'j> {
    Own(Span<'j>),
    Scratch(Range<usize>),
}

impl<'j> Place<'j> {
    /// A job's own memory, or else a range.
    pub(crate) fn of(own: Option<Span<'j>>, range: impl FnOnce() -> Range<usize>) -> Self {
        own.map_or_else(|| Self::Scratch(range()), Self::Own)
    }

    /// The memory, once there is scratch memory.
    pub(crate) fn span<'s>(&self, scratch: Span<'s>) -> Span<'s>
    where
        'j: 's,
    {
        match self {
            Self::Own(span) => *span,
            Self::Scratch(range) => scratch.slice(range.clone()),
        }
    }
}

impl Batch<'_> {
    /// Brings a part of a source into device memory.
    pub(crate) fn fetch(&self, source: &Source<'_>, range: Range<usize>, target: Span<'_>) -> Result<()> {
        match source {
            Source::Host(bytes) => self.done(self.entered.upload(&bytes[range], target)),
            Source::Device(slice) => {
                self.done(self.entered.copy_within(span(slice)?.slice(range), target, self.stream))
            }
        }
    }

    /// Takes device memory to a target, from byte `at` of it on.
    pub(crate) fn deliver(&self, source: Span<'_>, target: &mut TargetMut<'_>, at: usize) -> Result<()> {
        let range = at..at + source.len();
        match target {
            TargetMut::Host(bytes) => self.done(self.entered.download(source, &mut bytes[range])),
            TargetMut::Device(slice) => {
                self.done(self.entered.copy_within(source, span(slice)?.slice(range), self.stream))
            }
        }
    }

    /// Takes a part of a source to a target as it is, from byte `at` of it on.
    pub(crate) fn pass(
        &self,
        source: &Source<'_>,
        range: Range<usize>,
        target: &mut TargetMut<'_>,
        at: usize,
    ) -> Result<()> {
        match (source, target) {
            (Source::Host(bytes), TargetMut::Host(target)) => {
                target[at..at + range.len()].copy_from_slice(&bytes[range]);
                Ok(())
            }
            (Source::Host(_), TargetMut::Device(slice)) => {
                let target = span(slice)?.slice(at..at + range.len());
                self.fetch(source, range, target)
            }
            (Source::Device(slice), target) => self.deliver(span(slice)?.slice(range), target, at),
        }
    }

    /// Sets bytes of a target to zero.
    pub(crate) fn pad(&self, target: &mut TargetMut<'_>, range: Range<usize>) -> Result<()> {
        match target {
            TargetMut::Host(bytes) => {
                bytes[range].fill(0);
                Ok(())
            }
            TargetMut::Device(slice) => self.done(self.entered.queue_clear(span(slice)?.slice(range), self.stream)),
        }
    }
}
