//! What a checkpoint is made of, tensor by tensor: parameters, widths, entropy, ratio.

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use enec_format::geometry::{LANES, TILE_ELEMENTS};
use enec_format::{Coding, Dtype, Layout, TwoWindows, wide_lanes};
use serde::Serialize;

use super::container::reserved_len;
use super::conversion::{Options, to_f64};
use super::decode::{Check, Receiver, decode_tensors};
use super::encode::encode_tensors;
use super::fault;
use super::file::CheckpointFile;
use super::header::LENGTH_BYTES;
use super::progress::{Progress, Step, advance};
use super::reader::Checkpoint;
use super::tensor::TensorRef;
use super::work::Work;
use super::write::Nowhere;
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
#[derive(Debug, Clone, Copy, PartialEq, Serialize)]
pub struct StreamInspection {
    /// The common base, the paper's b.
    pub common_base: u8,
    /// The common width, the paper's m.
    pub common_width: u8,
    /// Wide lanes among all lanes, 0 to 1.
    pub wide_lane_share: f64,
    /// Bits stored per exponent: block table, mask, low plane and high segments over the elements of whole tiles.
    pub exponent_bits: f64,
    /// The entropy of the same exponents in bits: what an ideal coder without context needs.
    pub exponent_entropy: f64,
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
    let work = Work::new(codec, options, &stopwatch);
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
    windows: TwoWindows,
    layout: Layout,
    wide_lanes: u64,
}

/// The streams of a compressed file, by the names of their tensors.
fn read_streams<'a>(file: &'a CheckpointFile, progress: &mut dyn Progress) -> Result<HashMap<&'a str, StreamFacts>> {
    let mut streams = HashMap::new();
    for tensor in file.tensors() {
        if let Some(stream) = tensor.stream()?
            && let Coding::TwoWindows(windows) = stream.coding()
        {
            let layout = stream.layout().clone();
            let wide_lanes = wide_lanes(&stream.bytes()[layout.mask.range()]) as u64;
            streams.insert(tensor.name(), StreamFacts { windows, layout, wide_lanes });
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
            Some(encoded) => {
                let facts =
                    StreamFacts { windows: encoded.windows, layout: encoded.layout, wide_lanes: encoded.wide_lanes };
                streams.insert(tensor.name(), facts);
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
    counts: HashMap<&'a str, [u64; 256]>,
    streams: &'a HashMap<&'a str, StreamFacts>,
    progress: &'a mut dyn Progress,
}

impl<'a> Receiver<'a> for Counter<'a> {
    fn bytes(&mut self, tensor: TensorRef<'a>, offset: u64, bytes: &[u8]) -> Result<()> {
        if let Some(StreamFacts { layout, .. }) = self.streams.get(tensor.name()) {
            let counts = self.counts.entry(tensor.name()).or_insert([0; 256]);
            // The tail is not coded.
            let tiled = (layout.tiles * layout.dtype.tile_bytes()) as u64;
            let coded = usize::try_from(tiled.saturating_sub(offset)).unwrap_or(usize::MAX).min(bytes.len());
            count_exponents(layout.dtype, &bytes[..coded], counts);
        }
        advance(self.progress, bytes.len() as u64)
    }

    fn end(&mut self, _tensor: TensorRef<'a>, result: Result<()>) -> Result<()> {
        result
    }
}

fn count_exponents(dtype: Dtype, elements: &[u8], counts: &mut [u64; 256]) {
    let halves = || elements.as_chunks::<2>().0.iter().copied();
    match dtype {
        Dtype::Bf16 => count(halves(), 7, counts),
        Dtype::F16 => count(halves(), 10, counts),
        Dtype::F32 => count(elements.as_chunks::<4>().0.iter().map(|&[_, _, low, high]| [low, high]), 7, counts),
        Dtype::Opaque => {}
    }
}

/// Counts what follows the sign of 16-bit words, without the `mantissa_bits` at their end.
fn count(words: impl Iterator<Item = [u8; 2]>, mantissa_bits: u32, counts: &mut [u64; 256]) {
    // Equal exponents follow each other: with tables of their own, neighbours need not wait for each other's sum.
    let mut tables = [[0_u64; 256]; 4];
    for (place, word) in words.enumerate() {
        tables[place % 4][usize::from((u16::from_le_bytes(word) & 0x7FFF) >> mantissa_bits)] += 1;
    }
    for (exponent, count) in counts.iter_mut().enumerate() {
        *count += tables.iter().map(|table| table[exponent]).sum::<u64>();
    }
}

fn describe(
    tensor: TensorRef<'_>,
    streams: &HashMap<&str, StreamFacts>,
    counts: &HashMap<&str, [u64; 256]>,
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
        stream: facts.map(|facts| {
            let layout = &facts.layout;
            let elements = to_f64((layout.tiles * TILE_ELEMENTS) as u64);
            let stored = layout.table.len + layout.mask.len + layout.low_plane.len + layout.variable.len;
            StreamInspection {
                common_base: facts.windows.common_base(),
                common_width: facts.windows.common_width(),
                wide_lane_share: to_f64(facts.wide_lanes) / to_f64((layout.tiles * LANES) as u64),
                exponent_bits: 8.0 * to_f64(stored as u64) / elements,
                exponent_entropy: counts.get(tensor.name()).map_or(0.0, entropy),
            }
        }),
    }
}

fn ratio(original: u64, compressed: u64) -> f64 {
    if compressed == 0 { 1.0 } else { to_f64(original) / to_f64(compressed) }
}

/// Shannon's entropy of counted symbols, in bits per symbol.
fn entropy(counts: &[u64; 256]) -> f64 {
    let total = to_f64(counts.iter().sum());
    let bits = |count: u64| to_f64(count) / total * (total / to_f64(count)).log2();
    counts.iter().filter(|&&count| count > 0).map(|&count| bits(count)).sum()
}
