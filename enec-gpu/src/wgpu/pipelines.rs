//! The kernels, compiled once for a device when they are first needed.

use std::collections::HashMap;
use std::fmt::Write;
use std::sync::Mutex;

use enec_format::Dtype;
use enec_format::geometry::{BLOCK_TILES, LANES, ROWS, SEGMENT_ROW_LANES, SEGMENT_UNIT, TILE_MASK_BYTES};

use crate::wgpu::gpu::lock;

/// Invocations of a workgroup: every device allows so many.
pub(crate) const INVOCATIONS: u32 = 256;
/// The common width of kernels that read it from the part.
const GENERIC: u32 = 255;
/// Decoded bytes of a job from which on kernels for its common width are compiled, which takes a device a tenth of a second or more.
const WORTH_COMPILING: usize = 4 << 20;

/// Which kernels run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Variant {
    /// Kernels for the common width of large jobs, generic ones for the others.
    Specialised,
    /// The same kernels for every common width.
    Generic,
}

impl Variant {
    /// Best first.
    pub(crate) const ALL: [Self; 2] = [Self::Specialised, Self::Generic];

    /// The name that users type.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Specialised => "specialised",
            Self::Generic => "generic",
        }
    }
}

/// Which kernels a job gets.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Choice {
    variant: Variant,
    /// Decoded bytes from which on kernels are compiled for a job's common width.
    worth_compiling: usize,
}

impl Choice {
    /// Kernels that the caller names are used whatever the job.
    pub(crate) fn new(variant: Option<Variant>) -> Self {
        match variant {
            Some(variant) => Self { variant, worth_compiling: 0 },
            None => Self { variant: Variant::ALL[0], worth_compiling: WORTH_COMPILING },
        }
    }

    /// What they are called.
    pub(crate) fn variant(self) -> Variant {
        self.variant
    }

    /// The kernels for a job.
    pub(crate) fn kind(self, common_width: u8, decoded_len: usize) -> Kind {
        match self.variant {
            Variant::Specialised if decoded_len >= self.worth_compiling => Kind(common_width.into()),
            Variant::Specialised | Variant::Generic => Kind::GENERIC,
        }
    }
}

/// A kernel.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Kernel {
    Decode,
    Encode,
    Scan,
    Place,
    Copy,
    Move,
}

/// What a pipeline is made for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Key {
    pub(crate) kernel: Kernel,
    dtype: u8,
    common_width: u32,
}

impl Key {
    /// A kernel that works on tiles.
    pub(crate) fn new(kernel: Kernel, dtype: Dtype, kind: Kind) -> Self {
        match kernel {
            // Lengths and bytes are the same for every type.
            Kernel::Scan | Kernel::Copy | Kernel::Move => Self::of(kernel),
            // Next to nothing of it depends on the width.
            Kernel::Place => Self { kernel, dtype: dtype as u8, common_width: GENERIC },
            Kernel::Decode | Kernel::Encode => Self { kernel, dtype: dtype as u8, common_width: kind.0 },
        }
    }

    /// A kernel that does not depend on the elements.
    pub(crate) fn of(kernel: Kernel) -> Self {
        Self { kernel, dtype: Dtype::Bf16 as u8, common_width: GENERIC }
    }
}

/// The common width that kernels are compiled for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) struct Kind(u32);

impl Kind {
    /// Those that do for every common width.
    pub(crate) const GENERIC: Self = Self(GENERIC);
}

/// The pipelines of a device.
#[derive(Debug)]
pub(crate) struct Pipelines {
    layouts: HashMap<Kernel, wgpu::BindGroupLayout>,
    compiled: Mutex<HashMap<Key, wgpu::ComputePipeline>>,
}

impl Pipelines {
    /// None yet.
    pub(crate) fn new(device: &wgpu::Device) -> Self {
        const READ: bool = true;
        const WRITE: bool = false;
        // Whether each binding is only read.
        let bindings: [(Kernel, &[bool]); 6] = [
            // The stream is bound by words and by pieces of 16 bytes.
            (Kernel::Decode, &[READ, READ, READ, WRITE]),
            (Kernel::Encode, &[READ, READ, WRITE, WRITE]),
            (Kernel::Scan, &[READ, WRITE, WRITE]),
            (Kernel::Place, &[READ, READ, WRITE]),
            (Kernel::Copy, &[READ, READ, WRITE]),
            (Kernel::Move, &[READ, READ, WRITE]),
        ];
        let layouts = bindings.map(|(kernel, bindings)| (kernel, layout(device, bindings))).into();
        Self { layouts, compiled: Mutex::default() }
    }

    /// A pipeline. Not checked: the caller is within [`checked`](super::gpu::Gpu::checked).
    pub(crate) fn get(&self, device: &wgpu::Device, key: Key) -> wgpu::ComputePipeline {
        let mut compiled = lock(&self.compiled);
        compiled.entry(key).or_insert_with(|| self.compile(device, key)).clone()
    }

    /// The bindings of a kernel.
    pub(crate) fn layout(&self, kernel: Kernel) -> &wgpu::BindGroupLayout {
        &self.layouts[&kernel]
    }

    fn compile(&self, device: &wgpu::Device, key: Key) -> wgpu::ComputePipeline {
        let (source, entry_point) = source(key.kernel, decode_invocations(device.adapter_info().subgroup_max_size));
        let module = device.create_shader_module(wgpu::ShaderModuleDescriptor {
            label: Some(entry_point),
            source: wgpu::ShaderSource::Wgsl(source.into()),
        });
        let layout = device.create_pipeline_layout(&wgpu::PipelineLayoutDescriptor {
            label: Some(entry_point),
            bind_group_layouts: &[Some(self.layout(key.kernel))],
            immediate_size: 0,
        });
        let constants = [("DTYPE", f64::from(key.dtype)), ("COMMON_WIDTH", f64::from(key.common_width))];
        let on_tiles = matches!(key.kernel, Kernel::Decode | Kernel::Encode | Kernel::Scan | Kernel::Place);
        device.create_compute_pipeline(&wgpu::ComputePipelineDescriptor {
            label: Some(entry_point),
            layout: Some(&layout),
            module: &module,
            entry_point: Some(entry_point),
            compilation_options: wgpu::PipelineCompilationOptions {
                constants: if on_tiles { &constants } else { &[] },
                // Every kernel writes what it reads of it.
                zero_initialize_workgroup_memory: false,
            },
            cache: None,
        })
    }
}

/// The shape of a dispatch of so many workgroups, at most `dimension` each way.
pub(crate) fn dispatch_size(workgroups: u32, dimension: u32) -> (u32, u32) {
    let rows = workgroups.div_ceil(dimension).max(1);
    (workgroups.div_ceil(rows), rows)
}

fn layout(device: &wgpu::Device, bindings: &[bool]) -> wgpu::BindGroupLayout {
    let entries: Vec<_> = (0..)
        .zip(bindings)
        .map(|(binding, &read_only)| wgpu::BindGroupLayoutEntry {
            binding,
            visibility: wgpu::ShaderStages::COMPUTE,
            ty: wgpu::BindingType::Buffer {
                ty: wgpu::BufferBindingType::Storage { read_only },
                has_dynamic_offset: false,
                min_binding_size: None,
            },
            count: None,
        })
        .collect();
    device.create_bind_group_layout(&wgpu::BindGroupLayoutDescriptor { label: None, entries: &entries })
}

/// Invocations of a workgroup that decodes. They have nothing to do with each other, but what they have to find out first they all do, so they
/// are as few as the device runs at once.
fn decode_invocations(subgroup: u32) -> u32 {
    // From half a row to half a block.
    subgroup.clamp(8, 64).next_power_of_two()
}

/// The text of a kernel and the name of its entry point.
fn source(kernel: Kernel, decode_invocations: u32) -> (String, &'static str) {
    const COMMON: &str = include_str!("../../kernels/common.wgsl");
    const ENCODE_PART: &str = include_str!("../../kernels/encode_part.wgsl");
    let (parts, entry_point): (&[&str], _) = match kernel {
        Kernel::Decode => (&[COMMON, include_str!("../../kernels/decode.wgsl")], "decode"),
        Kernel::Encode => (&[COMMON, ENCODE_PART, include_str!("../../kernels/encode.wgsl")], "encode"),
        Kernel::Scan => (&[COMMON, ENCODE_PART, include_str!("../../kernels/scan.wgsl")], "scan"),
        Kernel::Place => (&[COMMON, ENCODE_PART, include_str!("../../kernels/place.wgsl")], "place"),
        Kernel::Copy => (&[include_str!("../../kernels/copy.wgsl")], "copy"),
        Kernel::Move => (&[include_str!("../../kernels/move.wgsl")], "move_bytes"),
    };
    (constants(decode_invocations) + &parts.concat(), entry_point)
}

/// What the kernels need to know of the format, from the format itself.
fn constants(decode_invocations: u32) -> String {
    let constants = [
        ("ROWS", ROWS),
        ("LANES", LANES),
        // Words of a row: a column is a word of two lanes.
        ("COLUMNS", LANES / 2),
        ("BLOCK_TILES", BLOCK_TILES),
        ("MASK_WORDS", TILE_MASK_BYTES / 4),
        ("UNIT_WORDS", SEGMENT_UNIT / 4),
        // Words of a segment of the most lanes, for each bit of the high width.
        ("SEGMENT_WORDS", BLOCK_TILES * LANES / SEGMENT_ROW_LANES * SEGMENT_UNIT / 4),
        ("BF16", Dtype::Bf16 as usize),
        ("F16", Dtype::F16 as usize),
        ("F32", Dtype::F32 as usize),
        ("GENERIC", GENERIC as usize),
        ("INVOCATIONS", INVOCATIONS as usize),
        ("DECODE_INVOCATIONS", decode_invocations as usize),
        ("SCAN_INVOCATIONS", 64),
    ];
    constants.into_iter().fold(String::new(), |mut text, (name, value)| {
        // Writing to a string does not fail.
        let _ = writeln!(text, "const {name}: u32 = {value}u;");
        text
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dispatches_cover_their_workgroups() {
        const DIMENSION: u32 = 65_535;
        for workgroups in [0, 1, 65_535, 65_536, 131_071, 10_000_000] {
            let (columns, rows) = dispatch_size(workgroups, DIMENSION);
            assert!(columns <= DIMENSION && rows <= DIMENSION);
            assert!(columns * rows >= workgroups && columns * rows < workgroups + rows.max(1));
        }
    }

    #[test]
    fn decoding_workgroups_share_out_a_block() {
        for subgroup in [0, 1, 4, 8, 16, 24, 32, 64, 128] {
            // Pieces of 8 lanes, half a row of them at a time.
            let invocations = decode_invocations(subgroup) as usize;
            assert!(invocations.is_multiple_of(8) && (BLOCK_TILES * LANES / 8).is_multiple_of(invocations));
        }
    }

    #[test]
    fn small_jobs_do_not_wait_for_a_compiler() {
        let unasked = Choice::new(None);
        assert_eq!(unasked.kind(3, 1000), Kind::GENERIC);
        assert_eq!(unasked.kind(3, WORTH_COMPILING), Kind(3));
        assert_eq!(Choice::new(Some(Variant::Specialised)).kind(3, 1000), Kind(3));
        assert_eq!(Choice::new(Some(Variant::Generic)).kind(3, WORTH_COMPILING), Kind::GENERIC);
    }
}
