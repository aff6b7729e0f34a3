//! The ring of staging buffers: while the device works on what one turn brought, the host fills the next.
//!
//! A turn goes: the host puts bytes and jobs into a pair of buffers; one copy uploads them; the kernels run; what they left in the output
//! buffer is downloaded; the host takes it from there. Turns overlap, each in its own buffers, on queues of their own for upload, kernels
//! and download.

#![allow(unsafe_code, reason = "operations run after the calls that ask for them")]

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use super::launcher::{Address, Launcher, Queue, Result};
use super::staging::{Events, Staging};
use super::tables::{LARGEST_JOB, Tables};

/// What is put into a buffer starts at a multiple of this: kernels read 16 bytes at a time, and the bus likes whole lines.
const ALIGNMENT: usize = 256;

/// Parts of the output buffer with less than this between them are downloaded in one: a copy of its own takes as long.
const MERGED_GAP: usize = 64 << 10;

/// What goes through the ring.
pub(super) trait Work {
    /// What is known of a part of a turn until it comes back.
    type Piece;

    /// Fills one turn; nothing put in means that nothing is left.
    fn fill(&mut self, turn: &mut Turn<'_>) -> Result<Vec<Self::Piece>>;

    /// Takes what came back. Turns come back in the order in which they were filled.
    fn finish(&mut self, pieces: Vec<Self::Piece>, output: &mut Output<'_>) -> Result<()>;
}

/// The buffers, used in turn.
#[derive(Debug)]
pub(super) struct Ring {
    launcher: Arc<dyn Launcher>,
    slots: Vec<Slot>,
}

#[derive(Debug)]
struct Slot {
    input: Staging,
    output: Staging,
    events: Events,
}

impl Ring {
    /// A ring of `turns` pairs of buffers of `len` bytes each.
    pub(super) fn new(launcher: &Arc<dyn Launcher>, turns: usize, len: usize) -> Result<Self> {
        let slot = |_| {
            let (input, output) = (Staging::new(launcher, len)?, Staging::new(launcher, len)?);
            Ok(Slot { input, output, events: Events::new(&**launcher)? })
        };
        Ok(Self { launcher: Arc::clone(launcher), slots: (0..turns).map(slot).collect::<Result<_>>()? })
    }

    /// Takes work through the ring to its end. Returns the time that the kernels took, if the launcher tells.
    pub(super) fn run<W: Work>(&mut self, work: &mut W) -> Result<Option<Duration>> {
        let result = self.turns(work);
        if result.is_err() {
            // What was begun must not write into buffers that are used again, nor into memory that is freed.
            self.launcher.drain();
        }
        result
    }

    fn turns<W: Work>(&mut self, work: &mut W) -> Result<Option<Duration>> {
        let mut under_way: Vec<Option<Vec<W::Piece>>> = self.slots.iter().map(|_| None).collect();
        let mut time = Some(Duration::ZERO);
        let turns = self.slots.len();
        let mut turn = 0;
        loop {
            if let Some(pieces) = under_way[turn].take() {
                time = time.zip(self.finish(turn, work, pieces)?).map(|(sum, time)| sum + time);
            }
            let slot = &mut self.slots[turn];
            let device = slot.input.address(0);
            // SAFETY: what was under way here has been waited for.
            let input = unsafe { slot.input.host() };
            let input_len = input.len();
            let mut filling = Turn {
                input,
                used: 0,
                device,
                output: slot.output.address(0),
                output_len: slot.output.len(),
                reserved: 0,
                downloads: Vec::new(),
                tables: Tables::default(),
            };
            let pieces = work.fill(&mut filling)?;
            if filling.tables.is_empty() {
                break;
            }
            let Turn { input, mut used, device, downloads, mut tables, .. } = filling;
            used = used.next_multiple_of(ALIGNMENT);
            let launches = tables.write(&mut input[used..], device + used as u64);
            used += tables.len();
            debug_assert!(used <= input_len, "a turn keeps room for its tables");
            let Slot { input, output, events } = slot;
            let launcher = &self.launcher;
            // SAFETY: both buffers belong to this turn until `completed` has been waited for, in `finish` or by draining. The tables have just been
            // written for these buffers and for memory that the work borrows until the turns are over.
            unsafe {
                input.upload(0..used)?;
                launcher.record(Queue::Upload, events.uploaded)?;
                launcher.wait(Queue::Compute, events.uploaded)?;
                launcher.record(Queue::Compute, events.started)?;
                launches.iter().try_for_each(|launch| launcher.launch(launch))?;
                launcher.record(Queue::Compute, events.computed)?;
                launcher.wait(Queue::Download, events.computed)?;
                merged(downloads).into_iter().try_for_each(|range| output.download(Queue::Download, range))?;
                launcher.record(Queue::Download, events.downloaded)?;
            }
            under_way[turn] = Some(pieces);
            turn = (turn + 1) % turns;
        }
        for turn in (turn..turns).chain(0..turn) {
            if let Some(pieces) = under_way[turn].take() {
                time = time.zip(self.finish(turn, work, pieces)?).map(|(sum, time)| sum + time);
            }
        }
        Ok(time)
    }

    /// Waits for a turn and hands over what it brought.
    fn finish<W: Work>(&mut self, turn: usize, work: &mut W, pieces: Vec<W::Piece>) -> Result<Option<Duration>> {
        let Slot { output, events, .. } = &mut self.slots[turn];
        self.launcher.synchronise(events.downloaded)?;
        let time = self.launcher.elapsed(events.started, events.computed)?;
        work.finish(pieces, &mut Output { launcher: &*self.launcher, staging: output, events: *events })?;
        Ok(time)
    }
}

/// A turn that is being filled.
pub(super) struct Turn<'r> {
    input: &'r mut [u8],
    used: usize,
    device: Address,
    output: Address,
    output_len: usize,
    reserved: usize,
    downloads: Vec<Range<usize>>,
    /// The jobs of this turn.
    pub(super) tables: Tables,
}

impl Turn<'_> {
    /// Where the input starts on the device.
    pub(super) fn base(&self) -> Address {
        self.device
    }

    /// Whether nothing has been put in or reserved yet.
    pub(super) fn is_empty(&self) -> bool {
        self.used == 0 && self.reserved == 0 && self.tables.is_empty()
    }

    /// Bytes that can still be put in, in one piece, with the jobs for them; `None` if there is no more room for jobs.
    pub(super) fn input_room(&self) -> Option<usize> {
        let tables = self.tables.len() + 2 * LARGEST_JOB;
        self.input.len().checked_sub(self.used.next_multiple_of(ALIGNMENT) + tables + 2 * ALIGNMENT)
    }

    /// Bytes that can still be reserved, in one piece.
    pub(super) fn output_room(&self) -> usize {
        self.output_len.saturating_sub(self.reserved.next_multiple_of(ALIGNMENT))
    }

    /// Puts `len` bytes in. Returns where they will be on the device, and where they are to be written now.
    ///
    /// # Panics
    ///
    /// Beyond [`input_room`](Self::input_room).
    pub(super) fn put(&mut self, len: usize) -> (Address, &mut [u8]) {
        assert!(self.input_room().is_some_and(|room| len <= room), "{len} bytes put into a full buffer");
        let start = self.used.next_multiple_of(ALIGNMENT);
        self.used = start + len;
        (self.device + start as u64, &mut self.input[start..self.used])
    }

    /// Reserves `len` bytes of the output. Returns where they are on the device, and their range of the output.
    ///
    /// # Panics
    ///
    /// Beyond [`output_room`](Self::output_room).
    pub(super) fn reserve(&mut self, len: usize) -> (Address, Range<usize>) {
        assert!(len <= self.output_room(), "{len} bytes reserved of a full buffer");
        let start = self.reserved.next_multiple_of(ALIGNMENT);
        self.reserved = start + len;
        (self.output + start as u64, start..self.reserved)
    }

    /// Has a part of the output downloaded as soon as the kernels have run.
    pub(super) fn download(&mut self, range: Range<usize>) {
        self.downloads.push(range);
    }
}

/// The output of a turn that has run.
pub(super) struct Output<'r> {
    launcher: &'r dyn Launcher,
    staging: &'r mut Staging,
    events: Events,
}

impl Output<'_> {
    /// What was downloaded; elsewhere anything.
    pub(super) fn bytes(&mut self) -> &[u8] {
        // SAFETY: the turn has been waited for, and so has every call of `fetch`.
        unsafe { self.staging.host() }
    }

    /// Downloads more.
    pub(super) fn fetch(&mut self, ranges: Vec<Range<usize>>) -> Result<()> {
        if ranges.iter().all(Range::is_empty) {
            return Ok(());
        }
        for range in merged(ranges) {
            // SAFETY: the turn's kernels and downloads have run, so nothing else uses the buffers before this has been waited for.
            unsafe { self.staging.download(Queue::Remainder, range)? };
        }
        self.launcher.record(Queue::Remainder, self.events.completed)?;
        self.launcher.synchronise(self.events.completed)
    }
}

/// Ascending ranges, with those that lie close together merged.
fn merged(ranges: Vec<Range<usize>>) -> Vec<Range<usize>> {
    let mut result: Vec<Range<usize>> = Vec::new();
    for range in ranges.into_iter().filter(|range| !range.is_empty()) {
        match result.last_mut() {
            Some(last) if range.start >= last.end && range.start - last.end <= MERGED_GAP => last.end = range.end,
            _ => result.push(range),
        }
    }
    result
}

/// Copies bytes on the host, large ones by several threads: one does not keep up with the bus.
pub(super) fn copy_bytes(threads: usize, source: &[u8], target: &mut [u8]) {
    const PART: usize = 1 << 20;
    let part = source.len().div_ceil(threads.max(1)).next_multiple_of(4096).max(PART);
    if source.len() <= part {
        return target.copy_from_slice(source);
    }
    let mut parts = source.chunks(part).zip(target.chunks_mut(part));
    let first = parts.next();
    std::thread::scope(|scope| {
        for (source, target) in parts {
            scope.spawn(move || target.copy_from_slice(source));
        }
        if let Some((source, target)) = first {
            target.copy_from_slice(source);
        }
    });
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn near_ranges_are_merged() {
        let far = 30 + MERGED_GAP;
        assert_eq!(merged(vec![0..10, 10..10, 20..30, far..far + 1]), vec![0..far + 1]);
        assert_eq!(merged(vec![0..10, 20..30, far + 1..far + 2, 5 * far..6 * far]).len(), 3);
        assert!(merged(vec![0..0, 5..5]).is_empty());
    }

    #[test]
    fn copies_copy() {
        for len in [0, 1, 5000, (3 << 20) + 77] {
            let source: Vec<u8> = (0..=250).cycle().take(len).collect();
            for threads in [1, 2, 7] {
                let mut target = vec![0xAA; len];
                copy_bytes(threads, &source, &mut target);
                assert!(source == target, "{len} bytes, {threads} threads");
            }
        }
    }
}
