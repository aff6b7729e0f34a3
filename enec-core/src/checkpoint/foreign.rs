//! Files that are not safetensors: what they are, and what would work.

use std::path::Path;

use crate::Error;

use super::fault;

/// A format that holds weights or is mistaken for one that does.
struct Foreign {
    what: &'static str,
    advice: &'static str,
}

const PYTORCH: Foreign = Foreign {
    what: "a PyTorch checkpoint (pickle)",
    advice: "save it as safetensors first: `safetensors.torch.save_file(torch.load(FILE, weights_only=True), \"model.safetensors\")`",
};
const NUMPY: Foreign = Foreign {
    what: "a NumPy file",
    advice: "save its arrays as safetensors first: `safetensors.numpy.save_file(dict(numpy.load(FILE)), \"model.safetensors\")`",
};
const GGUF: Foreign = Foreign {
    what: "a GGUF or GGML file",
    advice: "compress the safetensors checkpoint that it was converted from; quantised weights hold next to no exponents",
};
const ONNX: Foreign = Foreign {
    what: "an ONNX model",
    advice: "compress the safetensors checkpoint that it was exported from, or save its initializers as safetensors",
};
const HDF5: Foreign = Foreign {
    what: "an HDF5 or Keras file",
    advice: "save its weights as safetensors first, for example with `safetensors.numpy.save_file`",
};
const TENSORFLOW: Foreign = Foreign {
    what: "a TensorFlow, TensorFlow Lite or Flax file",
    advice: "load it in its framework and save it as safetensors, for example with `save_pretrained(..., safe_serialization=True)`",
};
const ZIP: Foreign = Foreign { what: "a zip archive", advice: "unpack it and compress the safetensors files inside" };
const ARCHIVE: Foreign = Foreign { what: "an archive", advice: "unpack it and compress the safetensors files inside" };
const LFS_POINTER: Foreign =
    Foreign { what: "a Git LFS pointer, not the file itself", advice: "fetch the file first: `git lfs pull`" };
const WEB_PAGE: Foreign = Foreign {
    what: "a web page",
    advice: "the download went wrong: fetch the file itself, not the page that shows it",
};
const STREAM: Foreign = Foreign {
    what: "a bare ENEC stream",
    advice: "only whole checkpoints are read here; a stream is decoded with the library",
};

/// Formats by how their files begin. Four bytes at least, with which no header length within safetensors' limit begins: gzip and
/// pickle are told by their extension only.
const MAGICS: [(&[u8], Foreign); 13] = [
    (b"GGUF", GGUF),
    (b"lmgg", GGUF),
    (b"tjgg", GGUF),
    (b"\x93NUMPY", NUMPY),
    (b"\x89HDF\r\n\x1a\n", HDF5),
    (b"\x89ENEC\r\n\x1a", STREAM),
    (b"version https://git-lfs", LFS_POINTER),
    (b"<!DOCTYPE", WEB_PAGE),
    (b"<!doctype", WEB_PAGE),
    (b"<html", WEB_PAGE),
    (b"\x28\xb5\x2f\xfd", ARCHIVE),
    (b"\xfd7zXZ", ARCHIVE),
    (b"7z\xbc\xaf\x27\x1c", ARCHIVE),
];

fn by_extension(path: &Path) -> Option<Foreign> {
    let extension = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match extension.as_str() {
        "bin" | "pt" | "pth" | "ckpt" | "pkl" | "pickle" => PYTORCH,
        "npz" | "npy" => NUMPY,
        "gguf" | "ggml" => GGUF,
        "onnx" => ONNX,
        "h5" | "hdf5" | "keras" => HDF5,
        "pb" | "tflite" | "msgpack" => TENSORFLOW,
        "zip" => ZIP,
        "tar" | "gz" | "tgz" | "zst" | "xz" | "bz2" | "7z" => ARCHIVE,
        _ => return None,
    })
}

fn recognise(path: &Path, start: &[u8]) -> Option<Foreign> {
    // Zip is the container of several formats, which differ in their extension.
    if start.starts_with(b"PK\x03\x04") {
        return by_extension(path).or(Some(ZIP));
    }
    let by_magic = MAGICS.into_iter().find(|(magic, _)| start.starts_with(magic));
    by_magic.map(|(_, foreign)| foreign).or_else(|| by_extension(path))
}

/// The error for a file that begins with `start` and is not safetensors, if it is a format that is known here.
pub(crate) fn refuse(path: &Path, start: &[u8]) -> Option<Error> {
    let foreign = recognise(path, start)?;
    Some(fault(path, format_args!("not a safetensors file but {}", foreign.what), Some(foreign.advice)))
}
