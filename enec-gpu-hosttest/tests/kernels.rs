//! Single kernels, called with tables made here: for sizes that whole tensors in a test do not reach.

#![allow(clippy::unwrap_used, reason = "a test that panics has failed")]
#![allow(clippy::cast_possible_truncation, reason = "patterns are cut on purpose")]

use enec_format::geometry::{BLOCK_TILES, SEGMENT_UNIT};
use enec_format::{BlockEntry, segment_len};
use enec_gpu_hosttest::{Order, run};

const ORDERS: [Order; 3] = [Order::Forward, Order::Reverse, Order::Random(5)];

/// Memory on a boundary of 16 bytes.
struct Aligned(Vec<u128>);

impl Aligned {
    fn new(len: usize) -> Self {
        Self(vec![u128::MAX / 3; len.div_ceil(16)])
    }

    /// One table entry after the other, of words of 64 bits.
    fn table<const WORDS: usize>(entries: &[[u64; WORDS]]) -> Self {
        let mut table = Self::new(entries.len() * WORDS * 8);
        for (index, word) in entries.as_flattened().iter().enumerate() {
            table.write(index * 8, &word.to_le_bytes());
        }
        table
    }

    fn address(&self) -> u64 {
        self.0.as_ptr().expose_provenance() as u64
    }

    fn write(&mut self, at: usize, bytes: &[u8]) {
        for (index, byte) in bytes.iter().enumerate() {
            let (word, shift) = ((at + index) / 16, (at + index) % 16 * 8);
            self.0[word] = self.0[word] & !(0xFF << shift) | u128::from(*byte) << shift;
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.0.iter().flat_map(|word| word.to_le_bytes()).collect()
    }
}

/// Runs a kernel; the tables name memory that outlives the call.
fn launch(order: Order, name: &str, ctas: usize, table: &Aligned, count: usize) {
    let (ctas, count) = (u32::try_from(ctas).unwrap(), u32::try_from(count).unwrap());
    // SAFETY: the callers' tables name memory of theirs, of the lengths that they say, which nobody else uses.
    unsafe { run(None, order, name, ctas, table.address(), count) }.unwrap();
}

/// Summaries of blocks as the first launch leaves them: wide lanes, largest and smallest exponent.
fn summary(block: u64) -> (u32, u8, u8) {
    let bits = block.wrapping_mul(0x9E37_79B9_7F4A_7C15) >> 32;
    let lanes = [0, 1, 16, 17, 1024, (bits % 1025) as u32][block as usize % 6];
    let [_, _, low, high, ..] = bits.to_le_bytes();
    if lanes == 0 { (0, 0, 0xFF) } else { (lanes, low.max(high), low.min(high)) }
}

/// The scan of more blocks than a CTA takes in one round, and of few; several jobs at once.
#[test]
#[cfg_attr(not(has_shim), ignore = "kernels cannot be run here")]
fn segments_follow_each_other_over_many_rounds() {
    const WIDTH: u8 = 3;
    for order in ORDERS {
        let first = u64::from(u32::MAX) - 1000;
        let sizes = [1, 15, 16, 17, 4095, 4096, 4097, 10_000];
        let (mut jobs, mut memory) = (Vec::new(), Vec::new());
        for blocks in sizes {
            let (table, mut summaries, result) = (Aligned::new(blocks * 8), Aligned::new(blocks * 4), Aligned::new(16));
            for block in 0..blocks {
                let (lanes, largest, smallest) = summary(block as u64);
                let word = lanes | u32::from(largest) << 16 | u32::from(smallest) << 24;
                summaries.write(block * 4, &word.to_le_bytes());
            }
            let tiles = (blocks * BLOCK_TILES) as u64 - 3;
            let (limit, width) = (u64::MAX, u64::from(WIDTH) << 32);
            let stream = table.address();
            // In the order of `EncodeJob`; the scan uses no section but the table.
            jobs.push([
                0,
                0,
                stream,
                tiles,
                0,
                0,
                0,
                0,
                0,
                0,
                0,
                limit,
                first,
                summaries.address(),
                result.address(),
                width,
            ]);
            memory.push((table, summaries, result));
        }
        launch(order, "enec_encode_scan", sizes.len(), &Aligned::table(&jobs), sizes.len());
        for (blocks, (table, _, result)) in sizes.into_iter().zip(&memory) {
            let (mut end, table) = (first, table.bytes());
            for block in 0..blocks {
                let (lanes, largest, smallest) = summary(block as u64);
                let bits = if lanes == 0 { 0 } else { 8 - (largest - smallest).leading_zeros() };
                let width = WIDTH.max(u8::try_from(bits).unwrap());
                end += (segment_len(lanes as usize, width - WIDTH) / SEGMENT_UNIT) as u64;
                let wide_base = if lanes == 0 { 0 } else { largest };
                let expected = BlockEntry { wide_base, wide_width: width, end };
                assert_eq!(BlockEntry::read(&table, block), expected, "block {block} of {blocks}, {order:?}");
            }
            let len = (end - first) * SEGMENT_UNIT as u64;
            assert_eq!(result.bytes(), [len.to_le_bytes(), 1_u64.to_le_bytes()].concat(), "{blocks} blocks, {order:?}");
        }
    }
}

/// The limit itself is coded, one unit less is stored.
#[test]
#[cfg_attr(not(has_shim), ignore = "kernels cannot be run here")]
fn the_limit_decides() {
    for (short, expected) in [(0, [6 * 32, 1_u64]), (1, [0, 0])] {
        let (table, mut summaries, result) = (Aligned::new(8), Aligned::new(4), Aligned::new(16));
        // 17 lanes of 3 high bits.
        summaries.write(0, &(17 | 107 << 16 | 100_u32 << 24).to_le_bytes());
        let (limit, addresses) = (6 * 32 - short, [summaries.address(), result.address()]);
        let job = [0, 0, table.address(), 8, 0, 0, 0, 0, 0, 0, 0, limit, 0, addresses[0], addresses[1], 0];
        launch(Order::Forward, "enec_encode_scan", 1, &Aligned::table(&[job]), 1);
        assert_eq!(result.bytes(), expected.map(u64::to_le_bytes).concat());
    }
}

/// More jobs than 32 squared, some without a CTA, at all alignments and lengths: each CTA finds its own.
#[test]
#[cfg_attr(not(has_shim), ignore = "kernels cannot be run here")]
fn every_cta_finds_its_job_among_thousands() {
    const COPY_BYTES: usize = 65_536;
    let lens = (0..3000).map(|index| match index % 5 {
        0 => 0,
        1 => index % 97,
        2 => 16 * (index % 31),
        _ if index % 500 == 3 => COPY_BYTES + index % 33 - 16,
        _ => 1 + index % 40,
    });
    let lens: Vec<usize> = lens.collect();
    for order in ORDERS {
        let (mut first_cta, mut at) = (0, 0);
        let mut places = Vec::new();
        for (index, &len) in lens.iter().enumerate() {
            let zeros = if index % 7 == 0 { index % 65 } else { 0 };
            // A job after a gap of at least one byte.
            places.push((first_cta, at, len, zeros));
            first_cta += len.div_ceil(COPY_BYTES).max(usize::from(zeros > 0));
            at += len + zeros + 1 + if index % 3 == 0 { 0 } else { 15 - (at + len + zeros) % 16 };
        }
        let mut source = Aligned::new(at);
        let bytes: Vec<u8> = (0..at).map(|index| (index % 251) as u8).collect();
        source.write(0, &bytes);
        let target = Aligned::new(at);
        let mut expected = target.bytes();
        let mut jobs = Vec::new();
        for &(first_cta, at, len, zeros) in &places {
            // Alignments of source and target differ in every other job.
            let from = if at % 2 == 0 || at == 0 { at } else { at - 1 };
            expected[at..at + len].copy_from_slice(&bytes[from..from + len]);
            expected[at + len..at + len + zeros].fill(0);
            let (from, to) = (source.address() + from as u64, target.address() + at as u64);
            jobs.push([first_cta as u64, from, to, len as u64, zeros as u64]);
        }
        launch(order, "enec_copy", first_cta, &Aligned::table(&jobs), jobs.len());
        assert!(target.bytes() == expected, "copied bytes differ, {order:?}");
    }
}
