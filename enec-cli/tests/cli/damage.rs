//! Damaged files: each fault is named, what is intact stays readable, and nothing is restored.

use std::fs;
use std::path::Path;

use crate::checkpoint::{Tensor, file, tensors, write};
use crate::program::{Run, command, compress, decompress, enec, names};

/// Flips the lowest bit of a byte.
fn flip(path: &Path, at: usize) {
    let mut bytes = fs::read(path).unwrap();
    bytes[at] ^= 1;
    fs::write(path, bytes).unwrap();
}

/// Where a tensor lies in a file.
fn position(path: &Path, tensor: &str) -> std::ops::Range<usize> {
    let bytes = fs::read(path).unwrap();
    let text = usize::try_from(u64::from_le_bytes(*bytes.first_chunk().unwrap())).unwrap();
    let header: serde_json::Value = serde_json::from_slice(&bytes[8..8 + text]).unwrap();
    let offset =
        |index: usize| 8 + text + usize::try_from(header[tensor]["data_offsets"][index].as_u64().unwrap()).unwrap();
    offset(0)..offset(1)
}

fn extract(input: &Path, tensor: &str, output: &Path) -> Run {
    Run::of(command(["extract", "--tensor", tensor, "--force", "-o"]).arg(output).arg(input))
}

#[test]
fn every_damaged_tensor_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (original, damaged) = (path("original"), path("damaged"));
    write(&original);
    compress(&original, &damaged, &[]).success();
    // A byte plane, a stream's header, and a carried tensor.
    flip(&damaged, position(&damaged, "layer.0.weight").start + 2000);
    flip(&damaged, position(&damaged, "layer.2.weight").start + 20);
    flip(&damaged, position(&damaged, "codes").start);

    let run = enec(["verify".into(), damaged.clone()]).failure(1);
    for tensor in ["`layer.0.weight`", "`layer.2.weight`", "`codes`"] {
        assert_eq!(run.stderr.matches(tensor).count(), 1, "{tensor}: {run:#?}");
    }
    for tensor in ["`layer.1.weight`", "`layer.0.bias`", "`steps`"] {
        assert!(!run.stderr.contains(tensor), "{tensor}: {run:#?}");
    }

    let run = enec(["verify".into(), damaged.clone(), "--json".into()]);
    assert_eq!(run.code, Some(1));
    assert_eq!(run.json()["intact"], false);
    let damages = run.json()["damages"].as_array().unwrap().clone();
    assert_eq!(damages.len(), 3, "{damages:#?}");
    assert!(damages.iter().all(|damage| damage["file"].as_str() == damaged.to_str()));
    assert!(damages.iter().any(|damage| damage["tensor"] == "codes"));

    // Those that are intact can be read, the others cannot.
    for (name, index) in [("layer.1.weight", 2), ("layer.0.bias", 1), ("steps", 4)] {
        extract(&damaged, name, &path("bytes")).success();
        assert_eq!(fs::read(path("bytes")).unwrap(), tensors()[index].bytes(), "{name}");
    }
    fs::remove_file(path("bytes")).unwrap();
    extract(&damaged, "layer.0.weight", &path("bytes")).failure(1).says("`layer.0.weight`").says("hint: ");
    decompress(&damaged, &path("restored"), &[]).failure(1).says("tensor `");
    assert_eq!(names(folder.path()), ["damaged", "original"]);
}

#[test]
fn a_flip_anywhere_in_a_small_file_is_found() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("original"), file(&[Tensor::weights("w", &[2100]), Tensor::new("c", "U8", &[2], vec![7, 8])]))
        .unwrap();
    compress(&path("original"), &path("compressed"), &[]).success();
    let intact = fs::read(path("compressed")).unwrap();
    // Coprime with the lengths of everything in the file: all kinds of places are met.
    for at in (0..intact.len()).step_by(97).chain([0, 7, 8, intact.len() - 1]) {
        let mut bytes = intact.clone();
        bytes[at] ^= 1;
        fs::write(path("compressed"), bytes).unwrap();
        let run = enec(["verify".into(), path("compressed")]).failure(1);
        assert!(!run.stderr.contains("panicked"), "byte {at}: {run:#?}");
    }
}

#[test]
fn a_damaged_shard_does_not_hide_another() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::create_dir(path("original")).unwrap();
    for name in ["a.safetensors", "b.safetensors", "c.safetensors"] {
        fs::write(path("original").join(name), file(&[Tensor::weights(name, &[4096])])).unwrap();
    }
    compress(&path("original"), &path("compressed"), &[]).success();
    flip(&path("compressed/a.safetensors"), 3);
    let at = position(&path("compressed/c.safetensors"), "c.safetensors").end - 100;
    flip(&path("compressed/c.safetensors"), at);
    enec(["verify".into(), path("compressed")]).failure(1).says("a.safetensors: ").says("tensor `c.safetensors`");
    Run::of(command(["verify"]).arg(path("compressed")).arg("--against").arg(path("original")))
        .failure(1)
        .says("a.safetensors: ")
        .says("tensor `c.safetensors`");
}
