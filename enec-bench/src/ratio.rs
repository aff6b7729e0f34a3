//! Sizes: ENEC's with all headers and padding, the paper's rule, and the entropy of the exponents; and what the sample of the parameter search
//! loses and takes.

use std::collections::BTreeMap;
use std::fs;
use std::hint::black_box;
use std::time::Instant;

use enec::checkpoint::CheckpointFile;
use enec::{Codec, Dtype, OpenOptions, Profile, search};
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
    /// ENEC: streams of the tensors that gain, the others as they are.
    enec: u64,
    /// The paper's rule, where it gains.
    paper: f64,
    /// Exponents at their entropy per tensor, everything else as it is.
    entropy: f64,
    /// ENEC with the parameters that are best over all blocks of each tensor, not over a sample.
    exhaustive: u64,
    /// Most microseconds that the parameter search took for one tensor.
    search_us: f64,
}

impl Sizes {
    fn add(&mut self, other: &Self) {
        self.bytes += other.bytes;
        self.enec += other.enec;
        self.paper += other.paper;
        self.entropy += other.entropy;
        self.exhaustive += other.exhaustive;
        self.search_us = self.search_us.max(other.search_us);
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
    let codec = Codec::new(enec::open(&arguments.backend, &OpenOptions::default())?);
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
            sizes.search_us = search_seconds(dtype, tensor.stored_bytes()) * 1e6;
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
    Sizes { bytes, enec: bytes, paper: bytes as f64, entropy: bytes as f64, exhaustive: bytes, search_us: 0.0 }
}

/// The best of three, as the first reads the sample from memory.
fn search_seconds(dtype: Dtype, elements: &[u8]) -> f64 {
    let time = || {
        let start = Instant::now();
        black_box(search::search(dtype, black_box(elements)));
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
    let best = search::search_sampled(dtype, &[elements], usize::MAX);
    let best = Profile::new().with(dtype, best.common_base(), best.common_width())?;
    let (enec, exhaustive) = (size(codec)?, size(&codec.clone().with_profile(best))?);
    Ok(Sizes { bytes, enec, paper: paper.min(bytes as f64), entropy, exhaustive, search_us: 0.0 })
}

fn print(rows: &[Row]) {
    let width = rows.iter().map(|row| row.name.len()).max().unwrap_or(4);
    println!(
        "{:width$}  dtype  {:>9}  {:>7}  {:>12}  {:>7}  {:>6}  {:>9}",
        "file", "MB", "enec", "paper's rule", "entropy", "loss %", "search us"
    );
    for row in rows {
        let Sizes { bytes, enec, paper, entropy, exhaustive, search_us } = &row.sizes;
        let bytes = *bytes as f64;
        println!(
            "{:width$}  {:5}  {:9.2}  {:7.4}  {:12.4}  {:7.4}  {:6.3}  {:9.0}",
            row.name,
            row.dtype,
            bytes / 1e6,
            bytes / *enec as f64,
            bytes / paper,
            bytes / entropy,
            (*enec as f64 / *exhaustive as f64 - 1.0) * 100.0,
            search_us,
        );
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
