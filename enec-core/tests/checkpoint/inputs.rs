//! Inputs that are not what they should be: refused, with what would work.

use std::fs;

use enec_core::Error;
use enec_core::checkpoint::{self, CheckpointFile};

use crate::backend::codec;
use crate::sample::{Place, file, message, options, sample, tensor};

/// Message and hint for a file of this name and content.
fn refused(name: &str, bytes: &[u8]) -> (String, String) {
    let place = Place::new();
    let input = place.write(name, bytes);
    let compressed = checkpoint::compress(&codec(), &input, &place.path("out"), &options(), &mut ());
    let error = compressed.unwrap_err();
    assert!(error.is_input(), "{error}");
    let hint = error.hint().unwrap_or_default().to_owned();
    assert_eq!(place.names(), [name]);
    (message::<()>(Err(error)), hint)
}

#[test]
fn other_formats_are_recognised() {
    for (name, bytes, what, advice) in [
        ("a.bin", &b"PK\x03\x04 zipped pickle"[..], "PyTorch", "save_file"),
        ("a.pt", b"\x80\x02}q\x00.", "PyTorch", "save_file"),
        ("a.npz", b"PK\x03\x04", "NumPy", "save_file"),
        ("a.npy", b"\x93NUMPY\x01\x00v\x00{'descr'", "NumPy", "save_file"),
        ("a.zip", b"PK\x03\x04", "zip archive", "unpack"),
        ("a", b"PK\x03\x04", "zip archive", "unpack"),
        ("a.gguf", b"GGUF\x03\x00\x00\x00\x00\x00\x00\x00", "GGUF", "safetensors"),
        ("renamed.safetensors", b"GGUF\x03\x00\x00\x00\x00\x00\x00\x00", "GGUF", "safetensors"),
        ("a.onnx", b"\x08\x07\x12\x07pytorch", "ONNX", "exported"),
        ("a.h5", b"\x89HDF\r\n\x1a\n\x00\x00", "HDF5", "safetensors"),
        ("a.tflite", b"\x1c\x00\x00\x00TFL3", "TensorFlow", "safetensors"),
        ("a.msgpack", b"\x81\xa6params", "Flax", "safetensors"),
        ("a.tar.gz", b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x00\x03", "archive", "unpack"),
        (
            "a.safetensors",
            b"version https://git-lfs.github.com/spec/v1\noid sha256:00",
            "Git LFS pointer",
            "git lfs pull",
        ),
        ("b.safetensors", b"<!DOCTYPE html><html>", "web page", "download"),
        ("a.enec", b"\x89ENEC\r\n\x1a\n\x01\x00\x01\x01", "bare ENEC stream", "library"),
    ] {
        let (message, hint) = refused(name, bytes);
        assert!(message.starts_with(&format!("{name}: not a safetensors file but ")), "{message}");
        assert!(message.contains(what), "{message}");
        assert!(hint.contains(advice), "{hint}");
    }
}

#[test]
fn what_is_no_format_at_all_is_refused_with_the_reason() {
    assert_eq!(
        refused("a.safetensors", b"").0,
        "a.safetensors: not a safetensors file: the file has 0 bytes, but a safetensors file starts with 8 bytes of header length"
    );
    let (cut, _) = refused("a.safetensors", &sample()[..1000]);
    assert!(cut.starts_with("a.safetensors: not a safetensors file: a header of "), "{cut}");
    let mut hole = file(&[tensor("a", "U8", &[4], vec![0; 4])], "", "");
    hole.push(0);
    assert_eq!(
        refused("a.safetensors", &hole).0,
        "a.safetensors: not a safetensors file: the tensors take 4 bytes, but 5 bytes follow the header"
    );
    // gzip and pickle by name only: a header's length can begin like them.
    let mut damaged = sample();
    damaged[..8].copy_from_slice(&0x0008_8b1f_u64.to_le_bytes());
    assert!(refused("a.safetensors", &damaged).0.contains("not a safetensors file: "));
}

#[test]
fn compressed_input_is_refused_and_so_is_original_input_for_restoring() {
    let place = Place::new();
    let original = place.write("original", sample());
    let small = place.path("small");
    checkpoint::compress(&codec(), &original, &small, &options(), &mut ()).unwrap();
    let again = checkpoint::compress(&codec(), &small, &place.path("out"), &options(), &mut ());
    assert_eq!(message(again), "small: already compressed by enec");
    let restored = checkpoint::decompress(&codec(), &original, &place.path("out"), &options(), &mut ());
    assert_eq!(message(restored), "original: not compressed by enec");
    let verified = checkpoint::verify(&codec(), &original, None, &options(), &mut ());
    assert_eq!(message(verified), "original: not compressed by enec");
    assert_eq!(place.names(), ["original", "small"]);
    // One key of ours is enough, whoever wrote it.
    let marked = file(&[], r#"{"enec.note": "mine"}"#, "");
    let error = CheckpointFile::open(&place.write("marked", marked));
    assert_eq!(message(error), "marked: metadata entry `enec.version` is missing");
    let newer = file(&[], r#"{"enec.version": "2"}"#, "");
    assert!(message(CheckpointFile::open(&place.write("newer", newer))).contains("newer version"));
}

#[test]
fn an_input_must_exist_and_be_a_file() {
    let place = Place::new();
    let missing = checkpoint::compress(&codec(), &place.path("missing"), &place.path("out"), &options(), &mut ());
    assert!(missing.as_ref().is_err_and(Error::is_input), "{missing:?}");
    assert_eq!(message(missing), "missing: no such file or folder");
    #[cfg(unix)]
    {
        let _socket = std::os::unix::net::UnixListener::bind(place.path("socket")).unwrap();
        let error = CheckpointFile::open(&place.path("socket"));
        assert_eq!(message(error), "socket: not a regular file");
        fs::remove_file(place.path("socket")).unwrap();
    }
}
