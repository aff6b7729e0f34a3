//! Comparing what is decoded with what it ought to be.

use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};

use enec_format::Dtype;
use enec_format::geometry::BLOCK_ELEMENTS;

use crate::{Feed, PieceSink};

/// Compares what is decoded with what is expected, by the threads that decode and while it is in their caches.
pub(super) struct Comparison<'a, Sink> {
    sink: Sink,
    block_bytes: usize,
    expected: Option<&'a [u8]>,
    /// Bytes that a backend has handed over.
    compared: AtomicUsize,
    /// The first byte of the tensor that differs.
    difference: AtomicU64,
}

impl<'a, Sink> Comparison<'a, Sink> {
    pub(super) fn new(sink: Sink, dtype: Dtype, expected: Option<&'a [u8]>) -> Self {
        let block_bytes = BLOCK_ELEMENTS * dtype.element_bytes();
        Self { sink, block_bytes, expected, compared: AtomicUsize::new(0), difference: AtomicU64::new(u64::MAX) }
    }

    fn compare(&self, offset: usize, decoded: &[u8]) {
        let Some(expected) = self.expected else { return };
        if let Some(byte) = first_difference(expected, offset as u64, decoded) {
            self.difference.fetch_min(byte, Ordering::Relaxed);
        }
        self.compared.fetch_add(decoded.len(), Ordering::Relaxed);
    }

    /// The first byte that differs, after comparing what the backend has not handed over.
    pub(super) fn finish(self, offset: u64, decoded: &[u8]) -> Option<u64> {
        let difference = Some(self.difference.into_inner()).filter(|&byte| byte != u64::MAX);
        if self.compared.into_inner() < decoded.len() {
            return self.expected.and_then(|expected| first_difference(expected, offset, decoded));
        }
        difference
    }
}

impl<Sink: PieceSink> PieceSink for Comparison<'_, Sink> {
    fn content(&self, block: usize, decoded: &[u8]) {
        self.sink.content(block, decoded);
        self.compare(block * self.block_bytes, decoded);
    }

    fn payload(&self, block: usize, parts: &[&[u8]; 6]) {
        self.sink.payload(block, parts);
    }

    fn wants_payload(&self) -> bool {
        self.sink.wants_payload()
    }

    fn content_in_parts(&self, block: usize, feed: &mut Feed<'_>) {
        let mut offset = block * self.block_bytes;
        self.sink.content_in_parts(block, &mut |hash| {
            feed(&mut |bytes| {
                hash(bytes);
                self.compare(offset, bytes);
                offset += bytes.len();
            });
        });
    }
}

/// The first byte of a tensor that is not what is expected, among these, which start at byte `offset` of it.
pub(super) fn first_difference(expected: &[u8], offset: u64, bytes: &[u8]) -> Option<u64> {
    let expected = usize::try_from(offset).ok().and_then(|offset| expected.get(offset..)).unwrap_or(&[]);
    if expected.get(..bytes.len()) == Some(bytes) {
        return None;
    }
    let same = bytes.iter().zip(expected).take_while(|(left, right)| left == right).count();
    Some(offset + same as u64)
}

#[cfg(test)]
mod tests {
    use enec_format::Stream;

    use super::super::timings::{Stopwatch, TimedSink};
    use super::*;
    use crate::PieceHashes;

    /// Takes pieces and does nothing with them.
    struct Nothing;

    impl PieceSink for Nothing {
        fn content(&self, _block: usize, _decoded: &[u8]) {}
        fn payload(&self, _block: usize, _parts: &[&[u8]; 6]) {}
        fn content_in_parts(&self, _block: usize, feed: &mut Feed<'_>) {
            feed(&mut |_| {});
        }
    }

    type Report = dyn Fn(&dyn PieceSink, &[u8]);

    const BLOCK: usize = 2 * BLOCK_ELEMENTS;

    /// What is found where the decoded bytes are those from block 1 on of a tensor, and `report` hands some of them over.
    fn found(expected: &[u8], decoded: &[u8], report: impl Fn(&dyn PieceSink, &[u8])) -> Option<u64> {
        let comparison = Comparison::new(Nothing, Dtype::Bf16, Some(expected));
        report(&comparison, decoded);
        comparison.finish(BLOCK as u64, decoded)
    }

    fn report_all(sink: &dyn PieceSink, decoded: &[u8]) {
        // In neither order, and by both ways.
        let blocks = Vec::from_iter(decoded.chunks(BLOCK).enumerate());
        for (index, bytes) in [blocks[0], blocks[3], blocks[1], blocks[2]] {
            if index % 2 == 0 {
                sink.content(1 + index, bytes);
            } else {
                sink.content_in_parts(1 + index, &mut |take| bytes.chunks(5000).for_each(take));
            }
        }
    }

    #[test]
    fn the_first_difference_is_found_whoever_looks_for_it() {
        let decoded: Vec<u8> = (0..=250).cycle().take(3 * BLOCK + 100).collect();
        let same = [vec![9; BLOCK], decoded.clone()].concat();
        let reports: [&Report; 3] =
            [&|_, _| {}, &|sink, decoded| sink.content(2, &decoded[BLOCK..2 * BLOCK]), &report_all];
        for report in reports {
            assert_eq!(found(&same, &decoded, report), None);
            for at in [0, 7, BLOCK - 1, BLOCK + 5000, 2 * BLOCK + 1, 3 * BLOCK + 99] {
                let mut other = same.clone();
                // The last byte differs, too, and what lies before the window does not count.
                other[0] ^= 1;
                other[BLOCK + at] ^= 1;
                *other.last_mut().unwrap() |= 0x80;
                assert_eq!(found(&other, &decoded, report), Some((BLOCK + at) as u64));
            }
            // What is expected ends before what is decoded, or before the window.
            for len in [0, BLOCK - 1, BLOCK, BLOCK + 1, 3 * BLOCK, same.len() - 1] {
                assert_eq!(found(&same[..len], &decoded, report), Some(len.max(BLOCK) as u64), "{len}");
            }
        }
        assert_eq!(found(&[], &[], |_, _| {}), None);
        let nothing_known = Comparison::new(Nothing, Dtype::Bf16, None);
        report_all(&nothing_known, &decoded);
        assert_eq!(nothing_known.finish(0, &decoded), None);
    }

    #[test]
    fn whether_the_payload_is_wanted_is_asked_of_the_innermost() {
        let stream = enec_format::reference::encode_stream(Dtype::Bf16, enec_format::Coding::Stored, &[0; 8]).unwrap();
        let hashes = PieceHashes::new(Stream::open(&stream).unwrap().layout());
        let stopwatch = &Stopwatch::default();
        let wants = |sink| Comparison::new(TimedSink { sink, stopwatch }, Dtype::Bf16, None).wants_payload();
        assert!(wants(hashes.sink(0)));
        assert!(!wants(hashes.sink(0).without_payload()));
    }
}
