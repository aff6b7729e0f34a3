//! Keeps the compressed weights of several layers on the GPU and expands one layer at a time into a buffer that a shader of this program reads.
//!
//! ```sh
//! cargo run --release -p enec-gpu --features wgpu --example resident
//! ```
//!
//! Each layer is a matrix in BF16. The shader multiplies it by a vector; the program checks the product against the one that it computes itself.

#![allow(clippy::print_stdout, clippy::cast_possible_truncation, reason = "a program whose numbers are small")]

use std::error::Error;
use std::sync::Arc;

use enec_core::{Backend, Codec, DeviceStream, OpenOptions, Target};
use enec_format::{Dtype, Stream};
use enec_gpu::wgpu::{WgpuBackend, api};

const LAYERS: u32 = 4;
/// Rows and columns of a layer.
const SIZE: usize = 1024;

/// One invocation per row; a word holds two weights, and a BF16 is the upper half of an F32.
const SHADER: &str = "
const SIZE: u32 = 1024u;

@group(0) @binding(0) var<storage, read> weights: array<u32>;
@group(0) @binding(1) var<storage, read> input: array<f32>;
@group(0) @binding(2) var<storage, read_write> output: array<f32>;

@compute @workgroup_size(64)
fn multiply(@builtin(global_invocation_id) id: vec3<u32>) {
    var sum = 0.0;
    for (var column = 0u; column < SIZE; column += 2u) {
        let pair = weights[(id.x * SIZE + column) / 2u];
        sum += bitcast<f32>(pair << 16u) * input[column] + bitcast<f32>(pair & 0xFFFF0000u) * input[column + 1u];
    }
    output[id.x] = sum;
}
";

fn main() -> Result<(), Box<dyn Error>> {
    // The program's own device, which it would also draw or infer with.
    let instance = api::Instance::new(api::InstanceDescriptor::new_without_display_handle());
    let adapter = pollster::block_on(instance.request_adapter(&api::RequestAdapterOptions::default()))?;
    let (device, queue) = pollster::block_on(adapter.request_device(&api::DeviceDescriptor::default()))?;
    println!("device: {}", adapter.get_info().name);

    // The backend works on the same device, so that buffers can be shared.
    let backend = Arc::new(WgpuBackend::with_device(device.clone(), queue.clone(), &OpenOptions::default())?);
    let codec = Codec::new(backend.clone());

    // Compressed layers in device memory. A loader would take the streams of a checkpoint as they lie in its file.
    let layers: Vec<Vec<u8>> = (0..LAYERS).map(weights).collect();
    let mut resident: Vec<DeviceStream> = Vec::new();
    for layer in &layers {
        let stream = codec.encode(Dtype::Bf16, layer)?;
        resident.push(codec.upload(&Stream::open(&stream)?)?);
    }
    let compressed: usize = resident.iter().map(|stream| stream.memory().len()).sum();
    let original: usize = layers.iter().map(Vec::len).sum();
    println!("{LAYERS} layers: {original} bytes, {compressed} on the device");

    // Room for one expanded layer, which is the shader's own buffer.
    let expanded = backend.alloc(layers[0].len())?;
    let product = Product::new(&device, backend.buffer(&expanded)?);
    let input: Vec<f32> = (0..SIZE as u16).map(|i| f32::from(i % 17) - 8.0).collect();
    queue.write_buffer(&product.input, 0, &input.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>());

    for (index, (stream, layer)) in resident.iter().zip(&layers).enumerate() {
        // Nothing crosses the bus but the order to decode.
        codec.decode_device(stream, Target::Device(expanded.full()))?;
        // What is submitted from now on sees the layer.
        let found = product.run(&device, &queue)?;
        let expected = multiply(layer, &input);
        let error = found.iter().zip(&expected).map(|(found, expected)| (found - expected).abs()).fold(0.0, f32::max);
        println!("layer {index}: {:?} on {}, largest difference {error:e}", &found[..2], backend.info().name);
        if error > 1e-3 {
            return Err("the shader's product differs from the program's".into());
        }
    }
    Ok(())
}

/// Weights of one layer: most of them small, few of them large.
fn weights(layer: u32) -> Vec<u8> {
    let mut state = layer + 1;
    let mut weights = Vec::with_capacity(2 * SIZE * SIZE);
    for _ in 0..SIZE * SIZE {
        state ^= state << 13;
        state ^= state >> 17;
        state ^= state << 5;
        let weight = (f64::from(state) / f64::from(u32::MAX) - 0.5).powi(3) as f32;
        weights.extend_from_slice(&weight.to_le_bytes()[2..]);
    }
    weights
}

fn multiply(weights: &[u8], input: &[f32]) -> Vec<f32> {
    let weight = |bytes: &[u8]| f32::from_le_bytes([0, 0, bytes[0], bytes[1]]);
    let row = |row: &[u8]| row.chunks_exact(2).zip(input).map(|(bytes, x)| weight(bytes) * x).sum();
    weights.chunks_exact(2 * SIZE).map(row).collect()
}

/// The program's own pipeline.
struct Product {
    pipeline: api::ComputePipeline,
    bindings: api::BindGroup,
    input: api::Buffer,
    output: api::Buffer,
    readable: api::Buffer,
}

impl Product {
    fn new(device: &api::Device, weights: &api::Buffer) -> Self {
        let module = device.create_shader_module(api::ShaderModuleDescriptor {
            label: None,
            source: api::ShaderSource::Wgsl(SHADER.into()),
        });
        let pipeline = device.create_compute_pipeline(&api::ComputePipelineDescriptor {
            label: None,
            layout: None,
            module: &module,
            entry_point: None,
            compilation_options: api::PipelineCompilationOptions::default(),
            cache: None,
        });
        let buffer = |usage| {
            let size = 4 * SIZE as u64;
            device.create_buffer(&api::BufferDescriptor { label: None, size, usage, mapped_at_creation: false })
        };
        let input = buffer(api::BufferUsages::STORAGE | api::BufferUsages::COPY_DST);
        let output = buffer(api::BufferUsages::STORAGE | api::BufferUsages::COPY_SRC);
        let readable = buffer(api::BufferUsages::MAP_READ | api::BufferUsages::COPY_DST);
        let entry = |binding, buffer| {
            let resource = api::BindingResource::Buffer(api::BufferBinding { buffer, offset: 0, size: None });
            api::BindGroupEntry { binding, resource }
        };
        let entries = [entry(0, weights), entry(1, &input), entry(2, &output)];
        let layout = pipeline.get_bind_group_layout(0);
        let descriptor = api::BindGroupDescriptor { label: None, layout: &layout, entries: &entries };
        let bindings = device.create_bind_group(&descriptor);
        Self { pipeline, bindings, input, output, readable }
    }

    fn run(&self, device: &api::Device, queue: &api::Queue) -> Result<Vec<f32>, Box<dyn Error>> {
        let mut commands = device.create_command_encoder(&api::CommandEncoderDescriptor::default());
        let mut pass = commands.begin_compute_pass(&api::ComputePassDescriptor::default());
        pass.set_pipeline(&self.pipeline);
        pass.set_bind_group(0, &self.bindings, &[]);
        pass.dispatch_workgroups(SIZE as u32 / 64, 1, 1);
        drop(pass);
        commands.copy_buffer_to_buffer(&self.output, 0, &self.readable, 0, None);
        queue.submit([commands.finish()]);
        self.readable.map_async(api::MapMode::Read, .., |_| {});
        device.poll(api::PollType::wait_indefinitely())?;
        let view = self.readable.get_mapped_range(..)?;
        let product = view.as_chunks::<4>().0.iter().map(|&bytes| f32::from_le_bytes(bytes)).collect();
        drop(view);
        self.readable.unmap();
        Ok(product)
    }
}
