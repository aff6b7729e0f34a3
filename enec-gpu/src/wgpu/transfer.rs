//! Bytes as they are: uploads, downloads, copies, tails, and streams that are stored.

use std::collections::VecDeque;
use std::ops::Range;

use enec_core::{Result, TargetMut};
use enec_format::Dtype;

use crate::wgpu::gpu::BINDING_ALIGNMENT;
use crate::wgpu::memory::Bytes;
use crate::wgpu::pipelines::{INVOCATIONS, Kernel, Kind};
use crate::wgpu::ring::{Ring, Work};
use crate::wgpu::window::{Bound, Origin, Place, Space, To, Window, count};

/// Where a job writes.
#[derive(Debug)]
pub(crate) enum Destination<'a> {
    /// Host memory.
    Host(&'a mut [u8]),
    /// Device memory.
    Memory(Bytes),
}

impl<'a> Destination<'a> {
    /// The target of a job.
    ///
    /// # Errors
    ///
    /// If it is not this backend's memory.
    pub(crate) fn new(target: TargetMut<'a>) -> Result<Self> {
        Ok(match target {
            TargetMut::Host(bytes) => Self::Host(bytes),
            TargetMut::Device(slice) => Self::Memory(Bytes::of(slice)?),
        })
    }

    /// The way of a result to a range of this target, which is job `job`'s.
    pub(crate) fn to(&self, job: usize, range: Range<usize>) -> To {
        match self {
            Self::Host(_) => To::Host { job, at: range.start },
            Self::Memory(bytes) => To::Memory(bytes.part(range)),
        }
    }

    /// Writes bytes that have come to the host.
    pub(crate) fn receive(&mut self, at: usize, bytes: &[u8]) {
        if let Self::Host(target) = self {
            target[at..at + bytes.len()].copy_from_slice(bytes);
        }
    }
}

/// Moves of bytes, cut into windows.
#[derive(Debug)]
pub(crate) struct Transfers<'a> {
    window_bytes: usize,
    moves: VecDeque<(Origin<'a>, To, usize)>,
}

impl<'a> Transfers<'a> {
    /// None yet, for windows of so many bytes.
    pub(crate) fn new(window_bytes: usize) -> Self {
        Self { window_bytes, moves: VecDeque::new() }
    }

    /// Adds a move of `range` of a source to byte `at` of a target. What is between host and host is done at once.
    pub(crate) fn add(
        &mut self,
        from: &Origin<'a>,
        range: Range<usize>,
        job: usize,
        target: &mut Destination<'_>,
        at: usize,
    ) {
        if range.is_empty() {
            return;
        }
        if let (Origin::Host(bytes), Destination::Host(target)) = (from, &mut *target) {
            target[at..at + range.len()].copy_from_slice(&bytes[range]);
            return;
        }
        let from = match from {
            Origin::Host(bytes) => Origin::Host(&bytes[range.clone()]),
            Origin::Memory(bytes) => Origin::Memory(bytes.part(range.clone())),
        };
        let to = target.to(job, at..at + range.len());
        self.moves.push_back((from, to, range.len()));
    }

    /// Fills a window with as many moves as it holds.
    pub(crate) fn fill(&mut self, window: &mut Window<'a>) {
        while window.load < self.window_bytes
            && let Some((from, to, len)) = self.moves.pop_front()
        {
            let taken = len.min(self.window_bytes - window.load);
            let cut = |at: usize, end: usize| {
                let from = match &from {
                    Origin::Host(bytes) => Origin::Host(&bytes[at..end]),
                    Origin::Memory(bytes) => Origin::Memory(bytes.part(at..end)),
                };
                let to = match &to {
                    To::Host { job, at: start } => To::Host { job: *job, at: start + at },
                    To::Memory(bytes) => To::Memory(bytes.part(at..end)),
                };
                (from, to)
            };
            let (first, first_to) = cut(0, taken);
            window.load += taken;
            // What goes to the host is read where it lies.
            let place = match (&first, &first_to) {
                (Origin::Memory(bytes), To::Host { .. }) => Place::Memory(bytes.clone()),
                _ => Self::bring(window, &first, taken),
            };
            window.results.push((place, first_to));
            if taken < len {
                let (rest, rest_to) = cut(taken, len);
                self.moves.push_front((rest, rest_to, len - taken));
            }
        }
    }

    /// Brings bytes into the input at an offset that has the same place in a word, so that whole words can be gathered.
    fn bring(window: &mut Window<'a>, from: &Origin<'a>, len: usize) -> Place {
        match from {
            Origin::Host(_) => Place::Slot(Space::Input, window.bring(from, 0..len), len),
            Origin::Memory(bytes) => {
                let before = usize::try_from(bytes.offset % 4).unwrap_or(0);
                let words = (before + len).next_multiple_of(4);
                let at = window.take(Space::Input, words);
                let whole = Bytes { buffer: bytes.buffer.clone(), offset: bytes.offset - before as u64, len: words };
                window.gathered.push((at, whole));
                Place::Slot(Space::Input, at + before as u64, len)
            }
        }
    }
}

/// A transfer that is a call of its own.
struct Call<'a, 'h> {
    transfers: Transfers<'a>,
    target: Destination<'h>,
}

impl<'a> Work<'a> for Call<'a, '_> {
    fn next_window(&mut self) -> Option<Window<'a>> {
        let mut window = Window::default();
        self.transfers.fill(&mut window);
        (!window.is_empty()).then_some(window)
    }

    fn receive(&mut self, _: usize, at: usize, bytes: &[u8]) {
        self.target.receive(at, bytes);
    }
}

/// Copies all bytes of a source.
///
/// # Errors
///
/// The device's.
pub(crate) fn run<'a>(ring: &mut Ring, from: &Origin<'a>, mut target: Destination<'_>, len: usize) -> Result<()> {
    let mut transfers = Transfers::new(ring.gpu.window_bytes);
    transfers.add(from, 0..len, 0, &mut target, 0);
    ring.run(&mut Call { transfers, target }, None)
}

/// Copies device memory by the kernel that other kernels are compared with, as far as both sides are aligned to 16 bytes and in different
/// buffers, and by moves otherwise.
///
/// # Errors
///
/// The device's.
pub(crate) fn copy(ring: &mut Ring, from: &Bytes, to: &Bytes) -> Result<()> {
    struct Copies<'a> {
        windows: VecDeque<Window<'a>>,
    }
    impl<'a> Work<'a> for Copies<'a> {
        fn next_window(&mut self) -> Option<Window<'a>> {
            self.windows.pop_front()
        }

        fn receive(&mut self, _: usize, _: usize, _: &[u8]) {}
    }

    const UNIT: usize = 16;
    let aligned = |bytes: &Bytes| bytes.offset.is_multiple_of(BINDING_ALIGNMENT);
    let mut copied = 0;
    let mut windows = VecDeque::new();
    if from.buffer != to.buffer && aligned(from) && aligned(to) {
        let largest =
            usize::try_from(ring.gpu.binding_limit / BINDING_ALIGNMENT * BINDING_ALIGNMENT).unwrap_or(usize::MAX);
        let end = from.len / UNIT * UNIT;
        while copied < end {
            let part = copied..end.min(copied + largest);
            copied = part.end;
            let (source, target) = (from.part(part.clone()), to.part(part.clone()));
            let mut window = Window::default();
            let (source, target) = (Bound::Memory(source), Bound::Memory(target));
            let dispatch = window.dispatch(Kernel::Copy, Dtype::Opaque, Kind::GENERIC, &source, &target);
            dispatch.blocks = count((part.len() / UNIT).div_ceil(INVOCATIONS as usize) as u64);
            windows.push_back(window);
        }
    }
    ring.run(&mut Copies { windows }, None)?;
    let rest = copied..from.len;
    run(ring, &Origin::Memory(from.part(rest.clone())), Destination::Memory(to.part(rest.clone())), rest.len())
}
