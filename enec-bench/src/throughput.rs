//! Throughput of kernels and codec beside plain copies of the same buffers, interleaved in one run.

use std::hint::black_box;
use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread::available_parallelism;
use std::time::Instant;

use enec::format::hash::content_hash;
use enec::format::{DecodePlan, EncodePlan};
use enec::{Backend, Codec, CodecChoice, OpenOptions, Stream};
use enec_core::{DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, KernelTime, Source, Target};
use rayon::{ThreadPool, ThreadPoolBuilder};

use crate::Result;
use crate::arguments::Arguments;
use crate::buffer::Buffer;
use crate::case::Case;
use crate::copy;
use crate::report::{self, Record};
use crate::resident::Resident;

/// A measurement shorter than this is repeated within one repetition: the clock and the scheduler disturb it otherwise.
const SHORTEST_SECONDS: f64 = 0.01;

pub(crate) fn run(arguments: &Arguments) -> Result<()> {
    // Opened before the data is made, so that a missing backend is told at once.
    let opened = Opened::all(arguments)?;
    let mut records = Vec::new();
    let cases = Case::all(&arguments.data, &arguments.dtype)?;
    // What fits the caches of some cores, on so many threads and on fewer: how threads scale shows on the same data only.
    for cores in opened.iter().map(|opened| opened.threads) {
        for case in Case::in_cache(&cases, &arguments.dtype, cores.get()) {
            for opened in opened.iter().filter(|opened| opened.threads <= cores) {
                for &choice in &arguments.codec {
                    records.extend(opened.measure(&case, choice, arguments.repetitions)?);
                }
            }
        }
    }
    let shared = Case::in_shared_cache(&cases, &arguments.dtype);
    for case in shared.iter().chain(&cases) {
        for opened in &opened {
            for &choice in &arguments.codec {
                records.extend(opened.measure(case, choice, arguments.repetitions)?);
            }
        }
    }
    report::print(&records);
    if let Some(path) = &arguments.out {
        report::write(path, &records).map_err(|error| format!("{}: {error}", path.display()))?;
    }
    Ok(())
}

/// A backend with its number of threads, and the threads that copy beside it.
pub(crate) struct Opened {
    backend: Arc<dyn Backend>,
    codec: Codec,
    threads: NonZeroUsize,
    /// The caller's helpers; absent for one thread.
    pool: Option<ThreadPool>,
}

impl Opened {
    /// One for each number of threads.
    pub(crate) fn all(arguments: &Arguments) -> Result<Vec<Self>> {
        let threads = match &arguments.threads[..] {
            [] => {
                let all = available_parallelism()?;
                if all.get() == 1 { vec![all] } else { vec![NonZeroUsize::MIN, all] }
            }
            threads => threads.to_vec(),
        };
        threads.iter().map(|&threads| Self::new(arguments, threads)).collect()
    }

    fn new(arguments: &Arguments, threads: NonZeroUsize) -> Result<Self> {
        let options =
            OpenOptions { threads: Some(threads), variant: arguments.variant.clone(), ..OpenOptions::default() };
        let backend = enec::open(&arguments.backend, &options)?;
        let pool = match threads.get() {
            1 => None,
            threads => Some(ThreadPoolBuilder::new().num_threads(threads - 1).build()?),
        };
        Ok(Self { codec: Codec::new(backend.clone()), backend, threads, pool })
    }

    pub(crate) fn measure(&self, case: &Case, choice: CodecChoice, repetitions: usize) -> Result<Vec<Record>> {
        let mut bench = Bench::new(self, case, choice)?;
        bench.warm_up()?;
        let mut seconds = vec![Vec::with_capacity(repetitions); Operation::ALL.len()];
        let rounds: Vec<usize> =
            Operation::ALL.iter().map(|&operation| bench.rounds(operation)).collect::<Result<_>>()?;
        for _ in 0..repetitions.max(1) {
            for (index, &operation) in Operation::ALL.iter().enumerate() {
                let start = Instant::now();
                for _ in 0..rounds[index] {
                    bench.run(operation)?;
                }
                seconds[index].push(start.elapsed().as_secs_f64() / rounds[index] as f64);
            }
        }
        let bytes = case.source.bytes().len();
        let gbps = |operation: Operation| bytes as f64 / median(&seconds[operation as usize]) / 1e9;
        let kernels = bench.on_device(repetitions)?;
        let measured = kernels.filter(|kernels| !kernels.model);
        let model = kernels.filter(|kernels| kernels.model);
        let link = measured.and_then(|kernels| kernels.link);
        let info = self.backend.info();
        let record = |what, encode, decode| Record {
            backend: info.backend.to_owned(),
            device: info.name.clone(),
            variant: info.variant.to_owned(),
            data: case.name.clone(),
            dtype: case.dtype.name().to_owned(),
            codec: choice.name(),
            what,
            place: case.place.name(),
            threads: self.threads.get(),
            tensors: case.lengths.len(),
            bytes,
            ratio: bytes as f64 / bench.encoded_len as f64,
            encode_gbps: gbps(encode),
            decode_gbps: gbps(decode),
            memcpy_gbps: gbps(Operation::Memcpy),
            nt_copy_gbps: gbps(Operation::NtCopy),
            hash_gbps: gbps(Operation::Hash),
            device_encode_gbps: measured.map(|kernels| kernels.encode),
            device_decode_gbps: measured.map(|kernels| kernels.decode),
            device_copy_gbps: measured.map(|kernels| kernels.copy),
            link_decode_gbps: link.map(|link| link.decode),
            link_upload_gbps: link.map(|link| link.upload),
            link_encode_gbps: link.map(|link| link.encode),
            link_download_gbps: link.map(|link| link.download),
            model_encode_gbps: model.map(|kernels| kernels.encode),
            model_decode_gbps: model.map(|kernels| kernels.decode),
        };
        Ok(vec![
            record("kernel", Operation::KernelEncode, Operation::KernelDecode),
            record("codec", Operation::CodecEncode, Operation::CodecDecode),
        ])
    }
}

/// What is timed, in the order in which it takes turns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Operation {
    Memcpy,
    NtCopy,
    KernelEncode,
    KernelDecode,
    CodecEncode,
    CodecDecode,
    Hash,
}

impl Operation {
    const ALL: [Self; 7] = [
        Self::Memcpy,
        Self::NtCopy,
        Self::KernelEncode,
        Self::KernelDecode,
        Self::CodecEncode,
        Self::CodecDecode,
        Self::Hash,
    ];
}

/// GB/s of the device's kernels on its own memory, without transfers; medians.
#[derive(Debug, Clone, Copy)]
struct Kernels {
    /// By a cost formula, not by a clock.
    model: bool,
    encode: f64,
    decode: f64,
    copy: f64,
    link: Option<Link>,
}

/// GB/s of uncompressed bytes between host and device, by the wall clock; medians.
#[derive(Debug, Clone, Copy)]
struct Link {
    decode: f64,
    upload: f64,
    encode: f64,
    download: f64,
}

/// One case with its buffers. Every operation reads `source` or `encoded` and writes `encoded` or `decoded`.
struct Bench<'a> {
    opened: &'a Opened,
    case: &'a Case,
    codec: Codec,
    plans: Vec<EncodePlan>,
    /// Tensor after tensor, each with room for its plan.
    encoded: Buffer,
    decoded: Buffer,
    stream_lengths: Vec<usize>,
    encoded_len: usize,
    /// Plans of the streams that are encoded, which kernels get without validating them again.
    decode_plans: Vec<DecodePlan>,
}

impl<'a> Bench<'a> {
    fn new(opened: &'a Opened, case: &'a Case, choice: CodecChoice) -> Result<Self> {
        let codec = opened.codec.clone().with_choice(choice);
        let plans = case.plans(&codec)?;
        let encoded = Buffer::new(plans.iter().map(EncodePlan::target_len).sum());
        let decoded = Buffer::new(case.source.bytes().len());
        Ok(Self {
            opened,
            case,
            codec,
            plans,
            encoded,
            decoded,
            stream_lengths: Vec::new(),
            encoded_len: 0,
            decode_plans: Vec::new(),
        })
    }

    /// Runs everything once and compares every result with the input.
    fn warm_up(&mut self) -> Result<()> {
        self.run(Operation::CodecEncode)?;
        let streams = streams(&self.plans, &self.stream_lengths, &self.encoded)?;
        self.decode_plans = streams.iter().map(DecodePlan::whole).collect();
        for operation in [Operation::Memcpy, Operation::NtCopy, Operation::CodecDecode, Operation::KernelDecode] {
            self.decoded.bytes_mut().fill(0x5A);
            self.run(operation)?;
            if self.decoded.bytes() != self.case.source.bytes() {
                return Err(format!("{operation:?} did not give back the input of {}", self.case.name).into());
            }
        }
        // The kernels must write what the codec wrote, but for the headers, which are not theirs.
        let written = content_hash(self.encoded.bytes());
        self.run(Operation::KernelEncode)?;
        if content_hash(self.encoded.bytes()) != written {
            return Err(format!("kernel and codec encode {} differently", self.case.name).into());
        }
        Ok(())
    }

    /// How often an operation is run within one repetition.
    fn rounds(&mut self, operation: Operation) -> Result<usize> {
        let start = Instant::now();
        self.run(operation)?;
        let rounds = SHORTEST_SECONDS / start.elapsed().as_secs_f64();
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "between 1 and 10,000")]
        Ok(rounds.ceil().clamp(1.0, 1e4) as usize)
    }

    fn run(&mut self, operation: Operation) -> Result<()> {
        let pool = self.opened.pool.as_ref();
        match operation {
            Operation::Memcpy => copy::memcpy(pool, self.case.source.bytes(), self.decoded.bytes_mut()),
            Operation::NtCopy => copy::nt_copy(pool, self.case.source.bytes(), self.decoded.bytes_mut()),
            Operation::KernelEncode => self.kernel_encode()?,
            Operation::KernelDecode => self.kernel_decode()?,
            Operation::CodecEncode => self.codec_encode()?,
            Operation::CodecDecode => self.codec_decode()?,
            Operation::Hash => {
                black_box(content_hash(self.case.source.bytes()));
            }
        }
        Ok(())
    }

    fn kernel_encode(&mut self) -> Result<()> {
        let backend = &self.opened.backend;
        let mut batch = EncodeBatch::new(backend.info());
        let mut rest = self.encoded.bytes_mut();
        for (plan, elements) in self.plans.iter().zip(self.case.tensors()) {
            let (target, behind) = rest.split_at_mut(plan.target_len());
            rest = behind;
            batch.push(EncodeJob::new(plan.clone(), Source::Host(elements), Target::Host(target)))?;
        }
        backend.encode(&mut batch)?;
        for outcome in batch.into_results() {
            outcome?;
        }
        Ok(())
    }

    fn kernel_decode(&mut self) -> Result<()> {
        let backend = &self.opened.backend;
        let mut batch = DecodeBatch::new(backend.info());
        let (mut streams, mut rest) = (self.encoded.bytes(), self.decoded.bytes_mut());
        for (plan, decode_plan) in self.plans.iter().zip(&self.decode_plans) {
            let (stream, following) = streams.split_at(plan.target_len());
            let (target, behind) = rest.split_at_mut(decode_plan.target_len());
            (streams, rest) = (following, behind);
            let source = Source::Host(&stream[..decode_plan.source_len()]);
            batch.push(DecodeJob::new(decode_plan.clone(), source, Target::Host(target)))?;
        }
        backend.decode(&mut batch)?;
        for outcome in batch.into_results() {
            outcome?;
        }
        Ok(())
    }

    /// Runs the kernels on tensors that stay in device memory; `None` on a backend that does not time its kernels.
    fn on_device(&mut self, repetitions: usize) -> Result<Option<Kernels>> {
        let backend = &*self.opened.backend;
        if backend.kernel_time().is_none() {
            return Ok(None);
        }
        let resident = Resident::new(backend, self.case, &self.plans)?;
        let (mut model, mut encode, mut decode, mut copy) = (false, Vec::new(), Vec::new(), Vec::new());
        let mut gbps = |bytes: usize| match backend.kernel_time() {
            Some(KernelTime::Measured(time)) => Ok(bytes as f64 / time.as_secs_f64() / 1e9),
            Some(KernelTime::Model(time)) => {
                model = true;
                Ok(bytes as f64 / time.as_secs_f64() / 1e9)
            }
            None => Err("the backend timed one call and not the next"),
        };
        let bytes = self.case.source.bytes().len();
        for _ in 0..repetitions.max(1) {
            let copied = resident.copy()?;
            copy.push(gbps(copied)?);
            resident.encode()?;
            encode.push(gbps(bytes)?);
            resident.decode()?;
            decode.push(gbps(bytes)?);
        }
        let (encode, decode, copy) = (median(&encode), median(&decode), median(&copy));
        drop(resident);
        // What a model's host takes to move bytes says nothing.
        let link = if model { None } else { Some(self.over_link(repetitions)?) };
        Ok(Some(Kernels { model, encode, decode, copy, link }))
    }

    /// Moves the tensors between host and device, as they are and as streams.
    fn over_link(&mut self, repetitions: usize) -> Result<Link> {
        let resident = Resident::new(&*self.opened.backend, self.case, &self.plans)?;
        let bytes = self.case.source.bytes().len() as f64;
        let gbps = |start: Instant| bytes / start.elapsed().as_secs_f64() / 1e9;
        let mut figures: [Vec<f64>; 4] = Default::default();
        for _ in 0..repetitions.max(1) {
            let streams = streams(&self.plans, &self.stream_lengths, &self.encoded)?;
            let start = Instant::now();
            resident.decode_from_host(&streams)?;
            figures[0].push(gbps(start));
            drop(streams);
            let start = Instant::now();
            resident.upload()?;
            figures[1].push(gbps(start));
            let start = Instant::now();
            resident.encode_to_host(self.encoded.bytes_mut())?;
            figures[2].push(gbps(start));
            let start = Instant::now();
            resident.download(self.decoded.bytes_mut())?;
            figures[3].push(gbps(start));
        }
        let [decode, upload, encode, download] = figures.map(|figures| median(&figures));
        Ok(Link { decode, upload, encode, download })
    }

    fn codec_encode(&mut self) -> Result<()> {
        let mut tensors = Vec::with_capacity(self.plans.len());
        let mut rest = self.encoded.bytes_mut();
        for (plan, elements) in self.plans.iter().zip(self.case.tensors()) {
            let (target, behind) = rest.split_at_mut(plan.target_len());
            rest = behind;
            tensors.push((self.case.dtype, elements, target));
        }
        self.stream_lengths = self.codec.encode_batch(tensors)?;
        self.encoded_len = self.stream_lengths.iter().sum();
        Ok(())
    }

    fn codec_decode(&mut self) -> Result<()> {
        let streams = streams(&self.plans, &self.stream_lengths, &self.encoded)?;
        let mut jobs = Vec::with_capacity(streams.len());
        let mut rest = self.decoded.bytes_mut();
        for stream in &streams {
            let (target, behind) = rest.split_at_mut(stream.decoded_len());
            rest = behind;
            jobs.push((stream, target));
        }
        for result in self.codec.decode_batch(jobs)? {
            result?;
        }
        Ok(())
    }
}

/// The encoded tensors, validated: that is part of decoding.
fn streams<'b>(plans: &[EncodePlan], lengths: &[usize], encoded: &'b Buffer) -> Result<Vec<Stream<'b>>> {
    let mut rest = encoded.bytes();
    let mut streams = Vec::with_capacity(plans.len());
    for (plan, &length) in plans.iter().zip(lengths) {
        let (stream, behind) = rest.split_at(plan.target_len());
        rest = behind;
        streams.push(Stream::open(&stream[..length])?);
    }
    Ok(streams)
}

pub(crate) fn median(values: &[f64]) -> f64 {
    let mut sorted = values.to_vec();
    sorted.sort_by(f64::total_cmp);
    sorted[sorted.len() / 2]
}
