//! A slot: buffers for one window, and the commands that carry it out.

use std::sync::{Arc, Condvar, Mutex};
use std::time::Duration;

use enec_core::Result;

use crate::wgpu::commands::{Commands, Step, bind_group, binding};
use crate::wgpu::gpu::{Gpu, lock};
use crate::wgpu::memory::{Bytes, USAGE};
use crate::wgpu::pipelines::{Kernel, Key, dispatch_size};
use crate::wgpu::window::{Bound, Dispatch, Place, Space, To, Window};

/// Bytes of the smallest buffer: growing is for the large ones.
const SMALLEST: u64 = 64 << 10;
/// Bytes of the two ticks of a window's kernels.
const TICK_BYTES: u64 = 16;

/// A buffer that grows with what is asked of it.
#[derive(Debug)]
struct Growing {
    label: &'static str,
    usage: wgpu::BufferUsages,
    buffer: Option<wgpu::Buffer>,
}

impl Growing {
    const fn new(label: &'static str, usage: wgpu::BufferUsages) -> Self {
        Self { label, usage, buffer: None }
    }

    fn at_least(&mut self, gpu: &Gpu, len: u64) -> wgpu::Buffer {
        if let Some(buffer) = self.buffer.as_ref().filter(|buffer| buffer.size() >= len) {
            return buffer.clone();
        }
        // The old one goes first: there may not be room for both.
        self.buffer = None;
        let rounded = len.next_power_of_two().clamp(SMALLEST, gpu.binding_limit.max(len));
        let buffer = gpu.buffer(self.label, rounded, self.usage);
        self.buffer = Some(buffer.clone());
        buffer
    }
}

/// Mappings that have been asked for and not been answered.
#[derive(Debug, Default)]
struct Pending {
    state: Mutex<(usize, bool)>,
    changed: Condvar,
}

/// Buffers for one window at a time.
#[derive(Debug)]
pub(crate) struct Slot {
    upload: Option<wgpu::Buffer>,
    input: Growing,
    output: Growing,
    scratch: Growing,
    orders: Growing,
    readback: Growing,
    status: Growing,
    clock: Option<(wgpu::QuerySet, wgpu::Buffer)>,
    pending: Arc<Pending>,
    submission: Option<wgpu::SubmissionIndex>,
    /// Of the submission that is under way: words of status, whether there are ticks behind them, and where in the readback what lies that
    /// goes to which host memory.
    status_words: usize,
    is_timed: bool,
    has_status: bool,
    deliveries: Vec<Delivery>,
    read_len: u64,
}

/// Bytes of the readback that belong to a job.
#[derive(Debug)]
struct Delivery {
    from: u64,
    len: usize,
    job: usize,
    at: usize,
}

impl Slot {
    /// A slot without memory yet.
    pub(crate) fn new() -> Self {
        const READ: wgpu::BufferUsages = wgpu::BufferUsages::MAP_READ.union(wgpu::BufferUsages::COPY_DST);
        Self {
            upload: None,
            input: Growing::new("enec input", USAGE),
            output: Growing::new("enec output", USAGE),
            scratch: Growing::new("enec scratch", USAGE),
            orders: Growing::new("enec orders", USAGE),
            readback: Growing::new("enec readback", READ),
            status: Growing::new("enec status", READ),
            clock: None,
            pending: Arc::default(),
            submission: None,
            status_words: 0,
            is_timed: false,
            has_status: false,
            deliveries: Vec::new(),
            read_len: 0,
        }
    }

    /// Starts a window: transfers, kernels, and the results that need no status. `totals` are the running lengths of the batch's encode jobs.
    ///
    /// # Errors
    ///
    /// The device's.
    pub(crate) fn begin(&mut self, gpu: &Gpu, window: &Window<'_>, totals: Option<&wgpu::Buffer>) -> Result<()> {
        gpu.checked(|| {
            let input = self.input.at_least(gpu, window.input);
            self.output.at_least(gpu, window.output);
            self.scratch.at_least(gpu, window.scratch);
            self.is_timed = gpu.tick.is_some() && !window.dispatches.is_empty();
            let mut commands = Commands::new(gpu);
            let gathered = window.gathered.iter().map(|(at, bytes)| {
                let to = Bytes { buffer: input.clone(), offset: *at, len: bytes.len };
                commands.plan_move(bytes, &to)
            });
            let gathered: Vec<_> = gathered.collect();
            let dispatches: Vec<_> = window.dispatches.iter().map(|dispatch| commands.plan_parts(dispatch)).collect();
            let results = self.plan_results(gpu, &mut commands, &window.results);
            let orders = self.orders.at_least(gpu, commands.orders_len());

            let uploaded = self.stage(gpu, &window.host, window.input)?;
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            if let Some(upload) = self.upload.as_ref().filter(|_| !uploaded.is_empty()) {
                for &(start, end) in &uploaded {
                    encoder.copy_buffer_to_buffer(upload, start, &input, start, end - start);
                }
            }
            gathered.iter().for_each(|steps| commands.record(&mut encoder, &orders, steps));
            self.run_kernels(gpu, &mut encoder, &orders, &window.dispatches, &dispatches, totals);
            results.iter().for_each(|steps| commands.record(&mut encoder, &orders, steps));
            self.record_status(gpu, &mut encoder, window.status_words);
            commands.submit(encoder, &orders, &mut self.submission);
            if !uploaded.is_empty()
                && let Some(upload) = self.upload.clone()
            {
                self.map(&upload, wgpu::MapMode::Write, upload.size());
            }
            self.map_results();
            Ok(())
        })
    }

    /// Goes on with results that became known with the status.
    ///
    /// # Errors
    ///
    /// The device's.
    pub(crate) fn go_on(&mut self, gpu: &Gpu, results: &[(Place, To)]) -> Result<()> {
        gpu.checked(|| {
            let mut commands = Commands::new(gpu);
            let results = self.plan_results(gpu, &mut commands, results);
            let orders = self.orders.at_least(gpu, commands.orders_len());
            let mut encoder = gpu.device.create_command_encoder(&wgpu::CommandEncoderDescriptor::default());
            results.iter().for_each(|steps| commands.record(&mut encoder, &orders, steps));
            self.has_status = false;
            commands.submit(encoder, &orders, &mut self.submission);
            self.map_results();
            Ok(())
        })
    }

    /// Waits for what was started, and gives the words of status and the ticks that the kernels took.
    ///
    /// # Errors
    ///
    /// The device's.
    pub(crate) fn wait(&mut self, gpu: &Gpu) -> Result<(Vec<u32>, u64)> {
        gpu.checked(|| {
            let failed =
                || gpu.error(gpu.lost().map_or("does not answer".to_owned(), |why| format!("device lost ({why})")));
            let mut state;
            loop {
                let wait = wgpu::PollType::Wait { submission_index: self.submission.clone(), timeout: None };
                gpu.device.poll(wait).map_err(|error| gpu.error(format!("does not finish: {error}")))?;
                state = lock(&self.pending.state);
                if state.0 == 0 {
                    break;
                }
                // Another thread polled and is about to tell.
                let waited = self.pending.changed.wait_timeout(state, Duration::from_millis(1));
                drop(waited.unwrap_or_else(std::sync::PoisonError::into_inner));
                if gpu.lost().is_some() {
                    return Err(failed());
                }
            }
            if state.1 {
                return Err(failed());
            }
            drop(state);
            if !self.has_status {
                return Ok((Vec::new(), 0));
            }
            let status = self.status.at_least(gpu, 0);
            let len = self.status_len();
            let words: Vec<u32> = {
                let view = status.get_mapped_range(0..len).map_err(|error| gpu.error(error.to_string()))?;
                view.as_chunks::<4>().0.iter().map(|&bytes| u32::from_le_bytes(bytes)).collect()
            };
            status.unmap();
            let (words, ticks) = words.split_at(self.status_words.max(1));
            let tick =
                |at: usize| ticks.get(at..at + 2).map_or(0, |tick| u64::from(tick[0]) | u64::from(tick[1]) << 32);
            Ok((words[..self.status_words].to_vec(), tick(2).saturating_sub(tick(0))))
        })
    }

    /// Hands out the results that went to host memory.
    ///
    /// # Errors
    ///
    /// The device's.
    pub(crate) fn deliver(&mut self, gpu: &Gpu, mut receive: impl FnMut(usize, usize, &[u8])) -> Result<()> {
        if self.read_len == 0 {
            return Ok(());
        }
        gpu.checked(|| {
            let readback = self.readback.at_least(gpu, 0);
            let view = readback.get_mapped_range(0..self.read_len).map_err(|error| gpu.error(error.to_string()))?;
            for delivery in self.deliveries.drain(..) {
                let from = usize::try_from(delivery.from).unwrap_or(usize::MAX);
                receive(delivery.job, delivery.at, &view[from..from + delivery.len]);
            }
            drop(view);
            readback.unmap();
            self.read_len = 0;
            Ok(())
        })
    }

    /// Puts host bytes into the upload buffer, at the offsets that they will have in the input, and gives the ranges to copy.
    fn stage(&mut self, gpu: &Gpu, host: &[(u64, &[u8])], len: u64) -> Result<Vec<(u64, u64)>> {
        let mut ranges: Vec<(u64, u64)> = Vec::new();
        if host.is_empty() {
            return Ok(ranges);
        }
        if self.upload.as_ref().is_none_or(|upload| upload.size() < len) {
            self.upload = None;
            self.upload = Some(gpu.device.create_buffer(&wgpu::BufferDescriptor {
                label: Some("enec upload"),
                size: len.next_power_of_two().max(SMALLEST),
                usage: wgpu::BufferUsages::MAP_WRITE | wgpu::BufferUsages::COPY_SRC,
                mapped_at_creation: true,
            }));
        }
        let upload = self.upload.as_ref().ok_or_else(|| gpu.error("no upload buffer"))?;
        for (at, bytes) in host {
            let end = (at + bytes.len() as u64).next_multiple_of(4);
            let mut view = upload.get_mapped_range_mut(*at..end).map_err(|error| gpu.error(error.to_string()))?;
            view.slice(..bytes.len()).copy_from_slice(bytes);
            match ranges.last_mut() {
                // Between neighbours lies only what aligns them.
                Some(last) if at - last.1 < 64 => last.1 = end,
                _ => ranges.push((*at, end)),
            }
        }
        upload.unmap();
        Ok(ranges)
    }

    fn space(&mut self, gpu: &Gpu, space: Space) -> wgpu::Buffer {
        match space {
            Space::Input => self.input.at_least(gpu, 0),
            Space::Output => self.output.at_least(gpu, 0),
        }
    }

    /// Plans the way of results to device memory and to the readback buffer.
    fn plan_results(&mut self, gpu: &Gpu, commands: &mut Commands<'_>, results: &[(Place, To)]) -> Vec<Vec<Step>> {
        self.deliveries.clear();
        self.read_len = 0;
        let mut planned = Vec::new();
        let mut read = Vec::new();
        for (from, to) in results {
            let from = match from {
                Place::Slot(space, offset, len) => {
                    Bytes { buffer: self.space(gpu, *space), offset: *offset, len: *len }
                }
                Place::Memory(bytes) => bytes.clone(),
            };
            match to {
                To::Memory(to) => planned.push(commands.plan_move(&from, to)),
                To::Host { job, at } => {
                    // Whole words are read, whatever the offset.
                    let start = from.offset / 4 * 4;
                    let len = (from.offset + from.len as u64).next_multiple_of(4) - start;
                    let skipped = from.offset - start;
                    self.deliveries.push(Delivery { from: self.read_len + skipped, len: from.len, job: *job, at: *at });
                    read.push((from.buffer, start, self.read_len, len));
                    self.read_len += len;
                }
            }
        }
        let readback = self.readback.at_least(gpu, self.read_len);
        planned.push(
            read.into_iter()
                .filter(|(.., len)| *len > 0)
                .map(|(from, from_offset, to_offset, len)| Step::Copy {
                    from,
                    from_offset,
                    to: readback.clone(),
                    to_offset,
                    len,
                })
                .collect(),
        );
        planned
    }

    fn run_kernels(
        &mut self,
        gpu: &Gpu,
        encoder: &mut wgpu::CommandEncoder,
        orders: &wgpu::Buffer,
        dispatches: &[Dispatch],
        parts: &[(u64, u64)],
        totals: Option<&wgpu::Buffer>,
    ) {
        if dispatches.is_empty() {
            return;
        }
        let scratch = self.scratch.at_least(gpu, 0);
        let ready: Vec<_> = dispatches
            .iter()
            .zip(parts)
            .map(|(dispatch, &(offset, size))| {
                let order = binding(orders, offset, size);
                (dispatch, order, self.bind(gpu, &dispatch.source), self.bind(gpu, &dispatch.target))
            })
            .collect();
        let clock = self.clock(gpu).map(|(ticks, _)| wgpu::ComputePassTimestampWrites {
            query_set: ticks,
            beginning_of_pass_write_index: Some(0),
            end_of_pass_write_index: Some(1),
        });
        let descriptor = wgpu::ComputePassDescriptor { label: Some("enec"), timestamp_writes: clock };
        let mut pass = encoder.begin_compute_pass(&descriptor);
        let mut run = |key: Key, workgroups: u32, bindings: &[wgpu::BufferBinding<'_>]| {
            pass.set_pipeline(&gpu.pipelines.get(&gpu.device, key));
            pass.set_bind_group(0, &bind_group(gpu, key.kernel, bindings), &[]);
            let (columns, rows) = dispatch_size(workgroups, gpu.dimension);
            pass.dispatch_workgroups(columns, rows, 1);
        };
        let scratch = || binding(&scratch, 0, scratch.size());
        for (dispatch, order, source, target) in &ready {
            let key = Key::new(dispatch.kernel, dispatch.dtype, dispatch.kind);
            let bindings = [order.clone(), source.binding(), target.binding()];
            match dispatch.kernel {
                Kernel::Decode => {
                    let [order, source, target] = bindings;
                    run(key, dispatch.blocks, &[order, source.clone(), source, target]);
                }
                Kernel::Encode => run(key, dispatch.blocks, &[&bindings[..], &[scratch()]].concat()),
                _ => run(key, dispatch.blocks, &bindings),
            }
        }
        let Some(totals) = totals else { return };
        for (dispatch, order, ..) in &ready {
            let bindings = [order.clone(), scratch(), binding(totals, 0, totals.size())];
            run(Key::of(Kernel::Scan), dispatch.count, &bindings);
        }
        for (dispatch, order, _, target) in &ready {
            let key = Key::new(Kernel::Place, dispatch.dtype, dispatch.kind);
            run(key, dispatch.blocks, &[order.clone(), scratch(), target.binding()]);
        }
    }

    fn bind(&mut self, gpu: &Gpu, bound: &Bound) -> Bytes {
        match bound {
            Bound::Memory(bytes) => bytes.clone(),
            Bound::Slot(space) => {
                let buffer = self.space(gpu, *space);
                let len = usize::try_from(buffer.size().min(gpu.binding_limit)).unwrap_or(usize::MAX);
                Bytes { buffer, offset: 0, len }
            }
        }
    }

    /// The device's clock for this slot, if it has one.
    fn clock(&mut self, gpu: &Gpu) -> Option<&(wgpu::QuerySet, wgpu::Buffer)> {
        gpu.tick?;
        Some(self.clock.get_or_insert_with(|| {
            let ticks = gpu.device.create_query_set(&wgpu::QuerySetDescriptor {
                label: Some("enec ticks"),
                ty: wgpu::QueryType::Timestamp,
                count: 2,
            });
            let usage = wgpu::BufferUsages::QUERY_RESOLVE | wgpu::BufferUsages::COPY_SRC;
            (ticks, gpu.buffer("enec ticks", TICK_BYTES, usage))
        }))
    }

    fn status_len(&self) -> u64 {
        // At least one word, so that a device that does not answer is noticed whatever the window does.
        4 * self.status_words.max(1) as u64 + if self.is_timed { TICK_BYTES } else { 0 }
    }

    /// Copies the head of the scratch memory and the ticks to where the host can read them.
    fn record_status(&mut self, gpu: &Gpu, encoder: &mut wgpu::CommandEncoder, words: usize) {
        self.status_words = words;
        let len = self.status_len();
        self.has_status = true;
        let (scratch, status) = (self.scratch.at_least(gpu, 0), self.status.at_least(gpu, len));
        let word_bytes = 4 * words.max(1) as u64;
        encoder.copy_buffer_to_buffer(&scratch, 0, &status, 0, word_bytes);
        if self.is_timed
            && let Some((ticks, resolved)) = self.clock(gpu)
        {
            encoder.resolve_query_set(ticks, 0..2, resolved, 0);
            encoder.copy_buffer_to_buffer(resolved, 0, &status, word_bytes, TICK_BYTES);
        }
    }

    fn map_results(&mut self) {
        if self.has_status
            && let Some(status) = self.status.buffer.clone()
        {
            self.map(&status, wgpu::MapMode::Read, self.status_len());
        }
        if self.read_len > 0
            && let Some(readback) = self.readback.buffer.clone()
        {
            self.map(&readback, wgpu::MapMode::Read, self.read_len);
        }
    }

    fn map(&self, buffer: &wgpu::Buffer, mode: wgpu::MapMode, len: u64) {
        lock(&self.pending.state).0 += 1;
        let pending = Arc::clone(&self.pending);
        buffer.map_async(mode, 0..len, move |result| {
            let mut state = lock(&pending.state);
            state.0 -= 1;
            state.1 |= result.is_err();
            pending.changed.notify_all();
        });
    }
}
