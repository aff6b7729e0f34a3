//! GPU backends: `wgpu` on anything with Vulkan, Metal or DX12, `cuda` on NVIDIA's devices. Each is a feature.

// Denied, not forbidden: what touches device memory asks for it in few small files.
#![deny(unsafe_code)]

#[cfg(feature = "cuda")]
pub mod cuda;
#[cfg(feature = "wgpu")]
pub mod wgpu;
