//! Sizes: those of both codecs and of the automatic choice with all headers and padding, the paper's rule, and the entropy of the exponents;
//! and what the sample of the parameter search loses and takes.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

use enec::checkpoint::CheckpointFile;
use enec::{Codec, CodecChoice, Dtype, OpenOptions, Profile, search};
use rayon::prelude::*;
use serde::Serialize;

use crate::Result;
use crate::arguments::{Arguments, Data};
use crate::data::{files, short_name};
use crate::exponents::Exponents;
use crate::paper;

/// Bytes of one file, or of several together.
#[derive(Debug, Clone, Default, Serialize)]
struct Sizes {
    /// Uncompressed.
    bytes: u64,
    /// The smaller codec for each tensor: streams of the tensors that gain, the others as they are.
    auto: u64,
    /// The two windows alone.
    enec: u64,
    /// The cascade alone.
    cascade: u64,
    /// The paper's rule, where it gains.
    paper: f64,
    /// Exponents at their entropy per tensor, everything else as it is.
    entropy: f64,
    /// The two windows with the parameters that are best over all blocks of each tensor, not over a sample.
    enec_exhaustive: u64,
    /// The cascade with such parameters.
    cascade_exhaustive: u64,
    /// Most microseconds that the search for the two windows took for one tensor, and for codec and parameters.
    enec_search_us: f64,
    auto_search_us: f64,
}

impl Sizes {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.auto += other.auto;
        self.enec += other.enec;
        self.cascade += other.cascade;
        self.paper += other.paper;
        self.entropy += other.entropy;
        self.enec_exhaustive += other.enec_exhaustive;
        self.cascade_exhaustive += other.cascade_exhaustive;
        self.enec_search_us = self.enec_search_us.max(other.enec_search_us);
        self.auto_search_us = self.auto_search_us.max(other.auto_search_us);
    }
}

#[derive(Debug, Serialize)]
struct Row {
    name: String,
    dtype: String,
    #[serde(flatten)]
    sizes: Sizes,
}

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    let codec = enec::codec(&arguments.backend, &OpenOptions::default())?;
    let mut rows = Vec::new();
    let mut pooled: BTreeMap<String, Sizes> = BTreeMap::new();
    let paths = arguments.data.iter().map(|data| match data {
        Data::Path(path) => Ok(path.clone()),
        Data::Synthetic(_) => Err("`--ratio` wants files: generated weights say nothing of real ones"),
    });
    for path in files(&paths.collect::<Result<Vec<_>, _>>()?)? {
        let row = measure(&codec, &path)?;
        let group = format!("pooled {}", row.dtype);
        pooled.entry(group).or_default().add(&row.sizes);
        rows.push(row);
    }
    let pooled = pooled.into_iter().map(|(name, sizes)| Row { name, dtype: String::new(), sizes });
    rows.extend(pooled);
    print(&rows);
    if let Some(path) = &arguments.out {
        fs::write(path, serde_json::to_string_pretty(&rows)?)
            .map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// Encodes every tensor of a file. The row's dtype is the one with most bytes.
fn measure(codec: &Codec, path: &std::path::Path) -> Result<Row> {
    let file = CheckpointFile::open(path)?;
    let tensors: Vec<_> = file.tensors().collect();
    let mut sizes: Vec<Sizes> = tensors
        .par_iter()
        .map(|tensor| match Dtype::from_name(tensor.dtype()) {
            Some(dtype) => measure_tensor(codec, dtype, tensor.stored_bytes()),
            None => Ok(carried(tensor.byte_len())),
        })
        .collect::<enec::Result<_>>()?;
    // One at a time: what is timed must not share the machine with the rest.
    for (tensor, sizes) in tensors.iter().zip(&mut sizes) {
        if let Some(dtype) = Dtype::from_name(tensor.dtype()) {
            let elements = tensor.stored_bytes();
            sizes.enec_search_us = seconds(|| search::search(dtype, black_box(elements))) * 1e6;
            sizes.auto_search_us = seconds(|| codec.coding(dtype, black_box(elements))) * 1e6;
        }
    }
    let (mut total, mut by_dtype) = (Sizes::default(), BTreeMap::<&str, u64>::new());
    for (tensor, sizes) in tensors.iter().zip(&sizes) {
        total.add(sizes);
        *by_dtype.entry(tensor.dtype()).or_default() += sizes.bytes;
    }
    let dtype = by_dtype.into_iter().max_by_key(|&(_, bytes)| bytes).map_or("", |(dtype, _)| dtype);
    Ok(Row { name: short_name(path), dtype: dtype.to_owned(), sizes: total })
}

fn carried(bytes: u64) -> Sizes {
    Sizes {
        bytes,
        auto: bytes,
        enec: bytes,
        cascade: bytes,
        paper: bytes as f64,
        entropy: bytes as f64,
        enec_exhaustive: bytes,
        cascade_exhaustive: bytes,
        ..Sizes::default()
    }
}

/// The best of three, as the first reads the sample from memory.
fn seconds<T>(work: impl Fn() -> T) -> f64 {
    let time = || {
        let start = Instant::now();
        black_box(work());
        start.elapsed().as_secs_f64()
    };
    (0..3).map(|_| time()).fold(f64::INFINITY, f64::min)
}

fn measure_tensor(codec: &Codec, dtype: Dtype, elements: &[u8]) -> enec::Result<Sizes> {
    if elements.is_empty() {
        return Ok(Sizes::default());
    }
    let bytes = elements.len() as u64;
    let exponents = Exponents::of(dtype, elements);
    let entropy = exponents.elements() as f64 * (exponents.other_bits() as f64 + exponents.entropy()) / 8.0;
    let paper = paper::bits(&exponents).map_or(bytes as f64, |bits| bits as f64 / 8.0);
    let size = |codec: &Codec| Ok::<_, enec::Error>((codec.encode(dtype, elements)?.len() as u64).min(bytes));
    let windows = search::search_sampled(dtype, &[elements], usize::MAX);
    let cascade = search::search_cascade_sampled(dtype, &[elements], usize::MAX);
    let best = Profile::new().with(dtype, windows.common_base(), windows.common_width())?;
    let best = best.with_cascade(dtype, cascade.symbols())?;
    let of = |choice| codec.clone().with_choice(choice);
    let (enec, cascade) = (of(CodecChoice::Enec), of(CodecChoice::Cascade));
    Ok(Sizes {
        bytes,
        auto: size(&of(CodecChoice::Auto))?,
        enec: size(&enec)?,
        cascade: size(&cascade)?,
        paper: paper.min(bytes as f64),
        entropy,
        enec_exhaustive: size(&enec.with_profile(best.clone()))?,
        cascade_exhaustive: size(&cascade.with_profile(best))?,
        ..Sizes::default()
    })
}

fn print(rows: &[Row]) {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(4);
    println!(
        "{:width$}  dtype  {:>9}  {:>7}  {:>7}  {:>7}  {:>12}  {:>7}  {:>14}  {:>17}",
        "file", "MB", "auto", "enec", "cascade", "paper's rule", "entropy", "losses %", "search us"
    );
    for row in rows {
        let sizes = &row.sizes;
        let bytes = sizes.bytes as f64;
        let ratio = |size: u64| bytes / size as f64;
        let loss = |size: u64, best: u64| (size as f64 / best as f64 - 1.0) * 100.0;
        println!(
            "{:width$}  {:5}  {:9.2}  {:7.4}  {:7.4}  {:7.4}  {:12.4}  {:7.4}  {:6.3}  {:6.3}  {:8.0} {:8.0}",
            row.name,
            row.dtype,
            bytes / 1e6,
            ratio(sizes.auto),
            ratio(sizes.enec),
            ratio(sizes.cascade),
            bytes / sizes.paper,
            bytes / sizes.entropy,
            loss(sizes.enec, sizes.enec_exhaustive),
            loss(sizes.cascade, sizes.cascade_exhaustive),
            sizes.enec_search_us,
            sizes.auto_search_us,
        );
    }
    println!("losses: of enec and cascade by sampling; search: of the two windows alone, and of codec and parameters");
    for row in rows.iter().filter(|row| row.sizes.auto > row.sizes.enec.min(row.sizes.cascade)) {
        println!("{}: the automatic choice is larger than one codec alone", row.name);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Half of the lanes are constant, half have one exponent that is 8 lower.
    fn elements() -> Vec<u8> {
        let mut words = vec![0x3F80_u16; 2048];
        for lane in (0..128).step_by(2) {
            words[lane] = (127 - 8) << 7;
        }
        words.iter().flat_map(|word| word.to_le_bytes()).collect()
    }

    #[test]
    fn the_papers_rule_by_hand() {
        let mut elements = elements();
        // With a third exponent, 128, in one lane there is a base inside the range.
        elements[2..4].copy_from_slice(&(128_u16 << 7).to_le_bytes());
        let exponents = Exponents::of(Dtype::Bf16, &elements);
        // Of 119, 127 and 128 nearly all are 127, the base: 8 below takes 4 bits, 1 above takes none, the sign one more, so n = 5. m = 0:
        // 64 lanes with a 119 and the one with the 128 are wide.
        assert_eq!(paper::bits(&exponents), Some(2048 * 8 + 65 * 16 * 5 + 128));
    }

    #[test]
    fn entropy_by_hand() {
        let exponents = Exponents::of(Dtype::Bf16, &elements());
        let share = 64.0 / 2048.0_f64;
        let expected = -share * share.log2() - (1.0 - share) * (1.0 - share).log2();
        assert!((exponents.entropy() - expected).abs() < 1e-12);
    }
}
