//! GPU backends: `wgpu` on anything with Vulkan, Metal or DX12, `cuda` on NVIDIA's devices. Each is a feature.
