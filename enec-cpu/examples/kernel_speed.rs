//! Speed of the kernels on one thread, beside memcpy and a non-temporal copy of the same bytes.
//!
//! `cargo run --release -p enec-cpu --example kernel_speed [MIB ...]`; without arguments 0.5 MiB (in cache) and 256 MiB. All
//! buffers are warm and lie on 64-byte boundaries; repetitions are interleaved; the figures are GB/s (10^9 bytes) of decoded
//! bytes, median and, behind it, the best.

#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "a program whose numbers are small")]

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Instant;

use enec_core::search::search;
use enec_core::{
    Backend, Codec, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, OpenOptions, Profile, Result, Source, Target,
};
use enec_format::{Coding, DecodePlan, Dtype, EncodePlan, Stream};

fn main() -> Result<()> {
    let sizes: Vec<f64> = std::env::args().skip(1).filter_map(|size| size.parse().ok()).collect();
    for mib in if sizes.is_empty() { vec![0.5, 256.0] } else { sizes } {
        println!("{mib} MiB of elements");
        for dtype in Dtype::FLOATS {
            measure(dtype, (mib * 1_048_576.0) as usize)?;
        }
    }
    Ok(())
}

/// Bytes on a 64-byte boundary, all written once.
struct Buffer {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Buffer {
    fn new(len: usize) -> Self {
        let bytes = vec![1; len + 64];
        let start = bytes.as_ptr().align_offset(64);
        Self { bytes, start, len }
    }

    fn get(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    fn get_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }
}

fn measure(dtype: Dtype, bytes: usize) -> Result<()> {
    let mut source = Buffer::new(bytes);
    gaussian(dtype, source.get_mut());
    let windows = search(dtype, source.get());
    let plan = EncodePlan::new(dtype, Coding::TwoWindows(windows), bytes / dtype.element_bytes())?;
    let stored = {
        let bytes = Codec::new(open("avx2").or_else(|_| open("portable"))?)
            .with_profile(Profile::new().with(dtype, windows.common_base(), windows.common_width())?)
            .encode(dtype, source.get())?;
        let mut stored = Buffer::new(bytes.len());
        stored.get_mut().copy_from_slice(&bytes);
        stored
    };
    let mut target = Buffer::new(bytes + 64);
    let mut rows: Vec<(String, Vec<f64>)> = Vec::new();
    let repetitions = (2_000_000_000 / bytes.max(1 << 22)).clamp(7, 100);
    for repetition in 0..=repetitions {
        let mut row = 0;
        let mut time = |name: String, work: &mut dyn FnMut() -> Result<()>| -> Result<()> {
            // What fits the caches is brought back into them first: the non-temporal copy drove it out.
            let rounds = ((4 << 20) / bytes.max(1)).max(1);
            if rounds > 1 {
                work()?;
            }
            let start = Instant::now();
            (0..rounds).try_for_each(|_| work())?;
            let speed = (rounds * bytes) as f64 / start.elapsed().as_secs_f64() / 1e9;
            // The first round only warms up.
            match repetition {
                0 => rows.push((name, Vec::new())),
                _ => rows[row].1.push(speed),
            }
            row += 1;
            Ok(())
        };
        time("memcpy".into(), &mut || {
            target.get_mut()[..bytes].copy_from_slice(source.get());
            Ok(())
        })?;
        time("non-temporal copy".into(), &mut || {
            stream_copy(source.get(), &mut target.get_mut()[..bytes]);
            Ok(())
        })?;
        for variant in ["avx2", "portable", "scalar"] {
            let Ok(backend) = open(variant) else { continue };
            if variant == "scalar" && repetition > 3 {
                continue;
            }
            time(format!("{variant} encode"), &mut || encode(&*backend, &plan, source.get(), target.get_mut()))?;
            time(format!("{variant} decode"), &mut || decode(&*backend, stored.get(), &mut target.get_mut()[..bytes]))?;
            if variant == "avx2" {
                let profile = Profile::new().with(dtype, windows.common_base(), windows.common_width())?;
                let codec = Codec::new(backend).with_profile(profile);
                time("avx2 Codec encode, hashed".into(), &mut || {
                    codec.encode_into(dtype, source.get(), target.get_mut()).map(drop)
                })?;
                time("avx2 Codec decode, hashed".into(), &mut || {
                    codec.decode_into(&Stream::open(stored.get())?, &mut target.get_mut()[..bytes])
                })?;
            }
        }
    }
    let ratio = bytes as f64 / stored.get().len() as f64;
    println!("  {} (ratio {ratio:.3}, m = {})", dtype.name(), windows.common_width());
    for (name, mut speeds) in rows {
        speeds.sort_by(f64::total_cmp);
        println!("    {name:<28} {:6.2} {:6.2}", speeds[speeds.len() / 2], speeds[speeds.len() - 1]);
    }
    Ok(())
}

fn open(variant: &str) -> Result<Arc<dyn Backend>> {
    (enec_cpu::DRIVER.open)(&OpenOptions {
        device: 0,
        threads: NonZeroUsize::new(1),
        variant: Some(variant.to_owned()),
    })
}

fn encode(backend: &dyn Backend, plan: &EncodePlan, source: &[u8], target: &mut [u8]) -> Result<()> {
    let mut batch = EncodeBatch::new(backend.info());
    batch.push(EncodeJob::new(plan.clone(), Source::Host(source), Target::Host(target)))?;
    backend.encode(&mut batch)?;
    batch.into_results().try_for_each(|result| result.map(drop))
}

fn decode(backend: &dyn Backend, stored: &[u8], target: &mut [u8]) -> Result<()> {
    let mut batch = DecodeBatch::new(backend.info());
    let plan = DecodePlan::whole(&Stream::open(stored)?);
    batch.push(DecodeJob::new(plan, Source::Host(stored), Target::Host(target)))?;
    backend.decode(&mut batch)?;
    batch.into_results().try_for_each(|result| result)
}

/// Normally distributed elements, as the sum of 12 uniform ones.
fn gaussian(dtype: Dtype, bytes: &mut [u8]) {
    let mut state = 1_u64;
    let mut uniform = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 40) as f32 / (1 << 24) as f32
    };
    // Made once and repeated with another offset, for speed.
    let pool: Vec<f32> = (0..1 << 17).map(|_| (0..12).map(|_| uniform()).sum::<f32>() * 0.05 - 0.3).collect();
    for (i, element) in bytes.chunks_exact_mut(dtype.element_bytes()).enumerate() {
        let value = pool[(i + i / pool.len() * 7919) % pool.len()];
        let bits = value.to_bits();
        match dtype {
            Dtype::F32 => element.copy_from_slice(&bits.to_le_bytes()),
            Dtype::F16 => {
                // Exponents are in range for all but a few values, which do not matter here.
                let exponent = ((bits >> 23 & 0xFF) as i32 - 112).clamp(0, 31) as u32;
                element.copy_from_slice(
                    &((bits >> 16 & 0x8000 | exponent << 10 | bits >> 13 & 0x3FF) as u16).to_le_bytes(),
                );
            }
            _ => element.copy_from_slice(&((bits >> 16) as u16).to_le_bytes()),
        }
    }
}

#[cfg(target_arch = "x86_64")]
fn stream_copy(source: &[u8], target: &mut [u8]) {
    use std::arch::x86_64::{__m128i, _mm_loadu_si128, _mm_sfence, _mm_stream_si128};
    assert!(source.len() == target.len() && source.len().is_multiple_of(64));
    assert!(target.as_ptr().addr().is_multiple_of(64));
    for (source, target) in source.chunks_exact(64).zip(target.chunks_exact_mut(64)) {
        let (source, target) = (source.as_ptr().cast::<__m128i>(), target.as_mut_ptr().cast::<__m128i>());
        for part in 0..4 {
            // SAFETY: both chunks are 64 bytes, and targets lie on 64-byte boundaries.
            unsafe { _mm_stream_si128(target.add(part), _mm_loadu_si128(source.add(part))) }
        }
    }
    // SAFETY: every x86-64 processor has the instruction.
    unsafe { _mm_sfence() }
}

#[cfg(not(target_arch = "x86_64"))]
fn stream_copy(source: &[u8], target: &mut [u8]) {
    target.copy_from_slice(source);
}
