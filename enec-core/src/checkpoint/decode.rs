//! Decodes tensors window by window, small ones together, and checks their hashes.

use std::collections::VecDeque;
use std::ops::Range;

use enec_format::geometry::BLOCK_TILES;
use enec_format::hash::{combine, content_pieces};
use enec_format::{DecodePlan, Stream};

use super::buffer::{AlignedBuffer, split_front, whole_pieces};
use super::comparison::{Comparison, first_difference};
use super::tensor::{StoredForm, TensorRef};
use super::timings::TimedSink;
use super::work::Work;
use super::write::Part;
use crate::{DecodeJob, PieceHashes, PieceSink, Result, Source, Target};

/// Takes what was decoded. An error ends the decoding of all tensors.
pub(crate) trait Receiver<'a> {
    /// The next bytes of a tensor, which start at byte `offset` of it. Their hash is not checked yet.
    fn bytes(&mut self, tensor: TensorRef<'a>, offset: u64, bytes: &[u8]) -> Result<()>;

    /// What the tensor ought to be decoded to, if that is known.
    fn expected(&self, _tensor: TensorRef<'a>) -> Option<&[u8]> {
        None
    }

    /// The tensor is not what is expected; byte `byte` is the first of those to be received next that differs. They are received all the same.
    fn differs(&mut self, _tensor: TensorRef<'a>, _byte: u64) -> Result<()> {
        Ok(())
    }

    /// The next bytes of several tensors, which lie in `buffer` and may be taken away with it if another is left in its place.
    fn window(&mut self, buffer: &mut AlignedBuffer, parts: Vec<(TensorRef<'a>, Part)>) -> Result<()> {
        parts.into_iter().try_for_each(|(tensor, (offset, range))| self.bytes(tensor, offset, &buffer.bytes()[range]))
    }

    /// The next bytes of a tensor, as they lie in its file.
    fn stored(&mut self, tensor: TensorRef<'a>, offset: u64, bytes: &'a [u8]) -> Result<()> {
        self.bytes(tensor, offset, bytes)
    }

    /// Cores that it wants for itself while the next bytes are decoded.
    fn busy_cores(&mut self) -> usize {
        0
    }

    /// The tensor has come to its end: all of it was received and agrees with its hashes, or something is wrong with it. Bytes of
    /// other tensors may come in between, but never after the end of their own.
    fn end(&mut self, tensor: TensorRef<'a>, result: Result<()>) -> Result<()>;
}

/// Which hashes are checked beside those of the decoded bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Check {
    /// None.
    Content,
    /// Those of the stored bytes of streams.
    ContentAndPayload,
}

/// Decodes `tensors` one after the other.
///
/// # Errors
///
/// Those of the receiver, and [`Error::Device`](crate::Error::Device). What is wrong with a tensor goes to the receiver.
pub(crate) fn decode_tensors<'a>(
    work: Work<'_>,
    tensors: impl IntoIterator<Item = TensorRef<'a>>,
    check: Check,
    receiver: &mut dyn Receiver<'a>,
) -> Result<()> {
    let mut decoder = Decoder { work, tensors: tensors.into_iter(), check, receiver, begun: VecDeque::new() };
    let mut buffer = AlignedBuffer::default();
    loop {
        let windows = decoder.next_windows()?;
        if windows.is_empty() {
            return Ok(());
        }
        decoder.decode(windows, &mut buffer)?;
    }
}

struct Decoder<'a, 'r, Tensors> {
    work: Work<'r>,
    tensors: Tensors,
    check: Check,
    receiver: &'r mut dyn Receiver<'a>,
    /// Tensors that wait for their first window; the first may have had some.
    begun: VecDeque<Begun<'a>>,
}

/// A tensor whose stream is being decoded.
struct Begun<'a> {
    tensor: TensorRef<'a>,
    stream: Stream<'a>,
    hashes: PieceHashes,
    done: usize,
}

/// Whole blocks of one tensor; the last window of a tensor also has its short last block and its tail.
struct Window<'a> {
    tensor: Begun<'a>,
    tiles: Range<usize>,
    plan: DecodePlan,
}

impl<'a, Tensors: Iterator<Item = TensorRef<'a>>> Decoder<'a, '_, Tensors> {
    /// Windows of different tensors that fit together into the size of one.
    fn next_windows(&mut self) -> Result<Vec<Window<'a>>> {
        let mut windows = Vec::new();
        let mut bytes = 0;
        while let Some(tensor) = self.next_tensor()? {
            let (tiles, is_last) = tensor.next_window(self.work.window_bytes);
            let plan = DecodePlan::whole(&tensor.stream).with_tiles(tiles.clone(), is_last)?;
            bytes += plan.target_len();
            if !windows.is_empty() && bytes > self.work.window_bytes {
                self.begun.push_front(tensor);
                break;
            }
            windows.push(Window { tensor, tiles, plan });
        }
        Ok(windows)
    }

    /// The next tensor that is a stream and sound. Others are dealt with on the way.
    fn next_tensor(&mut self) -> Result<Option<Begun<'a>>> {
        if let Some(tensor) = self.begun.pop_front() {
            return Ok(Some(tensor));
        }
        while let Some(tensor) = self.tensors.next() {
            match tensor.stream() {
                Ok(Some(stream)) => {
                    let hashes = PieceHashes::new(stream.layout());
                    return Ok(Some(Begun { tensor, stream, hashes, done: 0 }));
                }
                Ok(None) => self.pass_on(tensor)?,
                Err(error) => self.receiver.end(tensor, Err(error))?,
            }
        }
        Ok(None)
    }

    /// Hands on a tensor that lies in the file as it is.
    fn pass_on(&mut self, tensor: TensorRef<'a>) -> Result<()> {
        let mut hashes = Vec::new();
        let mut offset = 0;
        for bytes in tensor.stored_bytes().chunks(whole_pieces(self.work.window_bytes)) {
            // An original has no hash to compare with.
            if tensor.form() == StoredForm::Carried {
                hashes.extend(content_pieces(bytes));
            }
            let expected = self.receiver.expected(tensor);
            if let Some(byte) = expected.and_then(|expected| first_difference(expected, offset, bytes)) {
                self.receiver.differs(tensor, byte)?;
            }
            self.receiver.stored(tensor, offset, bytes)?;
            offset += bytes.len() as u64;
        }
        let result = tensor.check_carried(|| combine(hashes));
        self.receiver.end(tensor, result)
    }

    fn decode(&mut self, windows: Vec<Window<'a>>, buffer: &mut AlignedBuffer) -> Result<()> {
        let mut end = 0;
        let ranges = Vec::from_iter(windows.iter().map(|window| {
            let start = end;
            end += window.plan.target_len();
            start..end
        }));
        let decoded = buffer.take(end);
        let busy_cores = self.receiver.busy_cores();
        let (results, differences) = {
            let Work { codec, stopwatch, .. } = self.work;
            let sinks = Vec::from_iter(windows.iter().map(|window| {
                let mut sink = window.tensor.hashes.sink(0);
                if self.check == Check::Content {
                    sink = sink.without_payload();
                }
                let expected = self.receiver.expected(window.tensor.tensor);
                Comparison::new(TimedSink { sink, stopwatch }, window.tensor.stream.dtype(), expected)
            }));
            let mut rest = &mut *decoded;
            let jobs = windows.iter().zip(&sinks).map(|(window, sink)| {
                let target = Target::Host(split_front(&mut rest, window.plan.target_len()));
                let source = Source::Host(window.tensor.stream.bytes());
                DecodeJob::new(window.plan.clone(), source, target).with_pieces(sink)
            });
            let jobs = jobs.collect();
            let results = stopwatch.code.time(|| codec.decode_jobs(jobs, busy_cores))?;
            let compared = sinks.into_iter().zip(&windows).zip(&ranges);
            let differences =
                compared.map(|((sink, window), range)| sink.finish(window.decoded_offset(), &decoded[range.clone()]));
            (results, Vec::from_iter(differences))
        };
        let (mut parts, mut ends) = (Vec::with_capacity(results.len()), Vec::new());
        for (((window, result), difference), range) in windows.into_iter().zip(results).zip(differences).zip(ranges) {
            let tensor = window.tensor.tensor;
            if result.is_ok() {
                if let Some(byte) = difference {
                    self.receiver.differs(tensor, byte)?;
                }
                parts.push((tensor, (window.decoded_offset(), range.clone())));
            }
            let end = match result {
                Ok(()) => self.finish(window, &decoded[range]).transpose(),
                Err(error) => Some(Err(error)),
            };
            ends.extend(end.map(|result| (tensor, result.map_err(|error| tensor.error(error)))));
        }
        self.receiver.window(buffer, parts)?;
        ends.into_iter().try_for_each(|(tensor, result)| self.receiver.end(tensor, result))
    }

    /// Checks the hashes of a tensor if this was its last window; otherwise nothing comes of it yet.
    fn finish(&mut self, window: Window<'a>, decoded: &[u8]) -> Result<Option<()>> {
        let Window { tensor: Begun { tensor, stream, hashes, .. }, tiles, .. } = window;
        hashes.sink(tiles.start / BLOCK_TILES).content(0, decoded);
        if tiles.end < stream.layout().tiles {
            self.begun.push_front(Begun { tensor, stream, hashes, done: tiles.end });
            return Ok(None);
        }
        if self.check == Check::ContentAndPayload {
            stream.header().check_payload(hashes.complete_payload(&stream))?;
        }
        // Every window has added its pieces: none is missing.
        stream.header().check_content(hashes.content().unwrap_or_default())?;
        Ok(Some(()))
    }
}

impl Window<'_> {
    /// Where its first byte lies in the tensor.
    fn decoded_offset(&self) -> u64 {
        self.tensor.stream.layout().decoded_range(self.tiles.clone()).start as u64
    }
}

impl Begun<'_> {
    /// The tiles of the next window, and whether it is the last.
    fn next_window(&self, window_bytes: usize) -> (Range<usize>, bool) {
        let layout = self.stream.layout();
        let blocks = (window_bytes / layout.dtype.tile_bytes() / BLOCK_TILES).max(1);
        let end = layout.tiles.min(self.done + blocks * BLOCK_TILES);
        (self.done..end, end == layout.tiles)
    }
}
