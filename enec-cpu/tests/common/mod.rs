//! Inputs that hurt, and running one job on one backend.

#![allow(dead_code, reason = "each test file uses a part of it")]

use std::num::NonZeroUsize;
use std::sync::Arc;

use enec_core::{Backend, DecodeBatch, DecodeJob, EncodeBatch, EncodeJob, OpenOptions, PieceSink, Source, Target};
use enec_format::geometry::{LANES, TILE_ELEMENTS};
use enec_format::{Cascade, DecodePlan, Dtype, EncodeOutcome, EncodePlan, Stream, TwoWindows, reference};

/// One backend for each variant of the kernels.
pub(crate) fn backends() -> Vec<Arc<dyn Backend>> {
    let variants = (enec_cpu::DRIVER.probe)().unwrap().remove(0).variants;
    assert!(variants.contains(&"portable") && variants.contains(&"scalar"));
    variants.into_iter().map(|variant| open(variant, 1)).collect()
}

pub(crate) fn open(variant: &str, threads: usize) -> Arc<dyn Backend> {
    let threads = Some(NonZeroUsize::new(threads).unwrap());
    (enec_cpu::DRIVER.open)(&OpenOptions { device: 0, threads, variant: Some(variant.into()) }).unwrap()
}

/// A small deterministic generator (splitmix64).
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, limit: u64) -> u64 {
        self.next() % limit
    }
}

/// Elements with the given exponents and random other bits.
pub(crate) fn with_exponents(dtype: Dtype, random: &mut Random, exponents: impl IntoIterator<Item = u8>) -> Vec<u8> {
    let mut bytes = Vec::new();
    for exponent in exponents {
        let (noise, exponent) = (random.next() as u32, u32::from(exponent));
        match dtype {
            Dtype::Bf16 => bytes.extend(((noise & 0x807F | exponent << 7) as u16).to_le_bytes()),
            Dtype::F16 => bytes.extend(((noise & 0x83FF | exponent << 10) as u16).to_le_bytes()),
            Dtype::F32 => bytes.extend((noise & 0x807F_FFFF | exponent << 23).to_le_bytes()),
            Dtype::Opaque => unreachable!(),
        }
    }
    bytes
}

/// Inputs of this many elements, each with a name. Exponents are near `base` where that matters.
pub(crate) fn inputs(dtype: Dtype, elements: usize, base: u8, width: u8) -> Vec<(String, Vec<u8>)> {
    let random = &mut Random(u64::from(base) << 8 | u64::from(width));
    let mask = dtype.exponent_mask();
    let below = |steps: u64| base.wrapping_sub(steps.to_le_bytes()[0]) & mask;
    let window = 1_u64 << width;
    let mut inputs = Vec::new();
    let mut add = |name: &str, bytes: Vec<u8>| inputs.push((name.to_owned(), bytes));

    let geometric: Vec<u8> =
        (0..elements).map(|_| below(u64::from((random.next() | 1 << 30).trailing_zeros()))).collect();
    add("geometric", with_exponents(dtype, random, geometric));
    add("random bits", (0..elements * dtype.element_bytes()).map(|_| random.next() as u8).collect());
    let patterns = (0..elements).flat_map(|i| {
        let word = ((i as u32).wrapping_mul(if dtype == Dtype::F32 { 0x0001_0001 } else { 1 })).to_le_bytes();
        word.into_iter().take(dtype.element_bytes())
    });
    add("all patterns", patterns.collect());
    add("zeros", vec![0; elements * dtype.element_bytes()]);
    add("ones", vec![0xFF; elements * dtype.element_bytes()]);
    add("one value", [0x12, 0x3D, 0x80, 0x3F].into_iter().cycle().take(elements * dtype.element_bytes()).collect());
    let all_common: Vec<u8> = (0..elements).map(|_| base - (random.below(window) as u8).min(base)).collect();
    add("no wide lane", with_exponents(dtype, random, all_common));

    // Wide lanes in chosen numbers, their exponents spread over `2^bits`.
    for (wide, bits) in [(16, 8), (17, 7), (1, 6), (100, 5), (128, 4), (1000, 3), (1024, 2), (33, 1), (5, 0)] {
        let spread = 1_u64 << bits.min(dtype.exponent_bits());
        let exponents: Vec<u8> = (0..elements)
            .map(|i| {
                let (lane, tile) = (i % LANES, i / TILE_ELEMENTS % 8);
                // A permutation of the block's lanes, so that the wide ones lie scattered.
                let is_wide = (tile * LANES + lane) * 387 % 1024 < wide;
                let offset = if is_wide { window + random.below(spread) } else { random.below(window) };
                below(offset)
            })
            .collect();
        add(&format!("{wide} wide lanes over {bits} bits"), with_exponents(dtype, random, exponents));
    }
    inputs
}

/// What a run leaves behind, the guard bytes checked.
pub(crate) const POISON: u8 = 0xA5;
const GUARD: usize = 67;

/// A poisoned buffer that starts `shift` bytes after a 64-byte boundary, with guard bytes on both sides.
pub(crate) struct Guarded {
    bytes: Vec<u8>,
    start: usize,
    len: usize,
}

impl Guarded {
    pub(crate) fn new(len: usize, shift: usize) -> Self {
        let bytes = vec![POISON; len + 2 * GUARD + 128];
        let start = GUARD + (64 - (bytes.as_ptr() as usize + GUARD) % 64) % 64 + shift;
        Self { bytes, start, len }
    }

    pub(crate) fn of(content: &[u8], shift: usize) -> Self {
        let mut guarded = Self::new(content.len(), shift);
        guarded.bytes_mut().copy_from_slice(content);
        guarded
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes[self.start..self.start + self.len]
    }

    pub(crate) fn bytes_mut(&mut self) -> &mut [u8] {
        &mut self.bytes[self.start..self.start + self.len]
    }

    pub(crate) fn assert_guards(&self, what: &str) {
        let outside = self.bytes[..self.start].iter().chain(&self.bytes[self.start + self.len..]);
        assert!(outside.copied().all(|byte| byte == POISON), "{what}: wrote outside the target");
    }
}

/// Encodes into a poisoned buffer at an odd place; returns the outcome and the bytes from the block table on, or those stored.
pub(crate) fn encode(
    backend: &dyn Backend,
    plan: &EncodePlan,
    source: &[u8],
    shift: usize,
    pieces: Option<&dyn PieceSink>,
) -> (EncodeOutcome, Vec<u8>) {
    let source = Guarded::of(source, (shift * 5) % 64);
    let mut target = Guarded::new(plan.target_len(), shift);
    let mut job = EncodeJob::new(plan.clone(), Source::Host(source.bytes()), Target::Host(target.bytes_mut()));
    if let Some(pieces) = pieces {
        job = job.with_pieces(pieces);
    }
    let mut batch = EncodeBatch::new(backend.info());
    batch.push(job).unwrap();
    backend.encode(&mut batch).unwrap();
    let outcome = batch.into_results().next().unwrap().unwrap();
    let what = backend.info().variant;
    target.assert_guards(what);
    let layout = plan.written(outcome).unwrap();
    let (front, body) = target.bytes()[..layout.stream_len].split_at(layout.front_len());
    assert!(front.iter().all(|&byte| byte == POISON), "{what}: touched the header or the symbols");
    (outcome, body.to_vec())
}

/// Decodes into a poisoned buffer at an odd place.
pub(crate) fn decode(
    backend: &dyn Backend,
    plan: &DecodePlan,
    source: &[u8],
    shift: usize,
    pieces: Option<&dyn PieceSink>,
) -> Vec<u8> {
    let source = Guarded::of(source, (shift * 3) % 64);
    let mut target = Guarded::new(plan.target_len(), shift);
    let mut job = DecodeJob::new(plan.clone(), Source::Host(source.bytes()), Target::Host(target.bytes_mut()));
    if let Some(pieces) = pieces {
        job = job.with_pieces(pieces);
    }
    let mut batch = DecodeBatch::new(backend.info());
    batch.push(job).unwrap();
    backend.decode(&mut batch).unwrap();
    batch.into_results().next().unwrap().unwrap();
    target.assert_guards(backend.info().variant);
    target.bytes().to_vec()
}

/// Windows for every width of the dtype, the base moving along.
pub(crate) fn windows(dtype: Dtype) -> impl Iterator<Item = TwoWindows> {
    let (largest, bits) = (dtype.exponent_mask(), dtype.exponent_bits());
    (0..=bits).flat_map(move |width| {
        let bases = [largest / 2 + width, [0, largest][usize::from(width) % 2]];
        bases.into_iter().map(move |base| TwoWindows::new(dtype, base, width).unwrap())
    })
}

/// Symbols for every number of levels: those that follow each other down from the middle of the range, and others all over it.
pub(crate) fn cascades(dtype: Dtype) -> impl Iterator<Item = Cascade> {
    let mask = dtype.exponent_mask();
    (1..=5).flat_map(move |levels| {
        // Both orders name distinct exponents: the steps are odd, and their number is a power of two.
        let orders = [(mask / 2 + levels, mask), (levels, 147)];
        orders.into_iter().map(move |(first, step)| {
            let symbols: Vec<u8> = (0..3 * levels).map(|i| first.wrapping_add(i.wrapping_mul(step)) & mask).collect();
            Cascade::new(dtype, &symbols).unwrap()
        })
    })
}

/// Counts of elements around every edge of tile and block.
pub(crate) const COUNTS: [usize; 9] = [2048, 2049, 4096, 6143, 14336, 16383, 16384, 16385, 40000];

/// That every backend encodes and decodes as the reference does.
pub(crate) fn check(backends: &[Arc<dyn Backend>], plan: &EncodePlan, source: &[u8], shift: usize, what: &str) {
    let expected = reference::encode_plan(plan, source).unwrap();
    let stream = Stream::open(&expected).unwrap();
    assert_eq!(reference::decode_stream(&stream).unwrap(), source, "{what}: the reference itself");
    for backend in backends {
        let what = format!("{} {what}", backend.info().variant);
        let (outcome, body) = encode(&**backend, plan, source, shift, None);
        assert_eq!(plan.written(outcome).unwrap(), *stream.layout(), "{what}");
        assert!(body == expected[stream.layout().front_len()..], "{what}: encoded bytes differ");
        let decoded = decode(&**backend, &DecodePlan::whole(&stream), &expected, shift, None);
        assert!(decoded == source, "{what}: decoded bytes differ");
    }
}

/// That every backend decodes any range of a tensor's tiles, with and without what follows them.
pub(crate) fn check_ranges(backends: &[Arc<dyn Backend>], stream: &Stream<'_>, source: &[u8], random: &mut Random) {
    let (dtype, tiles) = (stream.layout().dtype, stream.layout().tiles);
    for round in 0..60 {
        let start = random.below(tiles as u64 + 1) as usize;
        let end = start + random.below((tiles - start) as u64 + 1) as usize;
        let tail = end == tiles && round % 2 == 0;
        let plan = DecodePlan::whole(stream).with_tiles(start..end, tail).unwrap();
        let tile_bytes = TILE_ELEMENTS * dtype.element_bytes();
        let expected = &source[start * tile_bytes..if tail { source.len() } else { end * tile_bytes }];
        for backend in backends {
            let decoded = decode(&**backend, &plan, stream.bytes(), round, None);
            assert!(decoded == expected, "{} {dtype:?} {start}..{end}", backend.info().variant);
        }
    }
}
