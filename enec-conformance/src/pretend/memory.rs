//! Memory that no host pointer reaches.

use std::any::Any;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use enec_core::DeviceMemory;

/// Memory of the pretend backend.
#[derive(Debug)]
pub(super) struct PretendMemory {
    bytes: Mutex<Vec<u8>>,
    len: usize,
    pool: Option<Pool>,
}

/// Memory that has been freed, for the fault of handing it out as it is.
#[derive(Debug, Clone, Default)]
pub(super) struct Pool(Arc<Mutex<Vec<Vec<u8>>>>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl PretendMemory {
    /// `None` if there is not so much.
    pub(super) fn new(len: usize, fill: u8) -> Option<Self> {
        let mut bytes = Vec::new();
        bytes.try_reserve_exact(len).ok()?;
        bytes.resize(len, fill);
        Some(Self { bytes: Mutex::new(bytes), len, pool: None })
    }

    pub(super) fn with<T>(&self, work: impl FnOnce(&mut [u8]) -> T) -> T {
        work(&mut lock(&self.bytes))
    }
}

impl Pool {
    pub(super) fn alloc(&self, len: usize) -> Option<PretendMemory> {
        let mut free = lock(&self.0);
        let used = free.iter().position(|bytes| bytes.len() == len).map(|at| free.swap_remove(at));
        let mut memory = PretendMemory::new(if used.is_some() { 0 } else { len }, 0)?;
        if let Some(used) = used {
            memory.bytes = Mutex::new(used);
        }
        (memory.len, memory.pool) = (len, Some(self.clone()));
        Some(memory)
    }
}

impl Drop for PretendMemory {
    fn drop(&mut self) {
        if let Some(Pool(free)) = &self.pool {
            lock(free).push(std::mem::take(&mut lock(&self.bytes)));
        }
    }
}

impl DeviceMemory for PretendMemory {
    fn len(&self) -> usize {
        self.len
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}
