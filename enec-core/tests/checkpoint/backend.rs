//! The reference codec as a backend, and backends that go wrong.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use enec_core::{
    Backend, BackendId, Codec, CodecChoice, Codecs, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, EncodeBatch,
    Error, PieceSink, Result, Source, TargetMut,
};
use enec_format::geometry::BLOCK_TILES;
use enec_format::{BlockEntry, DecodePlan, EncodeOutcome, reference, segment};

/// What a backend does wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Fault {
    /// Nothing.
    None,
    /// Nothing, and it also hashes: reports every piece of what it encodes, and the content of what it decodes.
    Reports,
    /// Flips a bit of a byte plane while it encodes.
    EncodesWrong,
    /// Writes a block table whose entries go backwards.
    TableBackwards,
    /// Claims a longer variable section than the plan allows.
    TooLong,
    /// Fails in the batch with this number, counted from 0.
    Fails(usize),
    /// Gives a failed status to every job.
    JobsFail,
}

/// The reference codec in host memory.
pub(crate) struct Reference {
    info: DeviceInfo,
    fault: Fault,
    batches: AtomicUsize,
}

impl fmt::Debug for Reference {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("Reference")
    }
}

/// A codec on a backend with this fault.
pub(crate) fn codec_with(fault: Fault) -> Codec {
    Codec::new(Arc::new(Reference::new(Codecs::ALL, "reference codec", fault)))
}

pub(crate) fn codec() -> Codec {
    codec_with(Fault::None)
}

/// A codec that encodes as the choice says.
pub(crate) fn codec_of(choice: CodecChoice) -> Codec {
    codec().with_choice(choice)
}

/// A codec whose backend has codec 1 only; the fallback has this fault.
pub(crate) fn codec_without_cascade(fault: Fault) -> Codec {
    let backend = Reference::new(Codecs::ENEC, "half", Fault::None);
    Codec::new(Arc::new(backend)).with_fallback(codec_with(fault).backend().clone())
}

impl Reference {
    fn new(codecs: Codecs, name: &str, fault: Fault) -> Self {
        let info = DeviceInfo {
            id: BackendId::unique(),
            backend: "reference",
            index: 0,
            name: name.into(),
            fingerprint: String::new(),
            memory: None,
            codecs,
            variant: "scalar",
            variants: vec!["scalar"],
        };
        Self { info, fault, batches: AtomicUsize::new(0) }
    }

    fn begin_batch(&self) -> Result<()> {
        let number = self.batches.fetch_add(1, Ordering::Relaxed);
        if self.fault == Fault::Fails(number) { Err(self.error("out of order")) } else { Ok(()) }
    }

    fn error(&self, message: &str) -> Error {
        Error::Device { device: self.info.name.clone(), message: message.into() }
    }
}

impl Backend for Reference {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, _len: usize) -> Result<DeviceBuf> {
        Err(self.error("no memory of its own"))
    }

    fn upload(&self, _source: &[u8], _target: &DeviceSlice) -> Result<()> {
        Err(self.error("no memory of its own"))
    }

    fn download(&self, _source: &DeviceSlice, _target: &mut [u8]) -> Result<()> {
        Err(self.error("no memory of its own"))
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.begin_batch()?;
        for mut job in batch.checked_jobs() {
            let (plan, Source::Host(source), TargetMut::Host(target), pieces) = job.split() else { unreachable!() };
            let mut outcome = reference::encode(plan, source, target)?;
            let written = plan.written(outcome)?;
            match self.fault {
                Fault::EncodesWrong => target[written.byte_plane.offset + 100] ^= 4,
                Fault::TableBackwards if written.blocks() > 1 => target[written.table.offset + 4] = 0xFF,
                Fault::TooLong => outcome = EncodeOutcome::Coded { variable_len: plan.variable_limit() + 32 },
                Fault::JobsFail => {
                    job.finish(Err(Error::Argument("no".into())));
                    continue;
                }
                Fault::Reports => {
                    let pieces = pieces.expect("hashes are wanted");
                    let block_bytes = 16_384 * plan.dtype().element_bytes();
                    let (table, variable) = (&target[written.table.range()], &target[written.variable.range()]);
                    for block in 0..written.blocks() {
                        let end = if block + 1 == written.blocks() { source.len() } else { (block + 1) * block_bytes };
                        pieces.content(block, &source[block * block_bytes..end]);
                        let ranges = written.block(block);
                        let first = plan.first_segment();
                        let start = if block == 0 { first } else { BlockEntry::read(table, block - 1).end };
                        let segment = segment(variable, start - first, BlockEntry::read(table, block).end - first);
                        let part = |range: std::ops::Range<usize>| &target[range];
                        let (entry, mask, byte) = (part(ranges.entry), part(ranges.mask), part(ranges.byte_plane));
                        let (extra, low) = (part(ranges.extra_plane), part(ranges.low_plane));
                        pieces.payload(block, &[entry, mask, byte, extra, low, segment]);
                    }
                }
                _ => {}
            }
            job.finish(Ok(outcome));
        }
        Ok(())
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.begin_batch()?;
        for mut job in batch.checked_jobs() {
            let (plan, Source::Host(source), TargetMut::Host(target), pieces) = job.split() else { unreachable!() };
            let result = reference::decode(plan, source, target).map_err(Error::from);
            if let (Fault::Reports, Some(pieces)) = (self.fault, pieces) {
                report_content(plan, target, pieces);
            }
            job.finish(result);
        }
        Ok(())
    }
}

/// Reports the blocks of windows that begin with one, as those of checkpoints do.
fn report_content(plan: &DecodePlan, mut decoded: &[u8], pieces: &dyn PieceSink) {
    let (layout, first) = (plan.layout(), plan.tiles().start / BLOCK_TILES);
    for block in first..plan.tiles().end.div_ceil(BLOCK_TILES) {
        let is_last = block + 1 == layout.blocks();
        let len = if is_last { decoded.len() } else { layout.decoded_range(layout.block(block).tiles).len() };
        pieces.content(block, decoded.split_off(..len).expect("windows are of whole blocks"));
    }
}
