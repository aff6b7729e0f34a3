//! The CPU backend: scalar, portable, AVX2 and AVX-512 kernels, chosen at run time and run in parallel over blocks.
//!
//! ```
//! use enec_core::{Codec, OpenOptions};
//! use enec_format::Dtype;
//!
//! let words: Vec<u8> = (0..4096u16).flat_map(|i| (0x3F80 | (i % 100)).to_le_bytes()).collect();
//! let codec = Codec::new((enec_cpu::DRIVER.open)(&OpenOptions::default())?);
//! let stream = codec.encode(Dtype::Bf16, &words)?;
//! assert!(stream.len() < words.len());
//! assert_eq!(codec.decode(&stream)?, words);
//! # Ok::<(), enec_core::Error>(())
//! ```
//!
//! The environment variable `ENEC_CPU` names the kernels (`scalar`, `portable`, `avx2`, `avx512`) when the options do not; without either
//! the best ones that the processor has are used. The bytes are the same with any of them and with any number of threads.

mod backend;
mod chain;
mod decode;
mod encode;
mod kernels;
mod memory;
mod schedule;
mod target;
mod variant;
mod workers;

pub use backend::{CpuBackend, DRIVER};
