//! A ring of slots: while the device works on one window, the next goes up and the last comes down.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use enec_core::{KernelTime, Result};

use crate::wgpu::gpu::Gpu;
use crate::wgpu::pipelines::Choice;
use crate::wgpu::slot::Slot;
use crate::wgpu::window::{Place, To, Window};

/// Windows under way at a time.
const SLOTS: usize = 3;

/// What a batch asks of the ring, window by window.
pub(crate) trait Work<'a> {
    /// The next window; none when there is no more.
    fn next_window(&mut self) -> Option<Window<'a>>;

    /// The results that go on their way now that the window's status is known.
    fn results(&mut self, window: &Window<'a>, status: &[u32]) -> Result<Vec<(Place, To)>> {
        let _ = (window, status);
        Ok(Vec::new())
    }

    /// Bytes for byte `at` of the target of job `job`.
    fn receive(&mut self, job: usize, at: usize, bytes: &[u8]);
}

/// The slots of one backend.
#[derive(Debug)]
pub(crate) struct Ring {
    pub(crate) gpu: Arc<Gpu>,
    pub(crate) kernels: Choice,
    idle: Vec<Slot>,
    /// Of the call that runs: whether a window's kernels were timed, and the sum.
    ticks: Option<u64>,
    kernel_time: Option<KernelTime>,
}

/// A window under way.
struct Flight<'a> {
    slot: Slot,
    window: Window<'a>,
    /// Whether results wait for its status.
    waits: bool,
}

impl Ring {
    /// No slot has memory yet.
    pub(crate) fn new(gpu: Arc<Gpu>, kernels: Choice) -> Self {
        Self { gpu, kernels, idle: Vec::new(), ticks: None, kernel_time: None }
    }

    /// How long the kernels of the last call took.
    pub(crate) fn kernel_time(&self) -> Option<KernelTime> {
        self.kernel_time
    }

    /// Runs a call whose kernels are timed together.
    ///
    /// # Errors
    ///
    /// The call's.
    pub(crate) fn timed<T>(&mut self, call: impl FnOnce(&mut Self) -> Result<T>) -> Result<T> {
        self.ticks = self.gpu.tick.map(|_| 0);
        let result = call(self)?;
        #[expect(clippy::cast_precision_loss, reason = "a duration for people")]
        let nanoseconds = self.ticks.zip(self.gpu.tick).map(|(ticks, tick)| ticks as f64 * tick);
        self.kernel_time = nanoseconds.map(|time| KernelTime::Measured(Duration::from_secs_f64(time / 1e9)));
        Ok(result)
    }

    /// Carries out all windows. `totals` are the running lengths of encode jobs.
    ///
    /// # Errors
    ///
    /// The device's; then what the slots were doing is forgotten with them.
    pub(crate) fn run<'a>(&mut self, work: &mut dyn Work<'a>, totals: Option<&wgpu::Buffer>) -> Result<()> {
        let mut flights: VecDeque<Flight<'a>> = VecDeque::new();
        let result = self.run_windows(work, totals, &mut flights);
        if result.is_err() {
            self.idle.clear();
        }
        result
    }

    fn run_windows<'a>(
        &mut self,
        work: &mut dyn Work<'a>,
        totals: Option<&wgpu::Buffer>,
        flights: &mut VecDeque<Flight<'a>>,
    ) -> Result<()> {
        while let Some(window) = work.next_window() {
            if flights.len() == SLOTS
                && let Some(flight) = flights.pop_front()
            {
                self.land(work, flight)?;
            }
            let mut slot = self.idle.pop().unwrap_or_else(Slot::new);
            slot.begin(&self.gpu, &window, totals)?;
            let waits = window.status_words > 0;
            for flight in flights.iter_mut().filter(|flight| flight.waits) {
                self.go_on(work, flight)?;
            }
            flights.push_back(Flight { slot, window, waits });
        }
        while let Some(flight) = flights.pop_front() {
            self.land(work, flight)?;
        }
        Ok(())
    }

    fn go_on<'a>(&mut self, work: &mut dyn Work<'a>, flight: &mut Flight<'a>) -> Result<()> {
        let (status, ticks) = flight.slot.wait(&self.gpu)?;
        self.ticks = self.ticks.map(|sum| sum + ticks);
        flight.waits = false;
        let results = work.results(&flight.window, &status)?;
        flight.slot.go_on(&self.gpu, &results)
    }

    fn land<'a>(&mut self, work: &mut dyn Work<'a>, mut flight: Flight<'a>) -> Result<()> {
        if flight.waits {
            self.go_on(work, &mut flight)?;
        }
        let (_, ticks) = flight.slot.wait(&self.gpu)?;
        self.ticks = self.ticks.map(|sum| sum + ticks);
        flight.slot.deliver(&self.gpu, |job, at, bytes| work.receive(job, at, bytes))?;
        self.idle.push(flight.slot);
        Ok(())
    }
}
