//! A launcher without a device: device memory is host memory, kernels are run by a function, and queues run as late and in as odd an order as
//! events allow.
//!
//! A driver gives every right to run an operation at once, much later, or beside those of other queues. A backend that forgets to wait for
//! an event works on most days; here it does not.

use std::alloc::{Layout, alloc, alloc_zeroed, dealloc};
use std::collections::{BTreeMap, VecDeque};
use std::fmt;
use std::ptr::{self, NonNull};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use enec_gpu::cuda::launcher::{Address, Description, Event, Failure, Launch, Launcher, Queue, Result};

/// Runs a kernel: its entry point, thread blocks, address of the jobs, number of jobs. An error is the device's.
pub(crate) type Runner = Box<dyn Fn(&str, u32, u64, u32) -> Result<(), String> + Send + Sync>;

/// What memory holds before anybody has written it.
const POISON: u8 = 0xA5;
const ALIGNMENT: usize = 256;

/// A launcher that defers operations.
pub(crate) struct HostLauncher {
    description: Description,
    run: Runner,
    /// Queues that go on without waiting for events: a fault, to be caught.
    heedless: Vec<Queue>,
    state: Mutex<State>,
}

struct State {
    queues: [VecDeque<Operation>; 4],
    events: Vec<Recorded>,
    /// Length by address.
    memory: BTreeMap<Address, usize>,
    random: u64,
}

/// How often an event has been recorded, and which of these records has run.
#[derive(Debug, Default, Clone, Copy)]
struct Recorded {
    asked: u64,
    run: u64,
}

enum Operation {
    Upload { source: usize, target: Address, len: usize },
    Download { source: Address, target: usize, len: usize },
    Copy { source: Address, target: Address, len: usize },
    Zero { target: Address, len: usize },
    Launch(Launch),
    Record { event: usize, record: u64 },
    Wait { event: usize, record: u64 },
}

impl HostLauncher {
    /// A device of this name. `seed` decides in which order queues run.
    pub(crate) fn new(name: &str, fingerprint: &str, run: Runner, seed: u64) -> Self {
        let (name, fingerprint) = (name.to_owned(), fingerprint.to_owned());
        let state = State {
            queues: Default::default(),
            events: Vec::new(),
            memory: BTreeMap::new(),
            random: seed.wrapping_mul(0x9E37_79B9_7F4A_7C15) | 1,
        };
        let description = Description { index: 0, name, fingerprint, memory: None };
        Self { description, run, heedless: Vec::new(), state: Mutex::new(state) }
    }

    /// The same, but these queues do not wait for events.
    pub(crate) fn heedless(self, queues: &[Queue]) -> Self {
        Self { heedless: queues.to_vec(), ..self }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds an operation, and perhaps runs some: a driver may, at any time.
    fn push(&self, queue: Queue, operation: Operation) -> Result<()> {
        let mut state = self.state();
        state.queues[queue as usize].push_back(operation);
        for _ in 0..state.below(3) {
            if !state.step(&self.run)? {
                break;
            }
        }
        Ok(())
    }
}

impl State {
    fn below(&mut self, limit: usize) -> usize {
        // An xorshift generator: any will do.
        self.random ^= self.random << 13;
        self.random ^= self.random >> 7;
        self.random ^= self.random << 17;
        usize::try_from(self.random >> 33).unwrap_or_default() % limit
    }

    /// Runs one operation of some queue; whether there was one that could run.
    fn step(&mut self, run: &Runner) -> Result<bool> {
        let ready = |operation: &Operation| match *operation {
            Operation::Wait { event, record } => self.events[event].run >= record,
            _ => true,
        };
        let ready: Vec<usize> = (0..4).filter(|&queue| self.queues[queue].front().is_some_and(ready)).collect();
        if ready.is_empty() {
            return Ok(false);
        }
        let queue = ready[self.below(ready.len())];
        if let Some(operation) = self.queues[queue].pop_front() {
            self.run(&operation, run)?;
        }
        Ok(true)
    }

    fn run(&mut self, operation: &Operation, run: &Runner) -> Result<()> {
        match *operation {
            Operation::Upload { source, target, len } => {
                self.check(target, len)?;
                let source = ptr::with_exposed_provenance::<u8>(source);
                // SAFETY: the target is live device memory; the source is the promise of whoever asked for this.
                unsafe { ptr::copy_nonoverlapping(source, pointer(target), len) };
            }
            Operation::Download { source, target, len } => {
                self.check(source, len)?;
                let target = ptr::with_exposed_provenance_mut::<u8>(target);
                // SAFETY: as above, the other way round.
                unsafe { ptr::copy_nonoverlapping(pointer(source), target, len) };
            }
            Operation::Copy { source, target, len } => {
                self.check(source, len)?;
                self.check(target, len)?;
                // SAFETY: both are live device memory; that they do not overlap is the promise of whoever asked for this.
                unsafe { ptr::copy_nonoverlapping(pointer(source), pointer(target), len) };
            }
            Operation::Zero { target, len } => {
                self.check(target, len)?;
                // SAFETY: it is live device memory.
                unsafe { pointer(target).write_bytes(0, len) };
            }
            Operation::Launch(launch) => {
                self.check(launch.units, 1)?;
                run(launch.kernel.name(), launch.blocks, launch.units, launch.count).map_err(Failure)?;
            }
            Operation::Record { event, record } => self.events[event].run = record,
            Operation::Wait { .. } => {}
        }
        Ok(())
    }

    /// Whether all of a range is device memory that has not been freed.
    fn check(&self, address: Address, len: usize) -> Result<()> {
        let found = self.memory.range(..=address).next_back();
        let end = address.checked_add(len as u64);
        match found.zip(end) {
            Some(((start, found), end)) if end <= start + *found as u64 => Ok(()),
            _ => Err(Failure(format!("{len} bytes at {address:#x} are not in device memory"))),
        }
    }

    fn settle(&mut self, run: &Runner, done: impl Fn(&Self) -> bool) -> Result<()> {
        while !done(self) {
            if !self.step(run)? {
                return Err(Failure("every queue waits for an event that nobody will record".into()));
            }
        }
        Ok(())
    }
}

fn pointer(address: Address) -> *mut u8 {
    ptr::with_exposed_provenance_mut(usize::try_from(address).unwrap_or_default())
}

fn layout(len: usize) -> Result<Layout> {
    Layout::from_size_align(len, ALIGNMENT).map_err(|_| Failure(format!("cannot allocate {len} bytes")))
}

impl Launcher for HostLauncher {
    fn description(&self) -> &Description {
        &self.description
    }

    fn allocate(&self, len: usize) -> Result<Address> {
        // SAFETY: `len` is not 0.
        let start = NonNull::new(unsafe { alloc(layout(len)?) });
        let start = start.ok_or_else(|| Failure(format!("cannot allocate {len} bytes")))?.as_ptr();
        // SAFETY: just allocated with this length.
        unsafe { start.write_bytes(POISON, len) };
        let address = start.expose_provenance() as u64;
        self.state().memory.insert(address, len);
        Ok(address)
    }

    unsafe fn free(&self, address: Address) {
        if let Some(len) = self.state().memory.remove(&address)
            && let Ok(layout) = layout(len)
        {
            // SAFETY: allocated in `allocate` with this layout, and forgotten since.
            unsafe { dealloc(pointer(address), layout) }
        }
    }

    fn allocate_pinned(&self, len: usize) -> Result<NonNull<u8>> {
        // SAFETY: `len` is not 0.
        let start = NonNull::new(unsafe { alloc_zeroed(layout(len)?) });
        start.ok_or_else(|| Failure(format!("cannot allocate {len} bytes")))
    }

    unsafe fn free_pinned(&self, start: NonNull<u8>, len: usize) {
        if let Ok(layout) = layout(len) {
            // SAFETY: allocated in `allocate_pinned` with this layout, as the caller promises.
            unsafe { dealloc(start.as_ptr(), layout) }
        }
    }

    unsafe fn upload(&self, queue: Queue, source: *const u8, target: Address, len: usize) -> Result<()> {
        self.push(queue, Operation::Upload { source: source.expose_provenance(), target, len })
    }

    unsafe fn download(&self, queue: Queue, source: Address, target: *mut u8, len: usize) -> Result<()> {
        self.push(queue, Operation::Download { source, target: target.expose_provenance(), len })
    }

    unsafe fn copy(&self, queue: Queue, source: Address, target: Address, len: usize) -> Result<()> {
        self.push(queue, Operation::Copy { source, target, len })
    }

    unsafe fn zero(&self, queue: Queue, target: Address, len: usize) -> Result<()> {
        self.push(queue, Operation::Zero { target, len })
    }

    unsafe fn launch(&self, launch: &Launch) -> Result<()> {
        if launch.blocks == 0 {
            return Err(Failure(format!("a launch of `{}` without blocks", launch.kernel.name())));
        }
        self.push(Queue::Compute, Operation::Launch(*launch))
    }

    fn event(&self) -> Result<Event> {
        let mut state = self.state();
        state.events.push(Recorded::default());
        Ok(Event(state.events.len() as u64 - 1))
    }

    fn record(&self, queue: Queue, event: Event) -> Result<()> {
        let event = index(event);
        let record = {
            let recorded = &mut self.state().events[event];
            recorded.asked += 1;
            recorded.asked
        };
        self.push(queue, Operation::Record { event, record })
    }

    fn wait(&self, queue: Queue, event: Event) -> Result<()> {
        if self.heedless.contains(&queue) {
            return Ok(());
        }
        let event = index(event);
        let record = self.state().events[event].asked;
        self.push(queue, Operation::Wait { event, record })
    }

    fn synchronise(&self, event: Event) -> Result<()> {
        let (mut state, event) = (self.state(), index(event));
        let record = state.events[event].asked;
        state.settle(&self.run, |state| state.events[event].run >= record)
    }

    fn drain(&self) {
        let mut state = self.state();
        // What fails here has failed before, and been told.
        let _ = state.settle(&self.run, |state| state.queues.iter().all(VecDeque::is_empty));
        state.queues.iter_mut().for_each(VecDeque::clear);
    }

    fn elapsed(&self, _start: Event, _end: Event) -> Result<Option<Duration>> {
        Ok(None)
    }
}

fn index(event: Event) -> usize {
    usize::try_from(event.0).unwrap_or(usize::MAX)
}

impl fmt::Debug for HostLauncher {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HostLauncher").field("description", &self.description).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn launcher(seed: u64) -> HostLauncher {
        HostLauncher::new("host", "test", Box::new(|_, _, _, _| Ok(())), seed)
    }

    #[test]
    fn queues_run_in_order_and_wait_for_events() {
        for seed in 0..50 {
            let launcher = launcher(seed);
            let (memory, event, end) =
                (launcher.allocate(8).unwrap(), launcher.event().unwrap(), launcher.event().unwrap());
            let (ones, mut found) = ([1_u8; 8], [0_u8; 8]);
            // SAFETY: everything lives until the end has been waited for.
            unsafe {
                launcher.upload(Queue::Upload, ones.as_ptr(), memory, 8).unwrap();
                launcher.record(Queue::Upload, event).unwrap();
                launcher.wait(Queue::Compute, event).unwrap();
                launcher.zero(Queue::Compute, memory + 2, 3).unwrap();
                launcher.record(Queue::Compute, event).unwrap();
                launcher.wait(Queue::Download, event).unwrap();
                launcher.download(Queue::Download, memory, found.as_mut_ptr(), 8).unwrap();
                launcher.record(Queue::Download, end).unwrap();
            }
            launcher.synchronise(end).unwrap();
            assert_eq!(found, [1, 1, 0, 0, 0, 1, 1, 1], "seed {seed}");
            // SAFETY: everything has run.
            unsafe { launcher.free(memory) }
        }
    }

    #[test]
    fn a_wait_that_is_left_out_shows() {
        let wrong = (0..50).filter(|&seed| {
            let launcher = launcher(seed);
            let (memory, end) = (launcher.allocate(1).unwrap(), launcher.event().unwrap());
            let mut found = [0_u8; 1];
            // SAFETY: everything lives until it has been drained.
            unsafe {
                launcher.zero(Queue::Compute, memory, 1).unwrap();
                launcher.download(Queue::Download, memory, found.as_mut_ptr(), 1).unwrap();
                launcher.record(Queue::Download, end).unwrap();
            }
            launcher.synchronise(end).unwrap();
            launcher.drain();
            // SAFETY: everything has run.
            unsafe { launcher.free(memory) }
            found == [POISON]
        });
        assert!((5..45).contains(&wrong.count()));
    }

    #[test]
    fn freed_memory_is_not_used() {
        let launcher = launcher(1);
        let (memory, end) = (launcher.allocate(4).unwrap(), launcher.event().unwrap());
        // SAFETY: this is the misuse that is to be found.
        let late = unsafe {
            launcher.free(memory);
            launcher.zero(Queue::Compute, memory, 4)
        };
        let late = late.and_then(|()| launcher.record(Queue::Compute, end)).and_then(|()| launcher.synchronise(end));
        assert!(late.is_err());
    }

    #[test]
    fn waiting_for_nothing_is_told() {
        let launcher = launcher(2);
        let (first, second) = (launcher.event().unwrap(), launcher.event().unwrap());
        launcher.state().events[0].asked = 1;
        launcher.wait(Queue::Compute, first).unwrap();
        launcher.record(Queue::Compute, second).unwrap();
        assert!(launcher.synchronise(second).is_err());
    }
}
