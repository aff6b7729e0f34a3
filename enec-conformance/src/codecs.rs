//! Codecs as the suite sees them: every family that depends on one runs for both, and codec 2 is not every backend's.

use std::sync::Arc;

use enec_core::search::{search, search_cascade};
use enec_core::{
    Backend, CodecChoice, Codecs, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, EncodeBatch, KernelTime, Result,
};
use enec_format::{Coding, Dtype};

/// The codecs, with what the names of their families begin with.
pub(crate) const CODECS: [(CodecChoice, &str); 2] = [(CodecChoice::Enec, ""), (CodecChoice::Cascade, "cascade/")];

/// The searched parameters of a codec; stored for opaque bytes.
pub(crate) fn searched(choice: CodecChoice, dtype: Dtype, elements: &[u8]) -> Coding {
    match (dtype, choice) {
        (Dtype::Opaque, _) => Coding::Stored,
        (_, CodecChoice::Cascade) => search_cascade(dtype, elements).into(),
        _ => search(dtype, elements).into(),
    }
}

/// What a case asks of a backend beyond codec 1.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Needs {
    /// Nothing.
    Nothing,
    /// That codec 2 is encoded.
    Encoding,
    /// That codec 2 is decoded.
    Decoding,
    /// That codec 2 goes both ways.
    Both,
}

impl Needs {
    /// What a case needs that works in this direction with this codec.
    pub(crate) fn of(choice: CodecChoice, direction: Self) -> Self {
        if choice == CodecChoice::Cascade { direction } else { Needs::Nothing }
    }

    /// Whether a backend declares it.
    pub(crate) fn are_met_by(self, codecs: Codecs) -> bool {
        match self {
            Needs::Nothing => true,
            Needs::Encoding => codecs.encodes_cascade(),
            Needs::Decoding => codecs.decodes_cascade(),
            Needs::Both => codecs.encodes_cascade() && codecs.decodes_cascade(),
        }
    }
}

/// A backend that says that it has other codecs than it says itself.
#[derive(Debug)]
pub(crate) struct Declaring {
    inner: Arc<dyn Backend>,
    info: DeviceInfo,
}

impl Declaring {
    pub(crate) fn new(inner: Arc<dyn Backend>, codecs: Codecs) -> Self {
        let info = DeviceInfo { codecs, ..inner.info().clone() };
        Self { inner, info }
    }
}

impl Backend for Declaring {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, len: usize) -> Result<DeviceBuf> {
        self.inner.alloc(len)
    }

    fn upload(&self, source: &[u8], target: &DeviceSlice) -> Result<()> {
        self.inner.upload(source, target)
    }

    fn download(&self, source: &DeviceSlice, target: &mut [u8]) -> Result<()> {
        self.inner.download(source, target)
    }

    fn copy(&self, source: &DeviceSlice, target: &DeviceSlice) -> Result<()> {
        self.inner.copy(source, target)
    }

    fn kernel_time(&self) -> Option<KernelTime> {
        self.inner.kernel_time()
    }

    fn batch_bytes(&self) -> usize {
        self.inner.batch_bytes()
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.inner.encode(batch)
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.inner.decode(batch)
    }
}
