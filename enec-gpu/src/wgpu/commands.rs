//! Commands of one submission: moves of bytes, and what kernels are told and given.

use crate::wgpu::gpu::{BINDING_ALIGNMENT, Gpu};
use crate::wgpu::memory::Bytes;
use crate::wgpu::pipelines::{INVOCATIONS, Kernel, Key, dispatch_size};
use crate::wgpu::window::{Dispatch, count};

impl Bytes {
    pub(crate) fn binding(&self) -> wgpu::BufferBinding<'_> {
        binding(&self.buffer, self.offset, self.len as u64)
    }
}

pub(crate) fn binding(buffer: &wgpu::Buffer, offset: u64, size: u64) -> wgpu::BufferBinding<'_> {
    wgpu::BufferBinding { buffer, offset, size: std::num::NonZero::new(size) }
}

pub(crate) fn bind_group(gpu: &Gpu, kernel: Kernel, bindings: &[wgpu::BufferBinding<'_>]) -> wgpu::BindGroup {
    let entries: Vec<_> = (0..)
        .zip(bindings)
        .map(|(binding, buffer)| wgpu::BindGroupEntry {
            binding,
            resource: wgpu::BindingResource::Buffer(buffer.clone()),
        })
        .collect();
    let layout = gpu.pipelines.layout(kernel);
    gpu.device.create_bind_group(&wgpu::BindGroupDescriptor { label: None, layout, entries: &entries })
}

/// One step of a move of bytes.
#[derive(Debug)]
pub(crate) enum Step {
    /// Whole words.
    Copy { from: wgpu::Buffer, from_offset: u64, to: wgpu::Buffer, to_offset: u64, len: u64 },
    /// Bytes at offsets that are no words, by a kernel with the order at this offset.
    Kernel { order: u64, from: Bytes, to: Bytes, words: u32 },
}

/// Bytes of an order of the kernel that moves bytes.
const ORDER_BYTES: u64 = 12;

/// Commands of one submission with the orders that its kernels read.
pub(crate) struct Commands<'g> {
    gpu: &'g Gpu,
    orders: Vec<u8>,
}

impl<'g> Commands<'g> {
    pub(crate) fn new(gpu: &'g Gpu) -> Self {
        Self { gpu, orders: Vec::new() }
    }

    /// Bytes of the orders so far.
    pub(crate) fn orders_len(&self) -> u64 {
        self.orders.len() as u64
    }

    fn order(&mut self, words: impl IntoIterator<Item = u32>) -> (u64, u64) {
        self.orders.resize(self.orders.len().next_multiple_of(usize::try_from(BINDING_ALIGNMENT).unwrap_or(256)), 0);
        let start = self.orders.len();
        self.orders.extend(words.into_iter().flat_map(u32::to_le_bytes));
        (start as u64, (self.orders.len() - start) as u64)
    }

    pub(crate) fn plan_parts(&mut self, dispatch: &Dispatch) -> (u64, u64) {
        let head = [dispatch.count, dispatch.blocks];
        self.order(head.into_iter().chain(dispatch.parts.iter().copied()))
    }

    /// Plans a move between different buffers.
    pub(crate) fn plan_move(&mut self, from: &Bytes, to: &Bytes) -> Vec<Step> {
        let mut steps = Vec::new();
        let mut moved = 0;
        if from.is_aligned() && to.is_aligned() {
            moved = from.len / 4 * 4;
            if moved > 0 {
                steps.push(Step::Copy {
                    from: from.buffer.clone(),
                    from_offset: from.offset,
                    to: to.buffer.clone(),
                    to_offset: to.offset,
                    len: moved as u64,
                });
            }
        }
        if moved < from.len {
            let length = (from.len - moved) as u64;
            let (from, from_start) = around(&from.part(moved..from.len));
            let (to, to_start) = around(&to.part(moved..to.len));
            let words = count((to_start + length).div_ceil(4) - to_start / 4);
            let (order, _) = self.order([count(from_start), count(to_start), count(length)]);
            steps.push(Step::Kernel { order, from, to, words });
        }
        steps
    }

    pub(crate) fn record(&self, encoder: &mut wgpu::CommandEncoder, orders: &wgpu::Buffer, steps: &[Step]) {
        for step in steps {
            match step {
                Step::Copy { from, from_offset, to, to_offset, len } => {
                    encoder.copy_buffer_to_buffer(from, *from_offset, to, *to_offset, *len);
                }
                Step::Kernel { order, from, to, words } => {
                    let bindings = [binding(orders, *order, ORDER_BYTES), from.binding(), to.binding()];
                    let mut pass = encoder.begin_compute_pass(&wgpu::ComputePassDescriptor::default());
                    pass.set_pipeline(&self.gpu.pipelines.get(&self.gpu.device, Key::of(Kernel::Move)));
                    pass.set_bind_group(0, &bind_group(self.gpu, Kernel::Move, &bindings), &[]);
                    let (columns, rows) = dispatch_size(words.div_ceil(INVOCATIONS), self.gpu.dimension);
                    pass.dispatch_workgroups(columns, rows, 1);
                }
            }
        }
    }

    pub(crate) fn submit(
        &self,
        encoder: wgpu::CommandEncoder,
        orders: &wgpu::Buffer,
        submission: &mut Option<wgpu::SubmissionIndex>,
    ) {
        if !self.orders.is_empty() {
            self.gpu.queue.write_buffer(orders, 0, &self.orders);
        }
        *submission = Some(self.gpu.queue.submit([encoder.finish()]));
    }
}

/// What is bound to reach bytes at any offset, and where they begin there.
fn around(bytes: &Bytes) -> (Bytes, u64) {
    let offset = bytes.offset / BINDING_ALIGNMENT * BINDING_ALIGNMENT;
    let start = bytes.offset - offset;
    let len = (start + bytes.len as u64).next_multiple_of(4);
    (Bytes { buffer: bytes.buffer.clone(), offset, len: usize::try_from(len).unwrap_or(usize::MAX) }, start)
}
