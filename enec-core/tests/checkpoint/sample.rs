//! Made checkpoints.

use std::fs;
use std::path::{Path, PathBuf};

use enec_core::checkpoint::{Options, Progress, Step};
use enec_core::{Error, Result};
use tempfile::TempDir;

/// Outputs of splitmix64, as in the test vectors.
pub(crate) struct Random(pub(crate) u64);

impl Random {
    pub(crate) fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    pub(crate) fn below(&mut self, bound: usize) -> usize {
        usize::try_from(self.next() % bound as u64).unwrap()
    }

    /// Like trained weights: the sum of uniform numbers.
    fn weight(&mut self) -> f32 {
        let sum: u64 = (0..4).map(|part| (self.next() >> (16 * part)) & 0xFFFF).sum();
        (sum as f32 / 65_536.0 - 2.0) * 0.03
    }
}

#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    pub(crate) name: String,
    pub(crate) dtype: &'static str,
    pub(crate) shape: Vec<u64>,
    pub(crate) bytes: Vec<u8>,
}

pub(crate) fn tensor(name: &str, dtype: &'static str, shape: &[u64], bytes: Vec<u8>) -> Tensor {
    Tensor { name: name.into(), dtype, shape: shape.to_vec(), bytes }
}

/// A tensor of weights in BF16, F16 or F32.
pub(crate) fn weights(name: &str, dtype: &'static str, shape: &[u64], seed: u64) -> Tensor {
    let mut random = Random(seed);
    let bytes = (0..shape.iter().product()).flat_map(|_| {
        let word = random.weight().to_bits();
        match dtype {
            "BF16" => (word >> 16).to_le_bytes()[..2].to_vec(),
            // Exact for normal numbers, and good enough for others.
            "F16" => {
                let exponent = ((word >> 23) & 0xFF).saturating_sub(112).min(31);
                ((word >> 16) & 0x8000 | exponent << 10 | (word >> 13) & 0x3FF).to_le_bytes()[..2].to_vec()
            }
            _ => word.to_le_bytes().to_vec(),
        }
    });
    tensor(name, dtype, shape, bytes.collect())
}

/// A tensor of random bytes, which nothing compresses.
pub(crate) fn noise(name: &str, dtype: &'static str, shape: &[u64], bytes: usize, seed: u64) -> Tensor {
    let mut random = Random(seed);
    tensor(name, dtype, shape, (0..bytes).map(|_| random.next().to_be_bytes()[0]).collect())
}

/// The safetensors file of these tensors, whose data lie in the order in which they are named here.
pub(crate) fn file(tensors: &[Tensor], metadata: &str, padding: &str) -> Vec<u8> {
    let mut entries = Vec::new();
    let mut end = 0;
    for tensor in tensors {
        let start = end;
        end += tensor.bytes.len();
        let (name, dtype, shape) = (&tensor.name, tensor.dtype, &tensor.shape);
        entries.push(format!(r#"{name:?}:{{"dtype":"{dtype}","shape":{shape:?},"data_offsets":[{start},{end}]}}"#));
    }
    // The header's order is not that of the data.
    entries.reverse();
    if !metadata.is_empty() {
        entries.insert(entries.len() / 2, format!(r#""__metadata__":{metadata}"#));
    }
    let header = format!("{{{}}}{padding}", entries.join(", "));
    let mut file = (header.len() as u64).to_le_bytes().to_vec();
    file.extend_from_slice(header.as_bytes());
    tensors.iter().for_each(|tensor| file.extend_from_slice(&tensor.bytes));
    file
}

/// Tensors of every kind that a checkpoint has to carry.
pub(crate) fn tensors() -> Vec<Tensor> {
    vec![
        tensor("empty.first", "BF16", &[0, 5], vec![]),
        weights("bf16.blocks-and-tail", "BF16", &[40, 1000], 1),
        tensor("ids", "I64", &[3], vec![7; 24]),
        weights("f16", "F16", &[4, 2048], 2),
        weights("bf16.less-than-a-tile", "BF16", &[2047], 3),
        noise("bf16.noise", "BF16", &[5, 5000], 50_000, 4),
        weights("f32", "F32", &[3, 5000], 5),
        tensor("scalar", "F32", &[], vec![1, 2, 3, 4]),
        tensor("zeros", "BF16", &[2048], vec![0; 4096]),
        noise("f8", "F8_E4M3", &[33], 33, 6),
        weights("bf16.one-block", "BF16", &[16_384], 7),
        tensor("one", "F16", &[1], vec![0, 60]),
        tensor("nibbles", "F4", &[6], vec![1, 2, 3]),
        tensor("unknown", "Q3_NEW", &[5, 3], vec![9; 7]),
        noise("f32.noise", "F32", &[9000], 36_000, 8),
        // A U8 tensor that holds what looks like a stream is carried all the same.
        tensor("u8", "U8", &[9], b"\x89ENEC\r\n\x1a\n".to_vec()),
        weights("bf16.last", "BF16", &[3, 2000], 9),
        tensor("empty.last", "F32", &[0], vec![]),
    ]
}

pub(crate) fn sample() -> Vec<u8> {
    file(&tensors(), r#"{"format": "pt", "note": "a \"quoted\" \\ word\n\u001f é"}"#, "     ")
}

/// Windows of two blocks of 16-bit elements, so that the sample's tensors have several.
pub(crate) fn options() -> Options {
    Options { window_bytes: 2 * 32_768, ..Options::default() }
}

/// A folder of its own, and files in it.
pub(crate) struct Place(TempDir);

impl Place {
    pub(crate) fn new() -> Self {
        Self(tempfile::tempdir().unwrap())
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    pub(crate) fn write(&self, name: &str, bytes: impl AsRef<[u8]>) -> PathBuf {
        let path = self.path(name);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        // Some file systems flush a file that is written anew, but not a new one.
        let _ = fs::remove_file(&path);
        fs::write(&path, bytes).unwrap();
        path
    }

    /// Everything that lies in the place, hidden files included.
    pub(crate) fn names(&self) -> Vec<String> {
        names(self.0.path())
    }
}

/// The names in a folder, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let entries = fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut names = Vec::from_iter(entries);
    names.sort();
    names
}

/// Counts, and cancels after so many bytes.
pub(crate) struct Counter {
    pub(crate) total: u64,
    pub(crate) done: u64,
    pub(crate) cancel_at: u64,
    pub(crate) steps: Vec<Step>,
}

impl Counter {
    pub(crate) fn new() -> Self {
        Self { total: 0, done: 0, cancel_at: u64::MAX, steps: Vec::new() }
    }
}

impl Progress for Counter {
    fn total(&mut self, bytes: u64) {
        assert_eq!(self.total, 0, "called once");
        self.total = bytes;
    }

    fn file(&mut self, step: Step, _path: &Path) {
        self.steps.push(step);
    }

    fn advance(&mut self, bytes: u64) {
        self.done += bytes;
    }

    fn is_cancelled(&self) -> bool {
        self.done >= self.cancel_at
    }
}

/// The error's text, with the place's path taken out.
pub(crate) fn message<T: std::fmt::Debug>(result: Result<T>) -> String {
    let error: Error = result.unwrap_err();
    let text = error.to_string();
    let temporary = std::env::temp_dir();
    let mut words: Vec<String> = Vec::new();
    for word in text.split(' ') {
        let inside = word.find(temporary.to_str().unwrap());
        words.push(match inside {
            // .../RANDOM/NAME
            Some(start) => {
                let path = &word[start + temporary.as_os_str().len() + 1..];
                format!("{}{}", &word[..start], path.split_once('/').map_or("", |(_, name)| name))
            }
            None => word.to_owned(),
        });
    }
    words.join(" ")
}
