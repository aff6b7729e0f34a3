//! Adapters: which there are, in which order, and what is said about them.

use std::sync::OnceLock;

use enec_core::{BackendId, Codecs, DeviceInfo, Error, Result};

use crate::wgpu::pipelines::Variant;

/// The adapters that can run the kernels, best kind first. Looked for once in a process.
pub(crate) fn adapters() -> &'static [wgpu::Adapter] {
    static ADAPTERS: OnceLock<Vec<wgpu::Adapter>> = OnceLock::new();
    ADAPTERS.get_or_init(|| {
        let mut descriptor = wgpu::InstanceDescriptor::new_without_display_handle();
        descriptor.backends = wgpu::Backends::VULKAN | wgpu::Backends::METAL | wgpu::Backends::DX12;
        let instance = wgpu::Instance::new(descriptor);
        let mut adapters = pollster::block_on(instance.enumerate_adapters(wgpu::Backends::all()));
        adapters.retain(|adapter| missing(&adapter.limits()).is_none());
        // A stable sort: adapters of one kind keep the driver's order, which is the user's.
        adapters.sort_by_key(|adapter| rank(adapter.get_info().device_type));
        adapters
    })
}

/// The adapter with this index.
///
/// # Errors
///
/// [`Error::Unavailable`] if there is none.
pub(crate) fn adapter(index: usize) -> Result<&'static wgpu::Adapter> {
    let adapters = adapters();
    adapters.get(index).ok_or_else(|| {
        let reason = match adapters.len() {
            0 => "no Vulkan, Metal or DX12 driver gives an adapter; install your GPU's driver".to_owned(),
            count => format!("device {index} asked for, there are {count}, counted from 0"),
        };
        Error::Unavailable { backend: "wgpu".into(), reason }
    })
}

/// What the kernels need and these limits lack.
pub(crate) fn missing(limits: &wgpu::Limits) -> Option<String> {
    let needed = wgpu::Limits::downlevel_defaults();
    let checks = [
        ("storage buffers", limits.max_storage_buffers_per_shader_stage, needed.max_storage_buffers_per_shader_stage),
        ("invocations", limits.max_compute_invocations_per_workgroup, needed.max_compute_invocations_per_workgroup),
        ("bytes of workgroup memory", limits.max_compute_workgroup_storage_size, 8192),
    ];
    let lacking = checks.into_iter().find(|(_, found, needed)| found < needed);
    lacking.map(|(what, found, needed)| format!("{found} {what}, {needed} needed"))
}

fn rank(kind: wgpu::DeviceType) -> u8 {
    match kind {
        wgpu::DeviceType::DiscreteGpu => 0,
        wgpu::DeviceType::IntegratedGpu => 1,
        wgpu::DeviceType::VirtualGpu => 2,
        wgpu::DeviceType::Other => 3,
        wgpu::DeviceType::Cpu => 4,
    }
}

fn kind_name(kind: wgpu::DeviceType) -> &'static str {
    match kind {
        wgpu::DeviceType::DiscreteGpu => "discrete GPU",
        wgpu::DeviceType::IntegratedGpu => "integrated GPU",
        wgpu::DeviceType::VirtualGpu => "virtual GPU",
        wgpu::DeviceType::Other => "other device",
        wgpu::DeviceType::Cpu => "software on the CPU",
    }
}

/// Describes a device for people and for reports.
pub(crate) fn describe(
    index: usize,
    info: &wgpu::AdapterInfo,
    limits: &wgpu::Limits,
    features: wgpu::Features,
    variant: Variant,
) -> DeviceInfo {
    const MIB: u64 = 1 << 20;
    let driver = [&info.driver, &info.driver_info].map(|text| text.trim()).join(" ");
    let clock = if features.contains(wgpu::Features::TIMESTAMP_QUERY) { "timestamps" } else { "no timestamps" };
    let fingerprint = format!(
        "{}, {}, {}, subgroups {} to {}, binding {} MiB, buffer {} MiB, workgroup memory {} KiB, {clock}, {} kernels",
        kind_name(info.device_type),
        info.backend,
        driver.trim(),
        info.subgroup_min_size,
        info.subgroup_max_size,
        limits.max_storage_buffer_binding_size / MIB,
        limits.max_buffer_size / MIB,
        limits.max_compute_workgroup_storage_size / 1024,
        variant.name(),
    );
    DeviceInfo {
        id: BackendId::unique(),
        backend: "wgpu",
        index,
        name: info.name.clone(),
        fingerprint,
        memory: None,
        variant: variant.name(),
        variants: Variant::ALL.map(Variant::name).to_vec(),
        codecs: Codecs::ENEC,
    }
}
