//! Lossless compression of model weights in BF16, F16 and F32.
//!
//! The exponents of trained weights crowd into a narrow range. Two codecs make use of that and leave sign and mantissa as they are: ENEC
//! (Yu et al., [arXiv 2604.03298]) packs exponents at a fixed width that most of them fit into, and the cascade codes them by rank in
//! levels of 2 bits. Both are fast on wide vector units, because nothing in them is sequential, and both give every bit back: NaN payloads,
//! zeros and infinities included. By the cascade BF16 weights shrink by a factor of about 1.46 to 1.50, F16 and F32 weights by 1.16 to 1.20;
//! by ENEC, which is faster, BF16 by 1.38 to 1.40. [`CodecChoice`] picks; by default each tensor gets the codec that makes it smaller.
//!
//! This crate is the one to use: it names all backends and picks one at run time. The program `enec` (crate `enec-cli`) does the same for
//! whole checkpoints from the command line.
//!
//! # Tensors
//!
//! A [`Codec`] encodes the little-endian bytes of a tensor into a *stream* that carries its dtype, its parameters and its hashes. The stream
//! is the same whatever backend, device or number of threads made it.
//!
//! ```
//! use enec::{Dtype, OpenOptions};
//!
//! // Something like trained weights: most of them small, few of them large. BF16 is the upper half of F32.
//! let weight = |i: u32| (i.wrapping_mul(2_654_435_769) as f32 / 2_f32.powi(32) - 0.5).powi(3);
//! let tensor: Vec<u8> = (0..65_536).flat_map(|i| ((weight(i).to_bits() >> 16) as u16).to_le_bytes()).collect();
//!
//! let codec = enec::codec("auto", &OpenOptions::default())?;
//! let stream = codec.encode(Dtype::Bf16, &tensor)?;
//! assert!(stream.len() < tensor.len());
//! assert_eq!(codec.decode(&stream)?, tensor);
//! # Ok::<(), enec::Error>(())
//! ```
//!
//! # Checkpoints
//!
//! [`checkpoint`] compresses safetensors files and folders of them. A compressed checkpoint is a safetensors file too: each tensor that gains
//! lies in it as one stream, each other tensor as it was. Restoring it gives back the original file byte for byte.
//!
//! ```
//! use enec::checkpoint::{self, Checkpoint, Options};
//! use enec::OpenOptions;
//!
//! # let folder = tempfile::tempdir().unwrap();
//! # let (original, compressed) = (folder.path().join("model.safetensors"), folder.path().join("model.enec.safetensors"));
//! # let restored = folder.path().join("restored.safetensors");
//! # let header = r#"{"w":{"dtype":"BF16","shape":[64,64],"data_offsets":[0,8192]}}"#;
//! # let data = (0..4096_u16).flat_map(|i| (0x3F80 | i % 256).to_le_bytes());
//! # let file = (header.len() as u64).to_le_bytes().into_iter().chain(header.bytes()).chain(data);
//! # std::fs::write(&original, file.collect::<Vec<u8>>()).unwrap();
//! let codec = enec::codec("auto", &OpenOptions::default())?;
//! let report = checkpoint::compress(&codec, &original, &compressed, &Options::default(), &mut ())?;
//! assert_eq!((report.streams, report.tensors), (1, 1));
//!
//! // One tensor, without the others:
//! let checkpoint = Checkpoint::open(&compressed)?;
//! let tensor = checkpoint.tensor("w")?;
//! let mut row = vec![0; 2 * 64];
//! tensor.decode_rows_into(&codec, 3..4, &mut row)?;
//!
//! // Or the whole file:
//! checkpoint::decompress(&codec, &compressed, &restored, &Options::default(), &mut ())?;
//! # assert_eq!(std::fs::read(&original).unwrap(), std::fs::read(&restored).unwrap());
//! # Ok::<(), enec::Error>(())
//! ```
//!
//! Frameworks such as transformers cannot load compressed checkpoints directly yet: they get the restored files, or tensors one by one.
//!
//! # Backends and features
//!
//! | name | feature | runs on |
//! |---|---|---|
//! | `cpu` | `cpu` (default) | any CPU, with AVX2 or AVX-512 where the processor has it |
//! | `cuda` | `cuda` (default) | NVIDIA devices from Ampere on, with a driver from 525 on; nothing of CUDA is needed to build |
//! | `wgpu` | `wgpu` (default) | any GPU with Vulkan, Metal or DX12; the driver is loaded at run time |
//! | `ascend` | `ascend` (default) | Ascend NPUs of the 910B family with CANN 8.1 or newer; tested on a host model, not on a device |
//!
//! [`codec()`] and [`open`] take a backend's name, `NAME:INDEX`, `NAME:DEVICE` with a part of the device's name, or `auto`. A backend of one's own
//! implements [`Backend`]; [`Codec`] and [`checkpoint`] take any. What a backend has no kernels for, see [`Codecs`], [`codec()`] has done by the CPU.
//!
//! # Other crates
//!
//! What applications need is re-exported here. [`format`](mod@format) is the bitstream by itself (crate `enec-format`, `no_std`), with
//! its scalar reference codec; what the authors of backends need (jobs, batches, device memory) is in the crate `enec-core`.
//!
//! [arXiv 2604.03298]: https://arxiv.org/abs/2604.03298

#![forbid(unsafe_code)]

mod backends;

pub use backends::{BACKENDS, codec, driver, drivers, open};
pub use enec_core::{
    Backend, Codec, CodecChoice, Codecs, DeviceBuf, DeviceInfo, DeviceSlice, DeviceStream, Driver, Error, OpenOptions,
    Profile, Result, Target, checkpoint, search,
};
/// The CPU backend, for what only its concrete type offers.
#[cfg(feature = "cpu")]
pub use enec_cpu as cpu;
pub use enec_format as format;
pub use enec_format::{Cascade, Coding, Dtype, FormatError, FormatErrorKind, Stream, TwoWindows, max_encoded_len};
/// The CUDA backend, for what only its concrete type offers: memory and streams of others.
#[cfg(feature = "cuda")]
pub use enec_gpu::cuda;
/// The wgpu backend, for what only its concrete type offers: memory that is shared with shaders of one's own.
#[cfg(feature = "wgpu")]
pub use enec_gpu::wgpu;

/// The Rust example of the README, compiled as a test.
#[cfg(doctest)]
#[doc = include_str!("../../README.md")]
struct Readme;
