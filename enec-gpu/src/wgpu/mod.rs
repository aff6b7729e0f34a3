//! The portable GPU backend: wgpu and WGSL, on anything with Vulkan, Metal or DX12.
//!
//! ```no_run
//! use enec_core::{Codec, OpenOptions};
//! use enec_format::Dtype;
//!
//! let words: Vec<u8> = (0..4096u16).flat_map(|i| (0x3F80 | (i % 100)).to_le_bytes()).collect();
//! let codec = Codec::new((enec_gpu::wgpu::DRIVER.open)(&OpenOptions::default())?);
//! let stream = codec.encode(Dtype::Bf16, &words)?;
//! assert_eq!(codec.decode(&stream)?, words);
//! # Ok::<(), enec_core::Error>(())
//! ```
//!
//! The kernels use core WGSL only: 32-bit words, two 16-bit lanes to a word, workgroup memory and barriers. What they write does not depend on
//! the device. Drivers are loaded at run time; without one there is no device, and the probe says so.
//!
//! Programs that have a wgpu device of their own hand it in with [`WgpuBackend::with_device`], bring their own buffers in with
//! [`WgpuBackend::import`], and bind what was decoded with [`WgpuBackend::buffer`].

mod adapter;
mod backend;
mod commands;
mod decode;
mod encode;
mod gpu;
mod memory;
mod pipelines;
mod ring;
mod slot;
mod transfer;
mod window;

pub use ::wgpu as api;
pub use backend::{DRIVER, WgpuBackend};
