//! Folders: shards, links, and that one appears whole or not at all.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use crate::checkpoint::{Tensor, file, write_folder};
use crate::program::{Run, command, compress, decompress, enec, names};

/// All files below a folder with their bytes.
fn contents(folder: &Path) -> BTreeMap<PathBuf, Vec<u8>> {
    let mut files = BTreeMap::new();
    let mut folders = vec![folder.to_owned()];
    while let Some(next) = folders.pop() {
        for entry in next.read_dir().unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                files.insert(path.strip_prefix(folder).unwrap().to_owned(), fs::read(&path).unwrap());
            }
        }
    }
    files
}

#[test]
fn a_folder_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_folder(&path("original"));
    // As a shell completes it.
    compress(&path("original/"), &path("compressed/"), &[]).success();
    decompress(&path("compressed"), &path("restored"), &[]).success();
    let (original, compressed) = (contents(&path("original")), contents(&path("compressed")));
    assert_eq!(original, contents(&path("restored")));
    assert!(original.keys().eq(compressed.keys()));
    for (name, bytes) in &original {
        let is_shard = name.extension().is_some_and(|extension| extension == "safetensors");
        assert_eq!(is_shard, compressed[name] != *bytes, "{}", name.display());
    }
    assert_eq!(names(folder.path()), ["compressed", "original", "restored"]);

    enec(["verify".into(), path("compressed")]).success().says("intact");
    Run::of(command(["verify"]).arg(path("compressed")).arg("--against").arg(path("original"))).success().says("same");
    Run::of(command(["extract", "--tensor", "second.weight", "-o"]).arg(path("bytes")).arg(path("compressed")))
        .success();
    assert_eq!(fs::read(path("bytes")).unwrap(), Tensor::weights("second.weight", &[50, 300]).bytes());
}

#[cfg(unix)]
#[test]
fn a_snapshot_of_the_hub_cache_is_followed() {
    use std::os::unix::fs::symlink;

    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (snapshot, blobs) = (path("models--someone--model/snapshots/0123abcd"), path("models--someone--model/blobs"));
    write_folder(&path("original"));
    fs::create_dir_all(&blobs).unwrap();
    for (number, (name, bytes)) in contents(&path("original")).into_iter().enumerate() {
        let up = "../".repeat(name.components().count() + 1);
        let link = snapshot.join(name);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        fs::write(blobs.join(number.to_string()), bytes).unwrap();
        symlink(format!("{up}blobs/{number}"), link).unwrap();
    }
    compress(&snapshot, &path("compressed"), &[]).success();
    decompress(&path("compressed"), &path("restored"), &[]).success();
    assert_eq!(contents(&path("original")), contents(&path("restored")));
    for name in contents(&path("compressed")).keys() {
        assert!(!path("compressed").join(name).is_symlink(), "{}", name.display());
    }

    // A link that leads nowhere, as when a file was not fetched.
    fs::remove_file(blobs.join("1")).unwrap();
    compress(&snapshot, &path("again"), &[]).failure(1).says("link");
    assert!(!path("again").exists());
}

#[test]
fn a_folder_appears_whole_or_not_at_all() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_folder(&path("original"));
    let last = path("original/model-00002-of-00002.safetensors");
    let intact = fs::read(&last).unwrap();
    fs::write(&last, &intact[..intact.len() - 1]).unwrap();
    compress(&path("original"), &path("compressed"), &[]).failure(1).says("model-00002-of-00002.safetensors");
    assert_eq!(names(folder.path()), ["original"]);

    fs::write(&last, &intact).unwrap();
    compress(&path("original"), &path("compressed"), &[]).success();
    let shard = path("compressed/model-00002-of-00002.safetensors");
    let mut bytes = fs::read(&shard).unwrap();
    *bytes.last_mut().unwrap() ^= 1;
    fs::write(&shard, bytes).unwrap();
    decompress(&path("compressed"), &path("restored"), &[]).failure(1).says("model-00002-of-00002.safetensors");
    assert_eq!(names(folder.path()), ["compressed", "original"]);
}

#[test]
fn a_folder_replaces_another_only_by_force() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_folder(&path("original"));
    compress(&path("original"), &path("compressed"), &[]).success();
    fs::write(path("compressed/left-over.txt"), "").unwrap();
    compress(&path("original"), &path("compressed"), &[]).failure(2).says("--force");
    assert!(path("compressed/left-over.txt").exists());
    compress(&path("original"), &path("compressed"), &["--force"]).success();
    assert!(!path("compressed/left-over.txt").exists());

    // Not even by force: a folder that holds no checkpoint, and a file by a folder.
    fs::create_dir(path("home")).unwrap();
    fs::write(path("home/letter.txt"), "").unwrap();
    compress(&path("original"), &path("home"), &["--force"]).failure(2);
    assert_eq!(names(&path("home")), ["letter.txt"]);
    fs::write(path("file"), "").unwrap();
    compress(&path("original"), &path("file"), &["--force"]).failure(2);
    assert_eq!(names(folder.path()), ["compressed", "file", "home", "original"]);
}

#[test]
fn an_index_may_not_leave_the_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_folder(&path("original"));
    fs::write(path("outside.safetensors"), file(&[])).unwrap();
    for name in ["../outside.safetensors", "/outside.safetensors", "model-00003.safetensors"] {
        let index = serde_json::json!({"weight_map": {"x": name}});
        fs::write(path("original/model.safetensors.index.json"), index.to_string()).unwrap();
        compress(&path("original"), &path("compressed"), &[]).failure(1).says(name).says("index");
        assert!(!path("compressed").exists());
    }
}
