//! GPU backends: `wgpu` on anything with Vulkan, Metal or DX12, `cuda` on NVIDIA's devices. Each is a feature.

#![deny(unsafe_code)]

#[cfg(feature = "wgpu")]
pub mod wgpu;
