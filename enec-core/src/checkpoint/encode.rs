//! Encodes the tensors of a file, window by window, into streams that lie one after the other.
//!
//! A window is whole blocks of one tensor, encoded as a stream of its own; its sections go to where they lie in the tensor's
//! stream. So memory stays bounded inside a tensor, and the stream is the one that encoding in one piece would give. Small tensors
//! are encoded together. A tensor that does not get smaller leaves no trace.

use std::borrow::Cow;
use std::collections::VecDeque;
use std::ops::Range;

use enec_format::geometry::{BLOCK_ELEMENTS, SEGMENT_UNIT, TILE_ELEMENTS};
use enec_format::{BlockEntry, EncodeOutcome, EncodePlan, Layout, Seal, segment};

use super::buffer::{AlignedBuffer, split_front};
use super::file::CheckpointFile;
use super::progress::{Progress, advance};
use super::spread::Spread;
use super::timings::TimedSink;
use super::work::Work;
use super::write::{Destination, Part};
use crate::{EncodeJob, Error, PieceHashes, PieceSink, Result, Source, Target};

/// A tensor that has become a stream.
#[derive(Debug, Clone)]
pub(crate) struct Encoded {
    /// The layout of its stream.
    pub(crate) layout: Layout,
    /// How its exponents are spread, if that was wanted.
    pub(crate) spread: Spread,
}

/// Encodes every tensor of an original file that gets smaller by it, in data order, into `destination` from byte `start` on.
///
/// Gives, for each of the header's tensors, what it became, `None` for those that stay as they are; and the end of the last stream.
/// Progress advances by the bytes of each tensor whose elements have exponents.
///
/// # Errors
///
/// [`Error::Device`] if the device fails, [`Error::Io`] from the destination, [`Error::Cancelled`].
pub(crate) fn encode_tensors<'a>(
    work: Work<'_>,
    file: &'a CheckpointFile,
    destination: &mut dyn Destination<'a>,
    start: u64,
    progress: &mut dyn Progress,
) -> Result<(Vec<Option<Encoded>>, u64)> {
    let order = file.original().in_data_order().map(|(index, _)| index).collect();
    let encoded = vec![None; file.original().tensors().len()];
    let mut encoder = Encoder { work, file, destination, progress, order, begun: VecDeque::new(), end: start, encoded };
    let mut buffer = AlignedBuffer::default();
    loop {
        let windows = encoder.next_windows()?;
        if windows.is_empty() {
            return Ok((encoder.encoded, encoder.end));
        }
        encoder.encode(windows, &mut buffer)?;
    }
}

struct Encoder<'a, 'r> {
    work: Work<'r>,
    file: &'a CheckpointFile,
    destination: &'r mut dyn Destination<'a>,
    progress: &'r mut dyn Progress,
    /// Tensors not looked at yet.
    order: VecDeque<usize>,
    /// Tensors that wait for their first window; the first may have had some.
    begun: VecDeque<Begun<'a>>,
    /// End of the last complete stream. Only the stream behind it can be incomplete.
    end: u64,
    encoded: Vec<Option<Encoded>>,
}

/// A tensor that is being encoded.
struct Begun<'a> {
    index: usize,
    elements: &'a [u8],
    /// As far as known: with the variable section that was written so far.
    layout: Layout,
    hashes: PieceHashes,
    spread: Spread,
    done: usize,
}

/// Whole blocks of one tensor; the last window of a tensor also has its short last block and its tail.
struct Window<'a> {
    tensor: Begun<'a>,
    elements: Range<usize>,
    plan: EncodePlan,
}

impl<'a> Encoder<'a, '_> {
    /// Windows of different tensors that fit together into the size of one.
    fn next_windows(&mut self) -> Result<Vec<Window<'a>>> {
        let mut windows = Vec::new();
        let mut bytes = 0;
        while let Some(tensor) = self.next_tensor()? {
            let elements = tensor.next_window(self.work.window_bytes);
            bytes += elements.len() * tensor.layout.dtype.element_bytes();
            if !windows.is_empty() && bytes > self.work.window_bytes {
                self.begun.push_front(tensor);
                break;
            }
            let first_segment = (tensor.layout.variable.len / SEGMENT_UNIT) as u64;
            let plan = EncodePlan::window(tensor.layout.dtype, tensor.layout.coding, elements.len(), first_segment)?;
            let is_last = elements.end == tensor.layout.elements;
            windows.push(Window { tensor, elements, plan });
            // Where a stream ends that goes on is not known yet: nothing can be placed behind it.
            if !is_last {
                break;
            }
        }
        Ok(windows)
    }

    fn next_tensor(&mut self) -> Result<Option<Begun<'a>>> {
        if let Some(tensor) = self.begun.pop_front() {
            return Ok(Some(tensor));
        }
        while let Some(index) = self.order.pop_front() {
            let tensor = self.file.tensor_at(index);
            let Some(dtype) = tensor.float_dtype() else { continue };
            let elements = tensor.stored_bytes();
            let coding = self.work.stopwatch.search.time(|| self.work.codec.coding(dtype, elements));
            let layout = Layout::new(dtype, coding, tensor.element_count(), 0)?;
            if layout.tiles > 0 && layout.stream_len < elements.len() {
                let hashes = PieceHashes::new(&layout);
                return Ok(Some(Begun { index, elements, layout, hashes, spread: Spread::default(), done: 0 }));
            }
            advance(self.progress, elements.len() as u64)?;
        }
        Ok(None)
    }

    fn encode(&mut self, windows: Vec<Window<'a>>, buffer: &mut AlignedBuffer) -> Result<()> {
        let lengths = Vec::from_iter(windows.iter().map(|window| window.plan.target_len()));
        let encoded = buffer.take(lengths.iter().sum());
        let busy_cores = self.destination.busy_cores();
        let outcomes = {
            let Work { codec, stopwatch, .. } = self.work;
            let sinks = Vec::from_iter(windows.iter().map(|window| {
                let sink = window.tensor.hashes.sink(window.first_block());
                TimedSink { sink, stopwatch }
            }));
            let mut rest = &mut *encoded;
            let jobs = windows.iter().zip(&sinks).map(|(window, sink)| {
                let target = Target::Host(split_front(&mut rest, window.plan.target_len()));
                EncodeJob::new(window.plan.clone(), Source::Host(window.source()), target).with_pieces(sink)
            });
            let jobs = jobs.collect();
            let results = stopwatch.code.time(|| codec.encode_jobs(jobs, busy_cores))?;
            results.into_iter().collect::<Result<Vec<_>>>()?
        };
        let (mut parts, mut start) = (Vec::with_capacity(6 * outcomes.len()), 0);
        for ((window, outcome), length) in windows.into_iter().zip(outcomes).zip(lengths) {
            self.place(window, outcome, &encoded[start..start + length], start, &mut parts)?;
            start += length;
        }
        self.destination.write_parts(buffer, parts)
    }

    /// Adds to `parts` where a window belongs and completes the tensor if it was the last. The window lies at `start` in the buffer.
    fn place(
        &mut self,
        window: Window<'a>,
        outcome: EncodeOutcome,
        encoded: &[u8],
        start: usize,
        parts: &mut Vec<Part>,
    ) -> Result<()> {
        let written = match outcome {
            EncodeOutcome::Coded { variable_len } if variable_len <= window.plan.variable_limit() => {
                window.plan.written(outcome)?
            }
            _ => return Err(self.device_error("gave an outcome that the plan does not allow")),
        };
        let spread = self.hash(&window, &written, encoded)?;

        advance(self.progress, window.source().len() as u64)?;

        let first = window.tensor.layout.block(window.first_block());
        let Window { mut tensor, elements, .. } = window;
        tensor.spread = spread;
        let variable_end = tensor.layout.variable.range().end;
        tensor.done = elements.end;
        let variable_len = (tensor.layout.variable.len + written.variable.len) as u64;
        tensor.layout =
            Layout::new(tensor.layout.dtype, tensor.layout.coding, tensor.layout.elements as u64, variable_len)?;
        if tensor.layout.stream_len >= tensor.elements.len() {
            // What earlier windows wrote behind the last stream goes, or it would show up in the padding of the next. Only the first
            // window of a batch can have earlier ones, so nothing of this batch has been written there yet.
            if elements.start > 0 {
                self.destination.truncate(self.end)?;
            }
            let rest = tensor.elements.len() - tensor.done * tensor.layout.dtype.element_bytes();
            return advance(self.progress, rest as u64);
        }
        for (section, offset) in [
            (written.table, first.entry.start),
            (written.mask, first.mask.start),
            (written.byte_plane, first.byte_plane.start),
            (written.extra_plane, first.extra_plane.start),
            (written.low_plane, first.low_plane.start),
            (written.variable, variable_end),
        ] {
            let range = section.range();
            parts.push((self.end + offset as u64, start + range.start..start + range.end));
        }
        if tensor.done < tensor.layout.elements {
            self.begun.push_front(tensor);
            return Ok(());
        }
        self.complete(tensor)
    }

    /// Writes the tail, the header and the codec's own section.
    fn complete(&mut self, tensor: Begun<'a>) -> Result<()> {
        let layout = tensor.layout;
        let tail = &tensor.elements[tensor.elements.len() - layout.tail.len..];
        tensor.hashes.add_tail(layout.blocks(), tail);
        let seal = tensor.hashes.content().zip(tensor.hashes.payload());
        let (content, payload) = seal.ok_or_else(|| self.device_error("left out a block"))?;
        let header = layout.header(Some(Seal { content, payload }));
        let mut front = vec![0; header.front_len()];
        header.write(&mut front);
        self.destination.write_at(self.end + layout.tail.offset as u64, Cow::Borrowed(tail))?;
        self.destination.write_at(self.end, Cow::Owned(front))?;
        self.end += layout.stream_len as u64;
        self.encoded[tensor.index] = Some(Encoded { layout, spread: tensor.spread });
        Ok(())
    }

    /// Hashes what the backend did not report, and gives the tensor's spread with this window's added if it is wanted.
    fn hash(&self, window: &Window<'_>, written: &Layout, encoded: &[u8]) -> Result<Spread> {
        let mut spread = window.tensor.spread;
        let sink = window.tensor.hashes.sink(window.first_block());
        sink.content(0, window.source());
        let (table, variable) = (&encoded[written.table.range()], &encoded[written.variable.range()]);
        let first_segment = window.plan.first_segment();
        let mut start = first_segment;
        for block in 0..written.blocks() {
            let ranges = written.block(block);
            let end = BlockEntry::read(table, block).end;
            if end < start || end - first_segment > (variable.len() / SEGMENT_UNIT) as u64 {
                return Err(self.device_error("wrote a block table that is not monotone"));
            }
            let segment = segment(variable, start - first_segment, end - first_segment);
            let [entry, byte_plane, extra_plane] =
                [ranges.entry, ranges.byte_plane, ranges.extra_plane].map(|range| &encoded[range]);
            let (mask, low_plane) = (&encoded[ranges.mask], &encoded[ranges.low_plane]);
            sink.payload(block, &[entry, mask, byte_plane, extra_plane, low_plane, segment]);
            if self.work.inspects {
                spread.add(written.coding, mask, low_plane, segment);
            }
            start = end;
        }
        Ok(spread)
    }

    fn device_error(&self, message: &str) -> Error {
        Error::Device { device: self.work.codec.backend().info().name.clone(), message: message.to_owned() }
    }
}

impl Begun<'_> {
    fn next_window(&self, window_bytes: usize) -> Range<usize> {
        let blocks = (window_bytes / self.layout.dtype.element_bytes() / BLOCK_ELEMENTS).max(1);
        let end = self.done + blocks * BLOCK_ELEMENTS;
        // What is left must have a tile for a window of its own.
        self.done..if end + TILE_ELEMENTS > self.layout.elements { self.layout.elements } else { end }
    }
}

impl<'a> Window<'a> {
    fn first_block(&self) -> usize {
        self.elements.start / BLOCK_ELEMENTS
    }

    fn source(&self) -> &'a [u8] {
        let bytes = self.tensor.layout.dtype.element_bytes();
        &self.tensor.elements[self.elements.start * bytes..self.elements.end * bytes]
    }
}
