//! Where encoded and decoded bytes go: into a file, by a thread of its own, while the next window is in work.

use std::borrow::Cow;
use std::fs::File;
use std::io::{Seek, SeekFrom, Write};
use std::ops::Range;
use std::path::Path;
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::{panic, thread};

use super::IoContext;
use super::buffer::AlignedBuffer;
use super::timings::Stopwatch;
use crate::{Error, Result};

/// Windows that may wait to be written. One is enough to keep the disk busy while the next is in work.
const WAITING: usize = 1;

/// A position and the bytes of a buffer that belong there.
pub(crate) type Part = (u64, Range<usize>);

/// Takes bytes at positions. What was never written is zero.
pub(crate) trait Destination<'a> {
    /// Writes parts of `buffer` and leaves a buffer in its place that may hold anything.
    fn write_parts(&mut self, buffer: &mut AlignedBuffer, parts: Vec<Part>) -> Result<()>;

    /// Writes `bytes` at `offset`.
    fn write_at(&mut self, offset: u64, bytes: Cow<'a, [u8]>) -> Result<()>;

    /// Forgets what was written at `len` and beyond.
    fn truncate(&mut self, len: u64) -> Result<()>;

    /// Cores that it wants for itself while the next window is in work.
    fn busy_cores(&mut self) -> usize {
        0
    }
}

/// What the writing thread is asked to do, in this order.
enum Order<'a> {
    Parts(AlignedBuffer, Vec<Part>),
    Bytes(u64, Cow<'a, [u8]>),
    Truncate(u64),
}

/// Hands everything to a thread that writes. Errors come out of [`write_behind`].
pub(crate) struct WriteBehind<'a> {
    orders: SyncSender<Order<'a>>,
    written: Receiver<AlignedBuffer>,
    idle: Vec<AlignedBuffer>,
    /// Buffers that have not come back from the thread.
    unwritten: usize,
}

/// Runs `work` with a destination that writes into `file`, which holds nothing but zeros and lies at `path`, and waits until all is written.
///
/// # Errors
///
/// [`Error::Io`] from writing, otherwise that of `work`.
pub(crate) fn write_behind<'a, T>(
    file: &File,
    path: &Path,
    stopwatch: &Stopwatch,
    work: impl FnOnce(&mut WriteBehind<'a>) -> Result<T>,
) -> Result<T> {
    thread::scope(|scope| {
        let (orders, queue) = sync_channel(WAITING);
        let (done, written) = channel();
        let writer = scope.spawn(move || Writer { file, path, stopwatch, position: 0 }.run(queue, &done));
        let result = work(&mut WriteBehind { orders, written, idle: Vec::new(), unwritten: 0 });
        // The orders end with the destination, and the thread with them.
        match writer.join() {
            Ok(Ok(())) => result,
            Ok(Err(error)) => Err(error),
            Err(panicked) => panic::resume_unwind(panicked),
        }
    })
}

impl<'a> WriteBehind<'a> {
    fn order(&self, order: Order<'a>) -> Result<()> {
        // The thread ends early only after an error, which goes before this one.
        self.orders.send(order).map_err(|_| Error::Cancelled)
    }

    fn take_back(&mut self) {
        let before = self.idle.len();
        self.idle.extend(self.written.try_iter());
        self.unwritten -= self.idle.len() - before;
    }
}

impl<'a> Destination<'a> for WriteBehind<'a> {
    fn write_parts(&mut self, buffer: &mut AlignedBuffer, parts: Vec<Part>) -> Result<()> {
        self.take_back();
        let spare = match self.idle.pop() {
            Some(spare) => spare,
            // One with the thread, and those that wait.
            None if self.unwritten < WAITING + 1 => AlignedBuffer::default(),
            None => {
                let spare = self.written.recv().map_err(|_| Error::Cancelled)?;
                self.unwritten -= 1;
                spare
            }
        };
        self.unwritten += 1;
        self.order(Order::Parts(std::mem::replace(buffer, spare), parts))
    }

    fn write_at(&mut self, offset: u64, bytes: Cow<'a, [u8]>) -> Result<()> {
        self.order(Order::Bytes(offset, bytes))
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        self.order(Order::Truncate(len))
    }

    /// One while a whole window waits to be written: then it is for the thread to catch up. On two cores a thread that writes and two that
    /// decode take turns, and all wait for the one that was interrupted.
    fn busy_cores(&mut self) -> usize {
        self.take_back();
        usize::from(self.unwritten > 1)
    }
}

/// The thread's side.
struct Writer<'a> {
    file: &'a File,
    path: &'a Path,
    stopwatch: &'a Stopwatch,
    position: u64,
}

impl Writer<'_> {
    fn run(mut self, queue: Receiver<Order<'_>>, done: &Sender<AlignedBuffer>) -> Result<()> {
        for order in queue {
            match order {
                Order::Parts(buffer, parts) => {
                    for (offset, range) in parts {
                        self.write(offset, &buffer.bytes()[range])?;
                    }
                    // Nobody waits for the last ones.
                    let _ = done.send(buffer);
                }
                Order::Bytes(offset, bytes) => self.write(offset, &bytes)?,
                Order::Truncate(len) => self.file.set_len(len).cannot("write", self.path)?,
            }
        }
        Ok(())
    }

    fn write(&mut self, offset: u64, bytes: &[u8]) -> Result<()> {
        if bytes.is_empty() {
            return Ok(());
        }
        if self.position != offset {
            self.file.seek(SeekFrom::Start(offset)).cannot("write", self.path)?;
        }
        self.stopwatch.write.time(|| (&*self.file).write_all(bytes)).cannot("write", self.path)?;
        self.position = offset + bytes.len() as u64;
        Ok(())
    }
}

/// Bytes that nobody wants to have: only what is told about them counts.
#[derive(Debug)]
pub(crate) struct Nowhere;

impl<'a> Destination<'a> for Nowhere {
    fn write_parts(&mut self, _buffer: &mut AlignedBuffer, _parts: Vec<Part>) -> Result<()> {
        Ok(())
    }

    fn write_at(&mut self, _offset: u64, _bytes: Cow<'a, [u8]>) -> Result<()> {
        Ok(())
    }

    fn truncate(&mut self, _len: u64) -> Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Runs `work` with a file that cannot be written.
    fn write_unwritable(work: impl FnOnce(&mut WriteBehind<'_>) -> Result<()>) -> Result<()> {
        let temporary = tempfile::NamedTempFile::new().unwrap();
        let file = File::open(temporary.path()).unwrap();
        write_behind(&file, temporary.path(), &Stopwatch::default(), work)
    }

    #[test]
    fn whoever_waits_for_a_writer_that_failed_is_released_and_the_writers_error_is_what_is_told() {
        let buffers = |output: &mut WriteBehind<'_>| {
            let mut buffer = AlignedBuffer::default();
            loop {
                buffer.take(100);
                output.write_parts(&mut buffer, vec![(0, 0..100)])?;
            }
        };
        let bytes = |output: &mut WriteBehind<'_>| {
            loop {
                output.write_at(0, Cow::Borrowed(b"x"))?;
            }
        };
        // One that has nothing more to write, or an error of its own, learns of it too.
        let once = |output: &mut WriteBehind<'_>| output.write_at(0, Cow::Borrowed(b"x"));
        let argument = |output: &mut WriteBehind<'_>| {
            output.write_at(0, Cow::Borrowed(b"x"))?;
            Err(Error::Argument("of the test".into()))
        };
        for result in
            [write_unwritable(buffers), write_unwritable(bytes), write_unwritable(once), write_unwritable(argument)]
        {
            assert!(matches!(result, Err(Error::Io { action: "write", .. })), "{result:?}");
        }
    }

    #[cfg(unix)]
    #[test]
    fn the_writer_gets_a_core_while_a_whole_window_waits() {
        use std::io::Read;
        let (mut reader, writer) = std::io::pipe().unwrap();
        let file = File::from(std::os::fd::OwnedFd::from(writer));
        // More than fits into a pipe.
        const LEN: usize = 1 << 20;
        // A check that fails drops the reader, on which the writer waits.
        write_behind(&file, Path::new("pipe"), &Stopwatch::default(), move |output| {
            let mut buffer = AlignedBuffer::default();
            let mut windows = (0..).map(|index| vec![(index * LEN as u64, 0..LEN)]);
            assert_eq!(output.busy_cores(), 0);
            for busy_cores in [0, 1] {
                buffer.take(LEN);
                output.write_parts(&mut buffer, windows.next().unwrap())?;
                assert_eq!(output.busy_cores(), busy_cores);
            }
            reader.read_exact(&mut vec![0; 2 * LEN]).unwrap();
            while output.busy_cores() > 0 {
                std::thread::yield_now();
            }
            Ok(())
        })
        .unwrap();
    }

    #[test]
    fn a_panic_of_the_work_ends_the_thread() {
        let file = tempfile::NamedTempFile::new().unwrap();
        let result = panic::catch_unwind(|| {
            write_behind(file.as_file(), file.path(), &Stopwatch::default(), |output| -> Result<()> {
                output.write_at(3, Cow::Borrowed(b"x"))?;
                panic!("of the test")
            })
        });
        assert_eq!(result.unwrap_err().downcast_ref(), Some(&"of the test"));
        assert_eq!(std::fs::read(file.path()).unwrap(), b"\0\0\0x");
    }
}
