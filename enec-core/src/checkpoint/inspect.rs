//! What a checkpoint is made of, tensor by tensor: parameters, widths, entropy, ratio.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use enec_format::geometry::{LANES, TILE_ELEMENTS};
use enec_format::{Coding, Layout};
use serde::Serialize;

use super::container::reserved_len;
use super::conversion::{Options, to_f64};
use super::decode::{Check, Receiver, decode_tensors};
use super::encode::{Encoded, encode_tensors};
use super::fault;
use super::file::CheckpointFile;
use super::header::LENGTH_BYTES;
use super::progress::{Progress, Step, advance};
use super::reader::Checkpoint;
use super::spread::Spread;
use super::tensor::TensorRef;
use super::work::Work;
use super::write::Nowhere;
use crate::histogram::Histogram;
use crate::{Codec, Result};

/// What a checkpoint is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct Inspection {
    /// The file or folder.
    pub path: PathBuf,
    /// Whether the files are compressed. Of original files it is told what compressing makes of them.
    pub is_compressed: bool,
    /// Every tensor, file by file in the order of the original's data.
    pub tensors: Vec<TensorInspection>,
    /// Tensors that are streams, or would be.
    pub streams: usize,
    /// Bytes of the original safetensors files.
    pub original_bytes: u64,
    /// Bytes of the compressed safetensors files.
    pub compressed_bytes: u64,
    /// The former over the latter.
    pub ratio: f64,
}

/// What one tensor is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct TensorInspection {
    /// The file that it lies in.
    pub file: PathBuf,
    /// Its name.
    pub name: String,
    /// Its dtype as the original header spells it.
    pub dtype: String,
    /// Its shape.
    pub shape: Vec<u64>,
    /// Its decoded bytes.
    pub original_bytes: u64,
    /// Its bytes in the compressed file: those of the stream, or the same as decoded if it is carried.
    pub compressed_bytes: u64,
    /// The former over the latter; 1 for an empty tensor.
    pub ratio: f64,
    /// What is known of a tensor that is a stream, or would be; `None` for one that is carried.
    pub stream: Option<StreamInspection>,
}

/// What a stream is made of.
#[derive(Debug, Clone, PartialEq, Serialize)]
pub struct StreamInspection {
    /// Its codec and parameters.
    #[serde(flatten)]
    pub codec: CodecInspection,
    /// Bits stored per exponent: block table, mask, low plane and segments over the elements of whole tiles.
    pub exponent_bits: f64,
    /// The entropy of the same exponents in bits: what an ideal coder without context needs.
    pub exponent_entropy: f64,
}

/// The codec of a stream, its parameters, and how they suit the exponents.
#[derive(Debug, Clone, PartialEq, Serialize)]
#[serde(tag = "codec", rename_all = "snake_case")]
pub enum CodecInspection {
    /// Codec 1, the two windows.
    Enec {
        /// The common base, the paper's b.
        common_base: u8,
        /// The common width, the paper's m.
        common_width: u8,
        /// Wide lanes among all lanes, 0 to 1.
        wide_lane_share: f64,
    },
    /// Codec 2, the cascade.
    Cascade {
        /// Levels of codes, K.
        levels: u8,
        /// The symbols, three a level.
        symbols: Vec<u8>,
        /// For each level the elements that escape from it, among all elements, 0 to 1; those of the last level are stored raw.
        escape_shares: Vec<f64>,
    },
}

/// Inspects a checkpoint. All of its data is read: original files are encoded and compressed ones decoded.
///
/// `options` gives the size of windows only.
///
/// # Errors
///
/// As [`Checkpoint::open`]; [`Error::File`](crate::Error::File) if original and compressed files are mixed,
/// [`Error::Tensor`](crate::Error::Tensor) if a tensor is damaged, [`Error::Device`](crate::Error::Device) if the device fails,
/// [`Error::Cancelled`](crate::Error::Cancelled).
pub fn inspect(codec: &Codec, input: &Path, options: &Options, progress: &mut dyn Progress) -> Result<Inspection> {
    let checkpoint = Checkpoint::open(input)?;
    let is_compressed = checkpoint.files().iter().all(CheckpointFile::is_compressed);
    if !is_compressed && checkpoint.files().iter().any(CheckpointFile::is_compressed) {
        return Err(fault(input, "original and compressed files are mixed", Some("inspect the files one by one")));
    }
    // Each tensor is read twice: for its stream, and for its exponents.
    progress.total(2 * checkpoint.tensors().map(|tensor| tensor.byte_len()).sum::<u64>());

    let stopwatch = options.stopwatch();
    let work = Work { inspects: true, ..Work::new(codec, options, &stopwatch) };
    let (mut tensors, mut original_bytes, mut compressed_bytes) = (Vec::new(), 0, 0);
    for file in checkpoint.files() {
        progress.file(Step::Inspect, file.path());
        let (streams, length) = if is_compressed {
            (read_streams(file, progress)?, file.byte_len())
        } else {
            made_streams(work, file, progress)?
        };
        let mut counter = Counter { counts: HashMap::new(), streams: &streams, progress };
        decode_tensors(work, file.in_data_order(), Check::Content, &mut counter)?;
        let counts = counter.counts;
        tensors.extend(file.in_data_order().map(|tensor| describe(tensor, &streams, &counts)));
        original_bytes += file.original_len();
        compressed_bytes += length;
    }
    Ok(Inspection {
        path: input.to_owned(),
        is_compressed,
        streams: tensors.iter().filter(|tensor| tensor.stream.is_some()).count(),
        tensors,
        original_bytes,
        compressed_bytes,
        ratio: ratio(original_bytes, compressed_bytes),
    })
}

/// A tensor's stream.
struct StreamFacts {
    layout: Layout,
    spread: Spread,
}

/// The streams of a compressed file, by the names of their tensors.
fn read_streams<'a>(file: &'a CheckpointFile, progress: &mut dyn Progress) -> Result<HashMap<&'a str, StreamFacts>> {
    let mut streams = HashMap::new();
    for tensor in file.tensors() {
        if let Some(stream) = tensor.stream()? {
            let mut spread = Spread::default();
            for block in stream.blocks() {
                spread.add(stream.coding(), block.mask, block.low_plane, block.segment);
            }
            streams.insert(tensor.name(), StreamFacts { layout: stream.layout().clone(), spread });
        }
        advance(progress, tensor.byte_len())?;
    }
    Ok(streams)
}

/// The streams that compressing makes of an original file, and the length of the compressed file.
fn made_streams<'a>(
    work: Work<'_>,
    file: &'a CheckpointFile,
    progress: &mut dyn Progress,
) -> Result<(HashMap<&'a str, StreamFacts>, u64)> {
    let reserved = reserved_len(file.original()).map_err(|error| fault(file.path(), error, None))?;
    let (encoded, mut length) = encode_tensors(work, file, &mut Nowhere, LENGTH_BYTES + reserved, progress)?;
    let mut streams = HashMap::new();
    for (tensor, encoded) in file.tensors().zip(encoded) {
        match encoded {
            Some(Encoded { layout, spread }) => {
                streams.insert(tensor.name(), StreamFacts { layout, spread });
            }
            None => length += tensor.byte_len(),
        }
        if tensor.float_dtype().is_none() {
            advance(progress, tensor.byte_len())?;
        }
    }
    Ok((streams, length))
}

/// Counts the exponents of the tensors that are streams.
struct Counter<'a> {
    counts: HashMap<&'a str, Histogram>,
    streams: &'a HashMap<&'a str, StreamFacts>,
    progress: &'a mut dyn Progress,
}

impl<'a> Receiver<'a> for Counter<'a> {
    fn bytes(&mut self, tensor: TensorRef<'a>, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(StreamFacts { layout, .. }) = self.streams.get(tensor.name()) {
            let counts = self.counts.entry(tensor.name()).or_default();
            // The tail is not coded.
            let tiled = (layout.tiles * layout.dtype.tile_bytes()) as u64;
            let coded = usize::try_from(tiled.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
            counts.add(layout.dtype, &bytes[..coded]);
        }
        advance(self.progress, bytes.len() as u64)
    }

    fn end(&mut self, _tensor: TensorRef<'a>, result: Result<()>) -> Result<()> {
        result
    }
}

fn describe(
    tensor: TensorRef<'_>,
    streams: &HashMap<&str, StreamFacts>,
    counts: &HashMap<&str, Histogram>,
) -> TensorInspection {
    let facts = streams.get(tensor.name());
    let compressed_bytes = facts.map_or(tensor.byte_len(), |facts| facts.layout.stream_len as u64);
    TensorInspection {
        file: tensor.path().to_owned(),
        name: tensor.name().to_owned(),
        dtype: tensor.dtype().to_owned(),
        shape: tensor.shape().to_vec(),
        original_bytes: tensor.byte_len(),
        compressed_bytes,
        ratio: ratio(tensor.byte_len(), compressed_bytes),
        stream: facts.and_then(|facts| {
            let layout = &facts.layout;
            let elements = to_f64((layout.tiles * TILE_ELEMENTS) as u64);
            let stored = layout.table.len + layout.mask.len + layout.low_plane.len + layout.variable.len;
            Some(StreamInspection {
                codec: codec_of(layout, &facts.spread)?,
                exponent_bits: 8.0 * to_f64(stored as u64) / elements,
                exponent_entropy: counts.get(tensor.name()).map_or(0.0, entropy),
            })
        }),
    }
}

/// None for a stored stream, which no checkpoint has.
fn codec_of(layout: &Layout, spread: &Spread) -> Option<CodecInspection> {
    let share = |count: u64, all: usize| to_f64(count) / to_f64(all as u64);
    match layout.coding {
        Coding::Cascade(cascade) => {
            let escapes = &spread.escapes[..usize::from(cascade.levels())];
            Some(CodecInspection::Cascade {
                levels: cascade.levels(),
                symbols: cascade.symbols().to_vec(),
                escape_shares: escapes.iter().map(|&count| share(count, layout.tiles * TILE_ELEMENTS)).collect(),
            })
        }
        Coding::TwoWindows(windows) => Some(CodecInspection::Enec {
            common_base: windows.common_base(),
            common_width: windows.common_width(),
            wide_lane_share: share(spread.wide_lanes, layout.tiles * LANES),
        }),
        _ => None,
    }
}

fn ratio(original: u64, compressed: u64) -> f64 {
    if compressed == 0 { 1.0 } else { to_f64(original) / to_f64(compressed) }
}

/// Shannon's entropy of counted symbols, in bits per symbol.
fn entropy(counts: &Histogram) -> f64 {
    let counts = counts.counts();
    let total = to_f64(counts.iter().sum());
    let bits = |count: u64| to_f64(count) / total * (total / to_f64(count)).log2();
    counts.iter().filter(|&&count| count > 0).map(|&count| bits(count)).sum()
}
