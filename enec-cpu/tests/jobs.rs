//! What goes beyond single jobs: threads, batches, pieces, device memory, options.

#![allow(
    clippy::unwrap_used,
    clippy::cast_possible_truncation,
    reason = "a test that panics has failed, and its numbers are small"
)]

mod common;

use std::collections::HashSet;
use std::num::NonZeroUsize;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Mutex, OnceLock};
use std::thread::{self, ThreadId};
use std::time::Duration;

use common::{Random, backends, decode, encode, inputs, open};
use enec_core::{
    Backend, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, Error, OpenOptions, PieceHashes, PieceSink, Source, Target,
};
use enec_format::geometry::{BLOCK_TILES, HEADER_BYTES};
use enec_format::hash::content_hash;
use enec_format::{Cascade, Coding, DecodePlan, Dtype, EncodeOutcome, EncodePlan, Stream, TwoWindows, reference};

fn sample(dtype: Dtype, count: usize) -> (EncodePlan, Vec<u8>) {
    samples(dtype, count).swap_remove(0)
}

/// The same elements for each codec.
fn samples(dtype: Dtype, count: usize) -> Vec<(EncodePlan, Vec<u8>)> {
    let base = dtype.exponent_mask() / 2;
    let (_, source) = inputs(dtype, count, base, 2).swap_remove(0);
    let symbols: Vec<u8> = (0..9).map(|step| base - step).collect();
    let codings =
        [TwoWindows::new(dtype, base, 2).unwrap().into(), Coding::from(Cascade::new(dtype, &symbols).unwrap())];
    codings.map(|coding| (EncodePlan::new(dtype, coding, count).unwrap(), source.clone())).into()
}

#[test]
fn bytes_do_not_depend_on_the_number_of_threads() {
    for dtype in Dtype::FLOATS {
        for (plan, source) in samples(dtype, 16384 * 12 + 5000) {
            let stream = reference::encode_plan(&plan, &source).unwrap();
            let front = plan.layout().front_len();
            for threads in [1, 2, 7] {
                for backend in backends() {
                    let backend = open(backend.info().variant, threads);
                    let what = format!("{} with {threads} threads, {:?}", backend.info().variant, plan.coding());
                    let (_, body) = encode(&*backend, &plan, &source, 0, None);
                    assert!(body == stream[front..], "{what}");
                    let whole = DecodePlan::whole(&Stream::open(&stream).unwrap());
                    assert!(decode(&*backend, &whole, &stream, 0, None) == source, "{what}");
                }
            }
        }
    }
}

/// Who does the blocks of a batch.
#[derive(Default)]
struct Threads(Mutex<HashSet<ThreadId>>);

impl PieceSink for Threads {
    fn content(&self, _block: usize, _decoded: &[u8]) {
        self.0.lock().unwrap().insert(thread::current().id());
    }

    fn payload(&self, _block: usize, _parts: &[&[u8]; 6]) {}
}

#[test]
fn cores_that_are_busy_are_left_alone() {
    let (plan, source) = sample(Dtype::Bf16, 16384 * 200);
    let stream = reference::encode_plan(&plan, &source).unwrap();
    let whole = DecodePlan::whole(&Stream::open(&stream).unwrap());
    let backend = open("portable", 3);
    for busy_cores in [2, 3, usize::MAX] {
        let threads = Threads::default();
        let mut target = vec![0; plan.target_len()];
        let job = EncodeJob::new(plan.clone(), Source::Host(&source), Target::Host(&mut target)).with_pieces(&threads);
        let mut batch = EncodeBatch::new(backend.info()).with_busy_cores(busy_cores);
        batch.push(job).unwrap();
        backend.encode(&mut batch).unwrap();
        drop(batch);
        assert!(target[HEADER_BYTES..stream.len()] == stream[HEADER_BYTES..]);

        let mut target = vec![0; source.len()];
        let job = DecodeJob::new(whole.clone(), Source::Host(&stream), Target::Host(&mut target)).with_pieces(&threads);
        let mut batch = DecodeBatch::of(backend.info(), vec![job]).unwrap().with_busy_cores(busy_cores);
        backend.decode(&mut batch).unwrap();
        drop(batch);
        assert!(target == source);
        assert_eq!(threads.0.into_inner().unwrap(), HashSet::from([thread::current().id()]));
    }
}

/// With more threads than cores, so that threads wait for blocks whose threads do not run; and the job stops in the middle.
#[test]
fn a_job_that_ends_as_stored_ends_for_all_threads() {
    let backend = open("portable", 7);
    let count = 16384 * 60;
    let random = &mut Random(1);
    let mut source = vec![0; 2 * count];
    source.fill_with(|| random.next() as u8);
    let cascade = Cascade::new(Dtype::Bf16, &[127, 126, 125]).unwrap();
    for coding in [TwoWindows::new(Dtype::Bf16, 127, 0).unwrap().into(), Coding::from(cascade)] {
        let plan = EncodePlan::new(Dtype::Bf16, coding, count).unwrap();
        for _ in 0..8 {
            let (outcome, body) = encode(&*backend, &plan, &source, 0, None);
            assert_eq!(outcome, EncodeOutcome::Stored);
            assert!(body == source);
        }
    }
}

/// Past the caches, and hashed on the way; also with as many threads as have caches for all of it, which nevertheless set nothing aside.
#[test]
fn streamed_bytes_do_not_depend_on_the_number_of_threads() {
    for (plan, source) in samples(Dtype::Bf16, (9 << 20) / 2 + 77) {
        let bytes = reference::encode_plan(&plan, &source).unwrap();
        let stream = Stream::open(&bytes).unwrap();
        let (layout, whole) = (stream.layout(), DecodePlan::whole(&stream));
        let streaming = backends().into_iter().filter(|backend| backend.info().variant.starts_with("avx"));
        for (backend, threads) in streaming.flat_map(|backend| [(backend.clone(), 2), (backend, 10)]) {
            let backend = open(backend.info().variant, threads);
            let what = format!("{} {:?} with {threads} threads", backend.info().variant, plan.coding());
            let hashes = PieceHashes::new(layout);
            let (_, body) = encode(&*backend, &plan, &source, 0, Some(&hashes.sink(0)));
            assert!(body == bytes[layout.front_len()..], "{what}");
            hashes.add_tail(layout.blocks(), stream.tail());
            assert_eq!(hashes.payload(), Some(stream.payload_hash()), "{what}");
            assert_eq!(hashes.content(), Some(content_hash(&source)), "{what}");
            let hashes = PieceHashes::new(layout);
            assert!(decode(&*backend, &whole, &bytes, 0, Some(&hashes.sink(0))) == source, "{what}");
            assert_eq!(hashes.content(), Some(content_hash(&source)), "{what}");
        }
    }
}

/// No thread waits for a block that a thread which panicked had taken or set aside, of any job; and the backend goes on.
#[test]
fn a_panic_of_a_sink_comes_out() {
    /// Panics at a block: when its elements are read or decoded, or when it is complete.
    struct Panics {
        content: usize,
        payload: usize,
    }
    impl PieceSink for Panics {
        fn content(&self, block: usize, _decoded: &[u8]) {
            assert!(block != self.content, "of the test");
        }

        fn payload(&self, block: usize, _parts: &[&[u8]; 6]) {
            assert!(block != self.payload, "of the test");
        }
    }
    const NEVER: usize = usize::MAX;
    let backend = open("portable", 2);
    let panics = |run: &dyn Fn()| catch_unwind(AssertUnwindSafe(run)).unwrap_err();
    // What the caches of two threads hold, and more.
    for blocks in [64, 80] {
        for (plan, source) in samples(Dtype::Bf16, 16384 * blocks) {
            let stream = reference::encode_plan(&plan, &source).unwrap();
            let whole = DecodePlan::whole(&Stream::open(&stream).unwrap());
            for (content, payload) in [(0, NEVER), (blocks / 2, NEVER), (NEVER, 0), (NEVER, 1), (NEVER, blocks - 1)] {
                panics(&|| _ = encode(&*backend, &plan, &source, 0, Some(&Panics { content, payload })));
            }
            panics(&|| _ = decode(&*backend, &whole, &stream, 0, Some(&Panics { content: 0, payload: NEVER })));
            let (_, body) = encode(&*backend, &plan, &source, 0, None);
            assert!(body == stream[plan.layout().front_len()..]);
            assert!(decode(&*backend, &whole, &stream, 0, None) == source);
        }
    }
}

/// A thread that panics at one job has set blocks of another one aside: who waits for these goes on, too.
#[test]
fn a_panic_ends_all_jobs_of_its_thread() {
    /// The thread that encodes the second third of the blocks of both jobs, once it is known; the thread after it is slow, and is helped out.
    #[derive(Default)]
    struct Second(OnceLock<ThreadId>);
    impl PieceSink for Second {
        fn content(&self, block: usize, _decoded: &[u8]) {
            match block {
                32 => _ = self.0.set(thread::current().id()),
                64.. => thread::sleep(Duration::from_millis(1)),
                _ => {}
            }
        }

        fn payload(&self, _block: usize, _parts: &[&[u8]; 6]) {}
    }
    /// Panics in that thread.
    struct PanicsIn<'a>(&'a Second);
    impl PieceSink for PanicsIn<'_> {
        fn content(&self, _block: usize, _decoded: &[u8]) {
            assert!(self.0.0.get() != Some(&thread::current().id()), "of the test");
            thread::sleep(Duration::from_millis(1));
        }

        fn payload(&self, _block: usize, _parts: &[&[u8]; 6]) {}
    }
    let backend = open("portable", 3);
    let ((long, long_source), (short, short_source)) =
        (sample(Dtype::Bf16, 80 * 16384), sample(Dtype::Bf16, 16 * 16384));
    let run = || {
        let second = Second::default();
        let (mut first_target, mut second_target) = (vec![0; long.target_len()], vec![0; short.target_len()]);
        let sink = PanicsIn(&second);
        let mut batch = EncodeBatch::new(backend.info());
        let job = EncodeJob::new(long.clone(), Source::Host(&long_source), Target::Host(&mut first_target));
        batch.push(job.with_pieces(&second)).unwrap();
        let job = EncodeJob::new(short.clone(), Source::Host(&short_source), Target::Host(&mut second_target));
        batch.push(job.with_pieces(&sink)).unwrap();
        backend.encode(&mut batch).unwrap();
    };
    // Which thread does what is not certain.
    let panicked = (0..20).filter(|_| catch_unwind(AssertUnwindSafe(run)).is_err()).count();
    assert!(panicked > 0, "no thread was helped out");
}

#[test]
fn batches_of_many_sizes_finish_every_job() {
    // In order and, with as many threads as have caches for all of it, in shares.
    for threads in [1, 3, 8] {
        let backend = open("portable", threads);
        let jobs: Vec<_> = (0..90)
            .map(|i| {
                let count = [4096, 100, 16384 * 3, 2048, 0, 70_000][i % 6] + i;
                let (plan, source) = samples(Dtype::FLOATS[i % 3], count).swap_remove(i / 3 % 2);
                let stream = reference::encode_plan(&plan, &source).unwrap();
                (plan, source, stream)
            })
            .collect();

        let mut targets: Vec<_> = jobs.iter().map(|(plan, ..)| vec![common::POISON; plan.target_len()]).collect();
        let mut batch = EncodeBatch::new(backend.info());
        for ((plan, source, _), target) in jobs.iter().zip(&mut targets) {
            batch.push(EncodeJob::new(plan.clone(), Source::Host(source), Target::Host(target))).unwrap();
        }
        backend.encode(&mut batch).unwrap();
        let outcomes: Vec<_> = batch.into_results().map(Result::unwrap).collect();
        for (((plan, _, stream), target), outcome) in jobs.iter().zip(&targets).zip(outcomes) {
            assert_eq!(plan.written(outcome).unwrap().stream_len, stream.len());
            let front = plan.written(outcome).unwrap().front_len();
            assert!(target[front..stream.len()] == stream[front..]);
        }

        let mut targets: Vec<_> = jobs.iter().map(|(_, source, _)| vec![common::POISON; source.len()]).collect();
        let mut batch = DecodeBatch::new(backend.info());
        for ((_, _, stream), target) in jobs.iter().zip(&mut targets) {
            let plan = DecodePlan::whole(&Stream::open(stream).unwrap());
            batch.push(DecodeJob::new(plan, Source::Host(stream), Target::Host(target))).unwrap();
        }
        backend.decode(&mut batch).unwrap();
        batch.into_results().for_each(Result::unwrap);
        assert!(jobs.iter().zip(&targets).all(|((_, source, _), target)| source == target));
    }
}

/// Keeps what it is told.
#[derive(Default)]
struct Recorder {
    content: Mutex<Vec<(usize, Vec<u8>)>>,
    payload: Mutex<Vec<(usize, Vec<u8>)>>,
    wants_no_payload: bool,
}

impl PieceSink for Recorder {
    fn content(&self, block: usize, decoded: &[u8]) {
        self.content.lock().unwrap().push((block, decoded.to_vec()));
    }

    fn payload(&self, block: usize, parts: &[&[u8]; 6]) {
        self.payload.lock().unwrap().push((block, parts.concat()));
    }

    fn wants_payload(&self) -> bool {
        !self.wants_no_payload
    }
}

impl Recorder {
    fn sorted(self) -> [Vec<(usize, Vec<u8>)>; 2] {
        [self.content, self.payload].map(|list| {
            let mut list = list.into_inner().unwrap();
            list.sort();
            list
        })
    }
}

#[test]
fn pieces_are_those_of_the_whole_blocks() {
    for backend in backends().into_iter().chain([open("portable", 3)]) {
        for dtype in Dtype::FLOATS {
            let counts = [16384 * 3 + 2048 + 77, 16384 * 4 + 9, 16384 * 2];
            for (count, (plan, source)) in
                counts.into_iter().flat_map(|n| samples(dtype, n).into_iter().map(move |s| (n, s)))
            {
                let bytes = reference::encode_plan(&plan, &source).unwrap();
                let stream = Stream::open(&bytes).unwrap();
                let layout = stream.layout();
                let content = |block: usize| {
                    let tiles = layout.block(block).tiles;
                    let range = layout.decoded_range(tiles);
                    let end = if block + 1 == layout.blocks() { source.len() } else { range.end };
                    (block, source[range.start..end].to_vec())
                };
                let payload = |block: usize| (block, stream.block(block).parts().concat());
                let all = 0..layout.blocks();

                let recorder = Recorder::default();
                encode(&*backend, &plan, &source, 1, Some(&recorder));
                let expected = [all.clone().map(content).collect::<Vec<_>>(), all.clone().map(payload).collect()];
                assert!(recorder.sorted() == expected, "encode {dtype:?} {count}");

                let recorder = Recorder::default();
                decode(&*backend, &DecodePlan::whole(&stream), &bytes, 1, Some(&recorder));
                assert!(recorder.sorted() == expected, "decode {dtype:?} {count}");

                let recorder = Recorder { wants_no_payload: true, ..Recorder::default() };
                decode(&*backend, &DecodePlan::whole(&stream), &bytes, 1, Some(&recorder));
                assert!(recorder.sorted() == [expected[0].clone(), Vec::new()], "without payload {dtype:?} {count}");

                // Half of the first block is no piece, and neither is the last block without its tail.
                let range = BLOCK_TILES / 2..layout.tiles;
                let part = DecodePlan::whole(&stream).with_tiles(range, false).unwrap();
                let recorder = Recorder::default();
                decode(&*backend, &part, &bytes, 1, Some(&recorder));
                let whole_blocks = 1..layout.blocks() - usize::from(layout.tail.len > 0);
                assert!(recorder.sorted()[0] == whole_blocks.map(content).collect::<Vec<_>>(), "{dtype:?} {count}");
            }
        }
    }
}

/// What is streamed is handed over tile by tile: to a sink that hashes as it comes, and to one that wants whole blocks.
#[test]
fn pieces_of_large_tensors_are_handed_over_in_parts() {
    for backend in backends() {
        for dtype in Dtype::FLOATS {
            let (plan, source) = sample(dtype, (8 << 20) / dtype.element_bytes() + 16384 + 5 * 2048 + 77);
            let bytes = reference::encode_plan(&plan, &source).unwrap();
            let stream = Stream::open(&bytes).unwrap();
            let what = format!("{} {dtype:?}", backend.info().variant);

            let hashes = PieceHashes::new(stream.layout());
            encode(&*backend, &plan, &source, 3, Some(&hashes.sink(0)));
            hashes.add_tail(stream.layout().blocks(), stream.tail());
            assert_eq!(hashes.content(), Some(content_hash(&source)), "{what}");
            assert_eq!(hashes.payload(), Some(stream.payload_hash()), "{what}");
            let hashes = PieceHashes::new(stream.layout());
            decode(&*backend, &DecodePlan::whole(&stream), &bytes, 3, Some(&hashes.sink(0)));
            assert_eq!(hashes.content(), Some(content_hash(&source)), "{what}");

            let recorder = Recorder::default();
            encode(&*backend, &plan, &source, 0, Some(&recorder));
            let [content, payload] = recorder.sorted();
            assert!(content.into_iter().flat_map(|(_, bytes)| bytes).eq(source.iter().copied()), "{what}");
            let blocks = stream.blocks().map(|block| block.parts().concat());
            assert!(payload.into_iter().map(|(_, bytes)| bytes).eq(blocks), "{what}");
        }
    }
}

#[test]
fn device_memory_is_host_memory_with_a_queue() {
    let backend = open("portable", 2);
    let (plan, source) = sample(Dtype::Bf16, 50_000);
    let expected = reference::encode_plan(&plan, &source).unwrap();

    // Source and target lie in one buffer, behind each other.
    let buffer = backend.alloc(source.len() + plan.target_len() + source.len()).unwrap();
    let elements = buffer.slice(0..source.len()).unwrap();
    let target = buffer.slice(source.len()..source.len() + plan.target_len()).unwrap();
    let decoded = buffer.slice(source.len() + plan.target_len()..buffer.len()).unwrap();
    let mut zeros = vec![1; buffer.len()];
    backend.download(&buffer.full(), &mut zeros).unwrap();
    assert!(zeros.iter().all(|&byte| byte == 0), "new device memory is zeroed");
    backend.upload(&source, &elements).unwrap();

    let mut batch = EncodeBatch::new(backend.info());
    batch.push(EncodeJob::new(plan, Source::Device(elements), Target::Device(target.clone()))).unwrap();
    backend.encode(&mut batch).unwrap();
    batch.into_results().for_each(|result| assert!(result.is_ok()));
    let stream = target.slice(0..expected.len()).unwrap();
    let mut bytes = vec![0; expected.len()];
    backend.download(&stream, &mut bytes).unwrap();
    assert!(bytes[..HEADER_BYTES].iter().all(|&byte| byte == 0) && bytes[HEADER_BYTES..] == expected[HEADER_BYTES..]);

    let whole = DecodePlan::whole(&Stream::open(&expected).unwrap());
    let mut on_host = vec![0; source.len()];
    let mut batch = DecodeBatch::new(backend.info());
    let to_device = Target::Device(decoded.clone());
    batch.push(DecodeJob::new(whole.clone(), Source::Device(stream.clone()), to_device)).unwrap();
    batch.push(DecodeJob::new(whole, Source::Device(stream), Target::Host(&mut on_host))).unwrap();
    backend.decode(&mut batch).unwrap();
    batch.into_results().for_each(Result::unwrap);
    let mut downloaded = vec![0; source.len()];
    backend.download(&decoded, &mut downloaded).unwrap();
    assert!(on_host == source && downloaded == source);
}

/// A thread of a pool that waits for another pool takes up other work of its own meanwhile. What holds the queue must not.
#[test]
fn device_memory_may_be_used_by_the_threads_of_a_pool() {
    let backend = open("portable", 2);
    let (plan, source) = sample(Dtype::Bf16, 16384 * 40);
    let (done, all_done) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build().unwrap();
        let encode_on_device = || {
            let elements = backend.alloc(source.len()).unwrap().full();
            backend.upload(&source, &elements).unwrap();
            let target = backend.alloc(plan.target_len()).unwrap().full();
            let mut batch = EncodeBatch::new(backend.info());
            batch.push(EncodeJob::new(plan.clone(), Source::Device(elements), Target::Device(target))).unwrap();
            backend.encode(&mut batch).unwrap();
            batch.into_results().for_each(|result| assert!(result.is_ok()));
        };
        pool.scope(|scope| (0..8).for_each(|_| scope.spawn(|_| encode_on_device())));
        done.send(()).unwrap();
    });
    all_done.recv_timeout(Duration::from_secs(60)).expect("the threads wait for each other");
}

#[test]
fn transfers_are_checked() {
    let (backend, other) = (open("portable", 1), open("portable", 1));
    let memory = backend.alloc(10).unwrap().full();
    assert!(matches!(backend.upload(&[0; 9], &memory), Err(Error::Argument(_))));
    assert!(matches!(backend.download(&memory, &mut [0; 11]), Err(Error::Argument(_))));
    assert!(matches!(other.upload(&[0; 10], &memory), Err(Error::Argument(_))));
    assert!(matches!(other.download(&memory, &mut [0; 10]), Err(Error::Argument(_))));
}

#[test]
fn options_that_cannot_be_met_are_refused() {
    let open = |options: OpenOptions| (enec_cpu::DRIVER.open)(&options).unwrap_err();
    for options in [
        OpenOptions { device: 1, ..OpenOptions::default() },
        OpenOptions { variant: Some("neon".into()), ..OpenOptions::default() },
        OpenOptions { variant: Some(String::new()), ..OpenOptions::default() },
    ] {
        assert!(matches!(open(options), Error::Unavailable { .. }));
    }
}

#[test]
fn information_names_variant_and_threads() {
    let threads = NonZeroUsize::new(3);
    let options = OpenOptions { threads, variant: Some("scalar".into()), ..OpenOptions::default() };
    let backend = (enec_cpu::DRIVER.open)(&options).unwrap();
    let info = Backend::info(&*backend);
    assert_eq!((info.backend, info.variant), ("cpu", "scalar"));
    assert!(info.fingerprint.contains("scalar threads=3"), "{}", info.fingerprint);
}
