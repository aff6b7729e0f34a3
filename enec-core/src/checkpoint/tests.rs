//! Cores that whoever takes the bytes wants for itself.

use std::fs;
use std::sync::{Arc, Mutex};

use enec_format::reference;

use super::buffer::AlignedBuffer;
use super::decode::{Check, decode_tensors};
use super::encode::encode_tensors;
use super::restore::Restoration;
use super::timings::Stopwatch;
use super::work::Work;
use super::write::{Destination, Nowhere, Part};
use super::{CheckpointFile, Options, compress};
use crate::{
    Backend, BackendId, Codec, CodecChoice, Codecs, DecodeBatch, DeviceBuf, DeviceInfo, DeviceSlice, EncodeBatch,
    Error, Result, Source, TargetMut,
};

/// The reference codec, which keeps how many cores were busy beside each batch.
#[derive(Debug)]
struct Recorder {
    info: DeviceInfo,
    busy_cores: Mutex<Vec<usize>>,
}

impl Recorder {
    fn new(codecs: Codecs) -> Arc<Self> {
        let info = DeviceInfo {
            id: BackendId::unique(),
            backend: "recorder",
            index: 0,
            name: String::new(),
            fingerprint: String::new(),
            memory: None,
            codecs,
            variant: "scalar",
            variants: vec!["scalar"],
        };
        Arc::new(Self { info, busy_cores: Mutex::new(Vec::new()) })
    }

    fn taken(&self) -> Vec<usize> {
        std::mem::take(&mut *self.busy_cores.lock().unwrap())
    }

    fn no_memory<T>() -> Result<T> {
        Err(Error::Device { device: "recorder".into(), message: "has no memory".into() })
    }
}

impl Backend for Recorder {
    fn info(&self) -> &DeviceInfo {
        &self.info
    }

    fn alloc(&self, _len: usize) -> Result<DeviceBuf> {
        Self::no_memory()
    }

    fn upload(&self, _source: &[u8], _target: &DeviceSlice) -> Result<()> {
        Self::no_memory()
    }

    fn download(&self, _source: &DeviceSlice, _target: &mut [u8]) -> Result<()> {
        Self::no_memory()
    }

    fn encode(&self, batch: &mut EncodeBatch<'_>) -> Result<()> {
        self.busy_cores.lock().unwrap().push(batch.busy_cores());
        for mut job in batch.checked_jobs() {
            let (plan, Source::Host(source), TargetMut::Host(target), _) = job.split() else { unreachable!() };
            let outcome = reference::encode(plan, source, target)?;
            job.finish(Ok(outcome));
        }
        Ok(())
    }

    fn decode(&self, batch: &mut DecodeBatch<'_>) -> Result<()> {
        self.busy_cores.lock().unwrap().push(batch.busy_cores());
        for mut job in batch.checked_jobs() {
            let (plan, Source::Host(source), TargetMut::Host(target), _) = job.split() else { unreachable!() };
            let result = reference::decode(plan, source, target).map_err(Error::from);
            job.finish(result);
        }
        Ok(())
    }
}

struct WantsThree;

impl<'a> Destination<'a> for WantsThree {
    fn write_parts(&mut self, buffer: &mut AlignedBuffer, parts: Vec<Part>) -> Result<()> {
        Nowhere.write_parts(buffer, parts)
    }

    fn write_at(&mut self, offset: u64, bytes: std::borrow::Cow<'a, [u8]>) -> Result<()> {
        Nowhere.write_at(offset, bytes)
    }

    fn truncate(&mut self, len: u64) -> Result<()> {
        Nowhere.truncate(len)
    }

    fn busy_cores(&mut self) -> usize {
        3
    }
}

#[test]
fn backend_and_fallback_are_told_how_many_cores_the_output_wants() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("in"), folder.path().join("out"));
    let header = r#"{"w":{"dtype":"BF16","shape":[2048],"data_offsets":[0,4096]}}"#;
    let elements = [0x80, 0x3F].repeat(2048);
    fs::write(&input, [&(header.len() as u64).to_le_bytes()[..], header.as_bytes(), &elements].concat()).unwrap();

    let (backend, fallback) = (Recorder::new(Codecs::ENEC), Recorder::new(Codecs::ALL));
    for (choice, asked, other) in
        [(CodecChoice::Enec, &backend, &fallback), (CodecChoice::Cascade, &fallback, &backend)]
    {
        let codec = Codec::new(backend.clone()).with_fallback(fallback.clone()).with_choice(choice);
        let options = Options { force: true, verify: false, ..Options::default() };
        compress(&codec, &input, &output, &options, &mut ()).unwrap();
        assert_eq!(asked.taken(), [0], "a first window is encoded beside nothing");

        let stopwatch = Stopwatch::default();
        let work = Work::new(&codec, &options, &stopwatch);
        encode_tensors(work, &CheckpointFile::open(&input).unwrap(), &mut WantsThree, 0, &mut ()).unwrap();
        assert_eq!(asked.taken(), [3], "{choice:?}");

        let compressed = CheckpointFile::open(&output).unwrap();
        let mut restoration = Restoration { start: &|_| 0, output: &mut WantsThree, progress: &mut () };
        decode_tensors(work, compressed.in_data_order(), Check::Content, &mut restoration).unwrap();
        assert_eq!(asked.taken(), [3], "{choice:?}");
        assert!(other.taken().is_empty());
    }
}
