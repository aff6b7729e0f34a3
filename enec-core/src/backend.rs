//! What a backend is: a device with memory that encodes and decodes batches of checked jobs.

use std::fmt;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::time::Duration;

use crate::{BackendId, Codecs, DecodeBatch, DeviceBuf, DeviceSlice, EncodeBatch, Result};

/// One opened device, as one ordered queue.
///
/// Implementors may trust what the types say: a batch holds only jobs whose plans are validated, whose buffers have the planned
/// sizes and do not overlap, and whose device memory is their own. An `Err` is about the device; what is about one job's data
/// goes into that job's status and leaves the others alone. Backends never validate, hash or seal: core does.
pub trait Backend: fmt::Debug + Send + Sync {
    /// What the device is and can do.
    fn info(&self) -> &DeviceInfo;

    /// Allocates `len` bytes of device memory, zeroed.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device has not that much left.
    fn alloc(&self, len: usize) -> Result<DeviceBuf>;

    /// Copies host bytes into device memory of the same length.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails, [`Error::Argument`](crate::Error::Argument) if the lengths
    /// differ or the memory is another backend's: see [`check_transfer`](DeviceInfo::check_transfer).
    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()>;

    /// Copies device memory into host bytes of the same length.
    ///
    /// # Errors
    ///
    /// As [`upload`](Self::upload).
    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()>;

    /// Copies device memory to device memory of the same length.
    ///
    /// What is provided goes through host memory; a device that can copy by itself should.
    ///
    /// # Errors
    ///
    /// [`Error::Device`](crate::Error::Device) if the device fails, [`Error::Argument`](crate::Error::Argument) if the lengths
    /// differ, the slices overlap, or the memory is another backend's: see [`check_copy`](DeviceInfo::check_copy).
    fn copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.info().check_copy(source, target)?;
        let mut bytes = vec![0; source.len()];
        self.download(source, &mut bytes)?;
        self.upload(&bytes, target)
    }

    /// How long the device computed in the last successful [`encode`](Self::encode), [`decode`](Self::decode) or
    /// [`copy`](Self::copy), without transfers from and to the host; `None` if the backend does not tell that apart.
    fn kernel_time(&self) -> Option<KernelTime> {
        None
    }

    /// Decoded bytes of host memory that are enough for one batch: [`Codec`](crate::Codec) makes several of more. What core and backend
    /// keep of each job is then still in the caches when it is wanted, however many small tensors there are.
    ///
    /// No limit by default, which suits a device on which every submission costs something.
    fn batch_bytes(&self) -> usize {
        usize::MAX
    }

    /// Runs the encode jobs and waits for them: afterwards every job has a status. A job of a codec that [`DeviceInfo::codecs`] lacks, which
    /// no batch of this device takes up, fails with [`Error::Unavailable`](crate::Error::Unavailable).
    ///
    /// A batch for another device is refused first: see [`check_batch`](DeviceInfo::check_batch).
    ///
    /// An encoder writes everything from the block table to the end of the stream, padding included; what lies before it, the header and
    /// the codec's own section, is left alone. A job that the stored rule decides against gets its bytes verbatim at byte 64, zero-padded.
    ///
    /// # Errors
    ///
    /// About the device only.
    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()>;

    /// Runs the decode jobs and waits for them: afterwards every job has a status. For codecs that the device lacks see
    /// [`encode`](Self::encode).
    ///
    /// # Errors
    ///
    /// About the device only.
    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()>;
}

/// Time that a device computed, apart from transfers.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum KernelTime {
    /// By the device's own clock.
    Measured(Duration),
    /// By a cost formula, for a device that is not there.
    Model(Duration),
}

/// What a device is and can do.
#[derive(Debug, Clone)]
pub struct DeviceInfo {
    /// Tells this opened device from any other.
    pub id: BackendId,
    /// The backend's name, as users type it: `cpu`, `cuda`, …
    pub backend: &'static str,
    /// Index among the backend's devices.
    pub index: usize,
    /// The device's name, for people only: nothing may depend on it.
    pub name: String,
    /// Everything that can change speed or correctness (instruction sets, driver, threads), for reports.
    pub fingerprint: String,
    /// Bytes of device memory, if known.
    pub memory: Option<u64>,
    /// The codecs that it encodes and decodes. What it lacks [`Codec`](crate::Codec) has done elsewhere.
    pub codecs: Codecs,
    /// The kernels in use, one of [`variants`](Self::variants).
    pub variant: &'static str,
    /// The kernels that the device can run, best first.
    pub variants: Vec<&'static str>,
}

impl DeviceInfo {
    /// Checks what [`Backend::upload`] and [`Backend::download`] are called with.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the lengths differ or the memory is another backend's.
    pub fn check_transfer(&self, device: &DeviceSlice, host_len: usize) -> Result<()> {
        self.check_owner(device)?;
        if device.len() != host_len {
            let message = format!("transfer of {host_len} host bytes and {} device bytes", device.len());
            return Err(crate::Error::Argument(message));
        }
        Ok(())
    }

    /// Checks what [`Backend::copy`] is called with.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if the lengths differ, the slices overlap, or the memory is another backend's.
    pub fn check_copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.check_owner(source)?;
        self.check_owner(target)?;
        if source.len() != target.len() || source.overlaps(target) {
            let message = format!("copy of {} bytes to {} bytes, which must not overlap", source.len(), target.len());
            return Err(crate::Error::Argument(message));
        }
        Ok(())
    }

    /// Checks that a batch is for this device, and not for another of the same kind.
    ///
    /// # Errors
    ///
    /// [`Error::Argument`](crate::Error::Argument) if it is not.
    pub fn check_batch(&self, device: &DeviceInfo) -> Result<()> {
        if device.id == self.id {
            return Ok(());
        }
        Err(crate::Error::Argument(format!("a batch for another device given to `{}`", self.backend)))
    }

    pub(crate) fn check_owner(&self, device: &DeviceSlice) -> Result<()> {
        if device.buffer().backend() == self.id {
            return Ok(());
        }
        Err(crate::Error::Argument(format!("device memory of another backend given to `{}`", self.backend)))
    }
}

/// How to open a device.
#[derive(Debug, Clone, Default)]
pub struct OpenOptions {
    /// Index among the backend's devices.
    pub device: usize,
    /// Host threads, for backends that compute on the host; by default one per core.
    pub threads: Option<NonZeroUsize>,
    /// Kernels to use instead of the best: one of [`DeviceInfo::variants`].
    pub variant: Option<String>,
}

/// Opens a backend. Each backend crate exports one as `DRIVER`.
#[derive(Debug, Clone, Copy)]
pub struct Driver {
    /// The backend's name, as users type it.
    pub name: &'static str,
    /// Lists the devices. Never panics; without a device the error says why.
    pub probe: fn() -> Result<Vec<DeviceInfo>>,
    /// Opens a device.
    pub open: fn(&OpenOptions) -> Result<Arc<dyn Backend>>,
}
