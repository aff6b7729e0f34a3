//! Pieces: a backend need not report any, but those that it reports are right.

use std::sync::Mutex;

use enec_core::{CodecChoice, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, PieceHashes, PieceSink, Source, Target};
use enec_format::geometry::{BLOCK_ELEMENTS, BLOCK_TILES, TILE_ELEMENTS};
use enec_format::hash::{content_hash, piece_hash};
use enec_format::{Coding, DecodePlan, Dtype, EncodeOutcome, EncodePlan, Stream, reference};

use crate::codecs::{CODECS, Needs, searched};
use crate::inputs::Input;
use crate::{Case, Result, Subject, ensure};

const COUNT: usize = 2 * BLOCK_ELEMENTS + 3 * TILE_ELEMENTS + 77;

pub(super) fn cases() -> Vec<Case> {
    let mut cases = Vec::new();
    for (choice, prefix) in CODECS {
        for dtype in Dtype::FLOATS {
            let mut add = |name: &str, direction, check: fn(&Subject, CodecChoice, Dtype) -> Result| {
                let name = format!("{prefix}pieces/{}/{name}", dtype.name().to_lowercase());
                let case = Case::new(name, move |subject| check(subject, choice, dtype));
                cases.push(case.needing(Needs::of(choice, direction)));
            };
            add("encode", Needs::Encoding, encode);
            add("decode", Needs::Decoding, decode);
            add("ranges", Needs::Decoding, ranges);
        }
    }
    cases
}

/// Keeps what was reported, as (block, hash, length).
#[derive(Default)]
struct Recorder {
    content: Mutex<Vec<(usize, u64, usize)>>,
    payload: Mutex<Vec<(usize, u64, usize)>>,
}

fn record(pieces: &Mutex<Vec<(usize, u64, usize)>>, block: usize, parts: &[&[u8]]) {
    let piece = (block, piece_hash(parts), parts.iter().map(|part| part.len()).sum());
    pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).push(piece);
}

impl PieceSink for Recorder {
    fn content(&self, block: usize, decoded: &[u8]) {
        record(&self.content, block, &[decoded]);
    }

    fn payload(&self, block: usize, parts: &[&[u8]; 6]) {
        record(&self.payload, block, parts);
    }
}

impl Recorder {
    /// Compares the content pieces with those of the whole tensor; only these blocks may be reported.
    fn check_content(self, elements: &[u8], dtype: Dtype, blocks: std::ops::Range<usize>) -> Result<Self> {
        let block_bytes = BLOCK_ELEMENTS * dtype.element_bytes();
        let last = (elements.len() / dtype.tile_bytes()).div_ceil(BLOCK_TILES).saturating_sub(1);
        check(&self.content, "content", blocks, |block| {
            let end = if block == last { elements.len() } else { (block + 1) * block_bytes };
            (piece_hash(&[&elements[block * block_bytes..end]]), end - block * block_bytes)
        })?;
        Ok(self)
    }

    /// Compares the payload pieces with the blocks of the stream.
    fn check_payload(self, stream: &Stream<'_>, blocks: std::ops::Range<usize>) -> Result<Self> {
        check(&self.payload, "payload", blocks, |block| {
            let parts = stream.block(block).parts();
            (piece_hash(&parts), parts.iter().map(|part| part.len()).sum())
        })?;
        Ok(self)
    }

    fn is_empty(&self) -> bool {
        [&self.content, &self.payload]
            .iter()
            .all(|pieces| pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).is_empty())
    }
}

fn check(
    pieces: &Mutex<Vec<(usize, u64, usize)>>,
    name: &str,
    blocks: std::ops::Range<usize>,
    expected: impl Fn(usize) -> (u64, usize),
) -> Result {
    let mut seen = Vec::new();
    for &(block, hash, len) in &*pieces.lock().unwrap_or_else(|poisoned| poisoned.into_inner()) {
        ensure!(blocks.contains(&block), "{name} of block {block} reported; the job covers {blocks:?} whole");
        ensure!(!seen.contains(&block), "{name} of block {block} reported twice");
        ensure!((hash, len) == expected(block), "{name} of block {block} is wrong ({len} bytes)");
        seen.push(block);
    }
    Ok(())
}

fn tensors(dtype: Dtype) -> [Vec<u8>; 3] {
    let top = u64::from(dtype.exponent_mask() / 2);
    let weights = Input::Weights { seed: 90, top, zeros: 1 };
    // The second is a whole number of blocks; the third ends as stored.
    [weights.bytes(dtype, COUNT), weights.bytes(dtype, BLOCK_ELEMENTS), Input::Uniform { seed: 91 }.bytes(dtype, COUNT)]
}

fn encode(subject: &Subject, choice: CodecChoice, dtype: Dtype) -> Result {
    for elements in tensors(dtype) {
        let coding = searched(choice, dtype, &elements);
        for coding in [coding, Coding::Stored] {
            let plan = EncodePlan::new(dtype, coding, elements.len() / dtype.element_bytes())?;
            encode_by(subject, &plan, &elements)?;
        }
        encode_by(subject, &EncodePlan::window(dtype, coding, elements.len() / dtype.element_bytes(), 0)?, &elements)?;
    }
    // The table entries of a window count from the start of the tensor's section, and are hashed so.
    let [elements, ..] = tensors(dtype);
    let coding = searched(choice, dtype, &elements);
    let plan = EncodePlan::window(dtype, coding, elements.len() / dtype.element_bytes(), 12_345)?;
    let recorder = Recorder::default();
    let mut target = vec![0; plan.target_len()];
    let outcome = run_encode(subject, &plan, &elements, &mut target, &recorder)?;
    let layout = plan.written(outcome)?;
    let mut expected = Vec::new();
    let mut start = 0;
    for index in 0..layout.blocks() {
        let block = layout.block(index);
        let entry = enec_format::BlockEntry::read(&target[layout.table.range()], index);
        let segment = enec_format::segment(&target[layout.variable.range()], start, entry.end - plan.first_segment());
        start = entry.end - plan.first_segment();
        let parts = [block.entry, block.mask, block.byte_plane, block.extra_plane, block.low_plane];
        let parts: Vec<&[u8]> = parts.into_iter().map(|range| &target[range]).chain([segment]).collect();
        expected.push((piece_hash(&parts), parts.iter().map(|part| part.len()).sum()));
    }
    check(&recorder.payload, "payload of a window", 0..layout.blocks(), |block| expected[block])
}

fn encode_by(subject: &Subject, plan: &EncodePlan, elements: &[u8]) -> Result {
    let (mut expected, dtype) = (reference::encode_plan(plan, elements)?, plan.dtype());
    let stream = Stream::open(&expected)?;
    let seal = stream.header().seal().ok_or("the reference did not seal")?;
    let blocks = 0..plan.layout().blocks();

    let recorder = Recorder::default();
    let mut target = vec![0; plan.target_len()];
    let outcome = run_encode(subject, plan, elements, &mut target, &recorder)?;
    ensure!(plan.coding() != Coding::Stored || recorder.is_empty(), "pieces of a stored stream were reported");
    let recorder = recorder.check_content(elements, dtype, blocks.clone())?;
    if outcome != EncodeOutcome::Stored {
        recorder.check_payload(&stream, blocks)?;
    }

    let hashes = PieceHashes::new(plan.layout());
    run_encode(subject, plan, elements, &mut target, &hashes.sink(0))?;
    let header = plan.header(outcome, None)?;
    header.write(&mut target);
    header.write(&mut expected);
    let written = &target[..expected.len()];
    ensure!(written == expected, "a job that reports its pieces writes other bytes");
    ensure!(hashes.complete_content(elements) == seal.content, "content hash completed from pieces");
    ensure!(hashes.complete_payload(&Stream::open(written)?) == seal.payload, "payload hash completed from pieces");
    Ok(())
}

fn run_encode(
    subject: &Subject,
    plan: &EncodePlan,
    elements: &[u8],
    target: &mut [u8],
    sink: &dyn PieceSink,
) -> Result<EncodeOutcome> {
    let backend = subject.backend();
    let mut batch = EncodeBatch::new(backend.info());
    batch.push(EncodeJob::new(plan.clone(), Source::Host(elements), Target::Host(target)).with_pieces(sink))?;
    backend.encode(&mut batch)?;
    Ok(batch.into_results().next().ok_or("no job")??)
}

fn run_decode(subject: &Subject, plan: &DecodePlan, stream: &[u8], sink: &dyn PieceSink) -> Result<Vec<u8>> {
    let backend = subject.backend();
    let mut target = vec![0; plan.target_len()];
    let mut batch = DecodeBatch::new(backend.info());
    batch.push(DecodeJob::new(plan.clone(), Source::Host(stream), Target::Host(&mut target)).with_pieces(sink))?;
    backend.decode(&mut batch)?;
    batch.into_results().next().ok_or("no job")??;
    Ok(target)
}

fn decode(subject: &Subject, choice: CodecChoice, dtype: Dtype) -> Result {
    for elements in tensors(dtype) {
        let bytes = reference::encode_stream(dtype, searched(choice, dtype, &elements), &elements)?;
        let stream = Stream::open(&bytes)?;
        let (plan, recorder) = (DecodePlan::whole(&stream), Recorder::default());
        ensure!(run_decode(subject, &plan, &bytes, &recorder)? == elements, "wrong elements");
        let blocks = 0..stream.layout().blocks();
        ensure!(stream.coding() != Coding::Stored || recorder.is_empty(), "pieces of a stored stream were reported");
        recorder.check_content(&elements, dtype, blocks.clone())?.check_payload(&stream, blocks)?;
        let hashes = PieceHashes::new(stream.layout());
        run_decode(subject, &plan, &bytes, &hashes.sink(0))?;
        ensure!(hashes.complete_content(&elements) == content_hash(&elements), "content hash completed from pieces");
        ensure!(hashes.complete_payload(&stream) == stream.payload_hash(), "payload hash completed from pieces");
    }
    Ok(())
}

/// Of a range, only the blocks that lie in it whole, and the last only with the tail.
fn ranges(subject: &Subject, choice: CodecChoice, dtype: Dtype) -> Result {
    let [elements, ..] = tensors(dtype);
    let bytes = reference::encode_stream(dtype, searched(choice, dtype, &elements), &elements)?;
    let stream = Stream::open(&bytes)?;
    let tiles = stream.layout().tiles;
    for (range, tail, blocks) in [
        (0..BLOCK_TILES, false, 0..1),
        (1..BLOCK_TILES, false, 0..0),
        (3..2 * BLOCK_TILES, false, 1..2),
        (5..2 * BLOCK_TILES + 1, false, 1..2),
        (BLOCK_TILES..tiles, true, 1..3),
        (2 * BLOCK_TILES + 1..tiles, true, 0..0),
        (BLOCK_TILES..tiles, false, 1..2),
        (tiles..tiles, true, 0..0),
    ] {
        let (plan, recorder) = (DecodePlan::whole(&stream).with_tiles(range.clone(), tail)?, Recorder::default());
        run_decode(subject, &plan, &bytes, &recorder)?;
        recorder
            .check_content(&elements, dtype, blocks.clone())
            .and_then(|recorder| recorder.check_payload(&stream, blocks))
            .map_err(|error| format!("tiles {range:?}, tail {tail}: {error}"))?;
    }
    Ok(())
}
