//! Streams for tests: the golden ones, and a generator of random changes.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]
#![allow(dead_code, reason = "every test file is a program of its own and uses some of this")]

use enec_format::hash::xxh3_64;

/// A golden stream of `testdata/v1`.
pub(crate) struct Golden {
    /// Name of its file without the ending.
    pub(crate) name: String,
    /// The sealed stream.
    pub(crate) bytes: Vec<u8>,
}

/// All golden streams, by name.
pub(crate) fn goldens() -> Vec<Golden> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../testdata/v1");
    let files = std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let streams = files.filter(|path| path.extension().is_some_and(|extension| extension == "enec"));
    let mut goldens: Vec<Golden> = streams
        .map(|path| Golden {
            name: path.file_stem().unwrap().to_str().unwrap().to_owned(),
            bytes: std::fs::read(&path).unwrap(),
        })
        .collect();
    goldens.sort_by(|a, b| a.name.cmp(&b.name));
    assert!(goldens.len() >= 75, "golden streams are missing from {folder}");
    goldens
}

/// One golden stream.
pub(crate) fn golden(name: &str) -> Vec<u8> {
    goldens().into_iter().find(|golden| golden.name == name).unwrap_or_else(|| panic!("no golden `{name}`")).bytes
}

/// Makes the header's checksum right again.
pub(crate) fn repair(stream: &mut [u8]) {
    let checksum = xxh3_64(&stream[..56]);
    stream[56..64].copy_from_slice(&checksum.to_le_bytes());
}

/// A copy with some header bytes replaced and the checksum repaired.
pub(crate) fn with_header(stream: &[u8], at: usize, bytes: &[u8]) -> Vec<u8> {
    let mut changed = stream.to_vec();
    changed[at..at + bytes.len()].copy_from_slice(bytes);
    repair(&mut changed);
    changed
}

/// SplitMix64.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    /// The next 64 bits.
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// A number below `bound`.
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// The next byte.
    pub(crate) fn byte(&mut self) -> u8 {
        self.next().to_be_bytes()[0]
    }
}
