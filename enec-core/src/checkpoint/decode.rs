//! Decodes tensors window by window, small ones together, and checks their hashes.

use std::collections::VecDeque;
use std::ops::Range;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use enec_format::geometry::{BLOCK_ELEMENTS, BLOCK_TILES};
use enec_format::hash::{combine, content_pieces};
use enec_format::{DecodePlan, Dtype, Stream};

use super::buffer::{AlignedBuffer, split_front, whole_pieces};
use super::tensor::{StoredForm, TensorRef};
use super::timings::TimedSink;
use super::work::Work;
use super::write::Part;
use crate::{DecodeJob, Feed, PieceHashes, PieceSink, Result, Source, Target};

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
        let lengths = Vec::from_iter(windows.iter().map(|window| window.plan.target_len()));
        let decoded = buffer.take(lengths.iter().sum());
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
            let results = stopwatch.code.time(|| codec.decode_jobs(jobs))?;
            let mut rest = &*decoded;
            let decoded = windows.iter().map(|window| {
                let (front, back) = rest.split_at(window.plan.target_len());
                rest = back;
                (window.decoded_offset(), front)
            });
            let differences =
                sinks.into_iter().zip(decoded).map(|(sink, (offset, decoded))| sink.finish(offset, decoded));
            (results, Vec::from_iter(differences))
        };
        let (mut parts, mut ends, mut start) = (Vec::with_capacity(results.len()), Vec::new(), 0);
        for (((window, result), difference), length) in windows.into_iter().zip(results).zip(differences).zip(lengths) {
            let range = start..start + length;
            start = range.end;
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

/// Compares what is decoded with what is expected, by the threads that decode and while it is in their caches.
struct Comparison<'a, Sink> {
    sink: Sink,
    block_bytes: usize,
    expected: Option<&'a [u8]>,
    /// Bytes that a backend has handed over.
    compared: AtomicUsize,
    /// The first byte of the tensor that differs.
    difference: AtomicU64,
}

impl<'a, Sink> Comparison<'a, Sink> {
    fn new(sink: Sink, dtype: Dtype, expected: Option<&'a [u8]>) -> Self {
        let block_bytes = BLOCK_ELEMENTS * dtype.element_bytes();
        Self { sink, block_bytes, expected, compared: AtomicUsize::new(0), difference: AtomicU64::new(u64::MAX) }
    }

    fn compare(&self, offset: usize, decoded: &[u8]) {
        let Some(expected) = self.expected else { return };
        if let Some(byte) = first_difference(expected, offset as u64, decoded) {
            self.difference.fetch_min(byte, Ordering::Relaxed);
        }
        self.compared.fetch_add(decoded.len(), Ordering::Relaxed);
    }

    /// The first byte that differs, after comparing what the backend has not handed over.
    fn finish(self, offset: u64, decoded: &[u8]) -> Option<u64> {
        let difference = Some(self.difference.into_inner()).filter(|&byte| byte != u64::MAX);
        if self.compared.into_inner() < decoded.len() {
            return self.expected.and_then(|expected| first_difference(expected, offset, decoded));
        }
        difference
    }
}

impl<Sink: PieceSink> PieceSink for Comparison<'_, Sink> {
    fn content(&self, block: usize, decoded: &[u8]) {
        self.sink.content(block, decoded);
        self.compare(block * self.block_bytes, decoded);
    }

    fn payload(&self, block: usize, parts: &[&[u8]; 6]) {
        self.sink.payload(block, parts);
    }

    fn wants_payload(&self) -> bool {
        self.sink.wants_payload()
    }

    fn content_in_parts(&self, block: usize, feed: &mut Feed<'_>) {
        let mut offset = block * self.block_bytes;
        self.sink.content_in_parts(block, &mut |hash| {
            feed(&mut |bytes| {
                hash(bytes);
                self.compare(offset, bytes);
                offset += bytes.len();
            });
        });
    }

    fn payload_in_parts(&self, block: usize, lengths: [usize; 6], feed: &mut Feed<'_>) {
        self.sink.payload_in_parts(block, lengths, feed);
    }
}

/// The first byte of a tensor that is not what is expected, among these, which start at byte `offset` of it.
fn first_difference(expected: &[u8], offset: u64, bytes: &[u8]) -> Option<u64> {
    let expected = usize::try_from(offset).ok().and_then(|offset| expected.get(offset..)).unwrap_or(&[]);
    if expected.get(..bytes.len()) == Some(bytes) {
        return None;
    }
    let same = bytes.iter().zip(expected).take_while(|(left, right)| left == right).count();
    Some(offset + same as u64)
}

#[cfg(test)]
mod tests {
    use super::super::timings::Stopwatch;
    use super::*;

    /// Takes pieces and does nothing with them.
    struct Nothing;

    impl PieceSink for Nothing {
        fn content(&self, _block: usize, _decoded: &[u8]) {}
        fn payload(&self, _block: usize, _parts: &[&[u8]; 6]) {}
        fn content_in_parts(&self, _block: usize, feed: &mut Feed<'_>) {
            feed(&mut |_| {});
        }
    }

    type Report = dyn Fn(&dyn PieceSink, &[u8]);

    const BLOCK: usize = 2 * BLOCK_ELEMENTS;

    /// What is found where the decoded bytes are those from block 1 on of a tensor, and `report` hands some of them over.
    fn found(expected: &[u8], decoded: &[u8], report: impl Fn(&dyn PieceSink, &[u8])) -> Option<u64> {
        let comparison = Comparison::new(Nothing, Dtype::Bf16, Some(expected));
        report(&comparison, decoded);
        comparison.finish(BLOCK as u64, decoded)
    }

    fn report_all(sink: &dyn PieceSink, decoded: &[u8]) {
        // In neither order, and by both ways.
        let blocks = Vec::from_iter(decoded.chunks(BLOCK).enumerate());
        for (index, bytes) in [blocks[0], blocks[3], blocks[1], blocks[2]] {
            if index % 2 == 0 {
                sink.content(1 + index, bytes);
            } else {
                sink.content_in_parts(1 + index, &mut |take| bytes.chunks(5000).for_each(take));
            }
        }
    }

    #[test]
    fn the_first_difference_is_found_whoever_looks_for_it() {
        let decoded: Vec<u8> = (0..=250).cycle().take(3 * BLOCK + 100).collect();
        let same = [vec![9; BLOCK], decoded.clone()].concat();
        let reports: [&Report; 3] =
            [&|_, _| {}, &|sink, decoded| sink.content(2, &decoded[BLOCK..2 * BLOCK]), &report_all];
        for report in reports {
            assert_eq!(found(&same, &decoded, report), None);
            for at in [0, 7, BLOCK - 1, BLOCK + 5000, 2 * BLOCK + 1, 3 * BLOCK + 99] {
                let mut other = same.clone();
                // The last byte differs, too, and what lies before the window does not count.
                other[0] ^= 1;
                other[BLOCK + at] ^= 1;
                *other.last_mut().unwrap() |= 0x80;
                assert_eq!(found(&other, &decoded, report), Some((BLOCK + at) as u64));
            }
            // What is expected ends before what is decoded, or before the window.
            for len in [0, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, same.len() - 1] {
                assert_eq!(found(&same[..len], &decoded, report), Some(len.max(BLOCK) as u64), "{len}");
            }
        }
        assert_eq!(found(&[], &[], |_, _| {}), None);
        let nothing_known = Comparison::new(Nothing, Dtype::Bf16, None);
        report_all(&nothing_known, &decoded);
        assert_eq!(nothing_known.finish(0, &decoded), None);
    }

    #[test]
    fn whether_the_payload_is_wanted_is_asked_of_the_innermost() {
        let stream = enec_format::reference::encode_stream(Dtype::Bf16, enec_format::Coding::Stored, &[0; 8]).unwrap();
        let hashes = PieceHashes::new(Stream::open(&stream).unwrap().layout());
        let stopwatch = &Stopwatch::default();
        let wants = |sink| Comparison::new(TimedSink { sink, stopwatch }, Dtype::Bf16, None).wants_payload();
        assert!(wants(hashes.sink(0)));
        assert!(!wants(hashes.sink(0).without_payload()));
    }
}
