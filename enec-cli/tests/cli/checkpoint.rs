//! Checkpoints to test with: the real one under `assets/`, and made ones.

use std::fs;
use std::path::{Path, PathBuf};

/// A small real checkpoint, and its SHA-256.
pub(crate) fn sample() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../assets/minilm-sample/model.safetensors")
}

/// The SHA-256 of [`sample`].
pub(crate) const SAMPLE_SHA256: &str = "ce032c50ea2e37decc453ae5a979c03a02e301b73ed24b108bb3aeac942a4d85";

/// One tensor of a made file.
#[derive(Debug, Clone)]
pub(crate) struct Tensor {
    name: String,
    dtype: &'static str,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

impl Tensor {
    pub(crate) fn new(name: &str, dtype: &'static str, shape: &[usize], bytes: Vec<u8>) -> Self {
        Self { name: name.to_owned(), dtype, shape: shape.to_vec(), bytes }
    }

    /// BF16 weights that compress: exponents crowd below that of one half.
    pub(crate) fn weights(name: &str, shape: &[usize]) -> Self {
        let mut random = Random(7);
        let words = (0..shape.iter().product()).map(|_| {
            let word = random.next();
            // As many exponents one below the largest as with it, half as many below that, and so on.
            let exponent = 126 - (word >> 16 | 1 << 12).trailing_zeros();
            exponent << 7 | word & 0x807F
        });
        Self::new(name, "BF16", shape, words.flat_map(low_half).collect())
    }

    /// BF16 words that do not compress.
    pub(crate) fn noise(name: &str, shape: &[usize]) -> Self {
        let mut random = Random(7);
        let words = (0..shape.iter().product()).map(|_| random.next());
        Self::new(name, "BF16", shape, words.flat_map(low_half).collect())
    }

    pub(crate) fn bytes(&self) -> &[u8] {
        &self.bytes
    }
}

/// The lower 16 bits of a word, little-endian.
fn low_half(word: u32) -> [u8; 2] {
    let [low, high, ..] = word.to_le_bytes();
    [low, high]
}

/// A generator of numbers that look random (xorshift32).
struct Random(u32);

impl Random {
    fn next(&mut self) -> u32 {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 17;
        self.0 ^= self.0 << 5;
        self.0
    }
}

/// The header of a safetensors file with these tensors, one after the other, its length before it.
pub(crate) fn header<'a>(tensors: impl IntoIterator<Item = (&'a str, &'a str, &'a [usize], usize)>) -> Vec<u8> {
    let mut end = 0;
    let entries = tensors.into_iter().map(|(name, dtype, shape, len)| {
        let start = end;
        end += len;
        let (name, dtype) = (serde_json::to_string(name).unwrap(), serde_json::to_string(dtype).unwrap());
        format!(r#"{name}:{{"dtype":{dtype},"shape":{shape:?},"data_offsets":[{start},{end}]}}"#)
    });
    let text = format!("{{{}}}", entries.collect::<Vec<_>>().join(","));
    let mut bytes = (text.len() as u64).to_le_bytes().to_vec();
    bytes.extend(text.bytes());
    bytes
}

/// A safetensors file.
pub(crate) fn file(tensors: &[Tensor]) -> Vec<u8> {
    let entries = tensors.iter().map(|tensor| (&*tensor.name, tensor.dtype, &*tensor.shape, tensor.bytes.len()));
    let mut bytes = header(entries);
    bytes.extend(tensors.iter().flat_map(|tensor| &tensor.bytes));
    bytes
}

/// Some of everything: what gains, what does not, what is unknown, what is empty.
pub(crate) fn tensors() -> Vec<Tensor> {
    vec![
        Tensor::weights("layer.0.weight", &[64, 128]),
        Tensor::weights("layer.0.bias", &[64]),
        Tensor::noise("layer.1.weight", &[96, 128]),
        Tensor::weights("layer.2.weight", &[300, 100]),
        Tensor::new("steps", "I64", &[], vec![1, 0, 0, 0, 0, 0, 0, 0]),
        Tensor::new("codes", "F4_OF_TOMORROW", &[3], vec![1, 2, 3]),
        Tensor::new("nothing", "F32", &[0, 5], vec![]),
    ]
}

/// Writes a file of [`tensors`].
pub(crate) fn write(path: &Path) {
    fs::write(path, file(&tensors())).unwrap();
}

/// A folder in Hugging Face layout: two shards, their index, and other files, one of them in a subfolder.
pub(crate) fn write_folder(folder: &Path) {
    fs::create_dir_all(folder.join("tokenizer")).unwrap();
    let shards = ["model-00001-of-00002.safetensors", "model-00002-of-00002.safetensors"];
    fs::write(folder.join(shards[0]), file(&[Tensor::weights("first.weight", &[128, 100])])).unwrap();
    fs::write(
        folder.join(shards[1]),
        file(&[Tensor::weights("second.weight", &[50, 300]), Tensor::noise("noise", &[5])]),
    )
    .unwrap();
    let map = serde_json::json!({"first.weight": shards[0], "second.weight": shards[1], "noise": shards[1]});
    let index = serde_json::json!({"metadata": {"total_size": 55_610}, "weight_map": map});
    fs::write(folder.join("model.safetensors.index.json"), index.to_string()).unwrap();
    fs::write(folder.join("config.json"), "{}").unwrap();
    fs::write(folder.join("tokenizer/vocabulary.txt"), "a\nb\n").unwrap();
}
