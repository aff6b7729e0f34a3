//! Folders: shards, indices, other files, links; the whole folder or nothing.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use enec_core::checkpoint::{self, Options, Report, Step};
use enec_core::{Error, Result};

use crate::backend::codec;
use crate::sample::{Counter, Place, file, message, names, options, sample, weights};

const INDEX: &str = r#"{"metadata": {"total_size": 12345},
  "weight_map": {"x": "model-00001-of-00002.safetensors", "y": "model-00002-of-00002.safetensors"}}
"#;

fn compress(input: &Path, output: &Path) -> Result<Report> {
    checkpoint::compress(&codec(), input, output, &options(), &mut ())
}

fn force() -> Options {
    Options { force: true, ..options() }
}

fn shard(name: &str, seed: u64) -> Vec<u8> {
    file(&[weights(name, "BF16", &[5000], seed)], r#"{"format":"pt"}"#, "  ")
}

/// A folder in Hugging Face layout.
fn model(place: &Place, name: &str) -> PathBuf {
    place.write(&format!("{name}/model-00001-of-00002.safetensors"), shard("x", 1));
    place.write(&format!("{name}/model-00002-of-00002.safetensors"), sample());
    place.write(&format!("{name}/model.safetensors.index.json"), INDEX);
    place.write(&format!("{name}/config.json"), "{}");
    place.write(&format!("{name}/.gitattributes"), "*.safetensors filter=lfs\n");
    place.write(&format!("{name}/empty.txt"), "");
    place.write(&format!("{name}/onnx/model.onnx"), vec![3; 100_000]);
    place.write(&format!("{name}/vae/model.safetensors"), shard("z", 3));
    fs::create_dir_all(place.path(&format!("{name}/nothing/in/here"))).unwrap();
    place.path(name)
}

/// Every file and folder below a folder, with the content of the files.
fn tree(folder: &Path) -> BTreeMap<PathBuf, Option<Vec<u8>>> {
    let mut tree = BTreeMap::new();
    let mut waiting = vec![folder.to_owned()];
    while let Some(path) = waiting.pop() {
        for entry in fs::read_dir(&path).unwrap() {
            let path = entry.unwrap().path();
            let relative = path.strip_prefix(folder).unwrap().to_owned();
            if path.is_dir() {
                tree.insert(relative, None);
                waiting.push(path);
            } else {
                tree.insert(relative, Some(fs::read(path).unwrap()));
            }
        }
    }
    tree
}

#[test]
fn a_whole_folder_there_and_back() {
    let place = Place::new();
    let input = model(&place, "model");
    let (small, back) = (place.path("small"), place.path("back"));
    let mut progress = Counter::new();
    let report = checkpoint::compress(&codec(), &input, &small, &options(), &mut progress).unwrap();
    assert_eq!((report.files, report.copied_files, report.tensors), (3, 5, 20));
    assert_eq!(progress.total, progress.done);
    assert_eq!(progress.steps.iter().filter(|&&step| step == Step::Copy).count(), 5);

    let (before, after) = (tree(&input), tree(&small));
    assert!(before.keys().eq(after.keys()));
    for (path, bytes) in &before {
        let is_shard = path.extension().is_some_and(|extension| extension == "safetensors");
        assert_eq!(&after[path] != bytes, is_shard, "{}", path.display());
    }
    let size = |tree: &BTreeMap<_, Option<Vec<u8>>>| tree.values().flatten().map(Vec::len).sum::<usize>() as u64;
    assert_eq!((report.input_bytes, report.output_bytes), (size(&before), size(&after)));

    let mut progress = Counter::new();
    checkpoint::decompress(&codec(), &small, &back, &options(), &mut progress).unwrap();
    assert_eq!(progress.total, progress.done);
    assert!(tree(&back) == before);
    assert_eq!(place.names(), ["back", "model", "small"]);
    let alone = place.path("alone");
    compress(&input.join("vae/model.safetensors"), &alone).unwrap();
    assert_eq!(after[Path::new("vae/model.safetensors")], Some(fs::read(alone).unwrap()), "as a file by itself");
}

#[cfg(unix)]
#[test]
fn modes_and_times_are_kept() {
    use std::os::unix::fs::PermissionsExt;
    let place = Place::new();
    let input = model(&place, "model");
    let time = |seconds: u64| SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000 + seconds);
    let marked = ["nothing/in/here", "nothing/in", "config.json", "vae/model.safetensors", "vae", ""];
    for (seconds, name) in (0..).zip(marked) {
        let path = input.join(name);
        let mode = if path.is_dir() { 0o755 - 0o010 } else { 0o444 };
        fs::set_permissions(&path, fs::Permissions::from_mode(mode)).unwrap();
        File::open(&path).unwrap().set_modified(time(seconds)).unwrap();
    }
    let output = place.path("small");
    compress(&input, &output).unwrap();
    for (seconds, name) in (0..).zip(marked) {
        let metadata = output.join(name).metadata().unwrap();
        assert_eq!(metadata.modified().unwrap(), time(seconds), "{name}");
        let mode = if metadata.is_dir() { 0o745 } else { 0o444 };
        assert_eq!(metadata.permissions().mode() & 0o777, mode, "{name}");
    }
}

#[cfg(unix)]
#[test]
fn a_snapshot_of_links_becomes_a_folder_of_files() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    place.write("hub/blobs/aaaa", shard("x", 1));
    place.write("hub/blobs/bbbb", sample());
    place.write("hub/blobs/cccc", INDEX);
    place.write("hub/elsewhere/tokenizer.json", "{}");
    let snapshot = place.path("hub/snapshots/0123");
    fs::create_dir_all(&snapshot).unwrap();
    symlink("../../blobs/aaaa", snapshot.join("model-00001-of-00002.safetensors")).unwrap();
    symlink("../../blobs/bbbb", snapshot.join("model-00002-of-00002.safetensors")).unwrap();
    symlink("../../blobs/cccc", snapshot.join("model.safetensors.index.json")).unwrap();
    symlink("../../elsewhere", snapshot.join("tokenizer")).unwrap();
    // Twice the same folder is no loop.
    symlink("../../elsewhere", snapshot.join("tokenizer-again")).unwrap();
    let (small, back) = (place.path("small"), place.path("back"));
    let link = place.path("link-to-snapshot");
    symlink(&snapshot, &link).unwrap();
    compress(&link, &small).unwrap();
    checkpoint::decompress(&codec(), &small, &back, &options(), &mut ()).unwrap();
    assert!(tree(&back) == tree(&snapshot));
    for folder in [&small, &back] {
        for name in names(folder) {
            assert!(!folder.join(&name).symlink_metadata().unwrap().is_symlink(), "{name}");
        }
    }
    assert_eq!(names(&place.path("hub/blobs")), ["aaaa", "bbbb", "cccc"]);
}

#[cfg(unix)]
#[test]
fn links_without_an_end_or_a_file_are_refused() {
    use std::os::unix::fs::symlink;
    let place = Place::new();
    let input = model(&place, "model");
    symlink("..", input.join("onnx/loop")).unwrap();
    let error = message(compress(&input, &place.path("out")));
    assert!(error.starts_with("model/onnx/loop: a symbolic link leads back to"), "{error}");
    fs::remove_file(input.join("onnx/loop")).unwrap();
    symlink("itself", input.join("itself")).unwrap();
    let error = message(compress(&input, &place.path("out")));
    assert!(error.starts_with("model/itself: a symbolic link to `itself`, which cannot be read"), "{error}");
    fs::remove_file(input.join("itself")).unwrap();
    symlink("../../blobs/gone", input.join("gone.bin")).unwrap();
    let error = message(compress(&input, &place.path("out")));
    assert!(
        error.starts_with("model/gone.bin: a symbolic link to `../../blobs/gone`, which cannot be read"),
        "{error}"
    );
    fs::remove_file(input.join("gone.bin")).unwrap();
    let _socket = std::os::unix::net::UnixListener::bind(input.join("socket")).unwrap();
    assert_eq!(message(compress(&input, &place.path("out"))), "model/socket: neither a file nor a folder");
    assert_eq!(place.names(), ["model"]);
}

#[test]
fn an_index_must_not_leave_the_folder_and_its_files_must_be_there() {
    let place = Place::new();
    place.write("outside.safetensors", shard("x", 1));
    let input = model(&place, "model");
    let indexed = |name: &str| {
        place.write("model/model.safetensors.index.json", format!(r#"{{"weight_map": {{"x": {name:?}}}}}"#));
        compress(&input, &place.path("out"))
    };
    let absolute = place.path("outside.safetensors");
    for name in [
        "../outside.safetensors",
        "vae/../../outside.safetensors",
        "vae/../vae/model.safetensors",
        "./model-00001-of-00002.safetensors/..",
        absolute.to_str().unwrap(),
        "/etc/passwd",
        "..",
        "",
    ] {
        let error = indexed(name);
        assert!(matches!(error, Err(Error::File { .. })), "{name}");
        let error = message(error);
        assert!(error.starts_with("model/model.safetensors.index.json: the index names "), "{error}");
        assert!(error.ends_with(", which leaves the folder"), "{error}");
    }
    assert_eq!(
        message(indexed("model-00003-of-00003.safetensors")),
        "model/model.safetensors.index.json: the index names `model-00003-of-00003.safetensors`, which is missing"
    );
    assert_eq!(place.names(), ["model", "outside.safetensors"]);
    indexed("vae/model.safetensors").unwrap();
    // An index below counts from where it lies.
    place.write("model/vae/model.safetensors.index.json", r#"{"weight_map": {"z": "model.safetensors"}}"#);
    checkpoint::compress(&codec(), &input, &place.path("out"), &force(), &mut ()).unwrap();
    place.write("model/model.safetensors.index.json", "{}");
    assert!(message(compress(&input, &place.path("out2"))).contains("not an index of a checkpoint"));
}

#[test]
fn an_index_of_another_format_is_only_copied() {
    let place = Place::new();
    let input = model(&place, "model");
    place.write("model/pytorch_model.bin.index.json", r#"{"weight_map": {"x": "pytorch_model-00001-of-00002.bin"}}"#);
    place.write("model/search.index.json", "[1, 2, 3]");
    compress(&input, &place.path("out")).unwrap();
    place.write("model/pytorch_model.bin.index.json", r#"{"weight_map": {"x": "../../pytorch_model.bin"}}"#);
    assert!(message(compress(&input, &place.path("out2"))).contains("leaves the folder"));
}

#[test]
fn folders_without_safetensors_are_refused() {
    let place = Place::new();
    fs::create_dir(place.path("empty")).unwrap();
    assert_eq!(
        message(compress(&place.path("empty"), &place.path("out"))),
        "empty: no `.safetensors` file in this folder"
    );
    place.write("other/pytorch_model.bin", "PK");
    let error = compress(&place.path("other"), &place.path("out"));
    assert!(error.as_ref().unwrap_err().hint().unwrap().contains("save_file"));
    assert!(message(error).contains("PyTorch"));
    assert_eq!(place.names(), ["empty", "other"]);
}

#[test]
fn a_folder_appears_whole_or_not_at_all() {
    let place = Place::new();
    let input = model(&place, "model");
    let total = {
        let mut progress = Counter::new();
        checkpoint::compress(&codec(), &input, &place.path("whole"), &options(), &mut progress).unwrap();
        progress.total
    };
    for share in 0..=10 {
        let mut progress = Counter { cancel_at: total * share / 10, ..Counter::new() };
        let result = checkpoint::compress(&codec(), &input, &place.path("out"), &options(), &mut progress);
        assert!(matches!(result, Err(Error::Cancelled)), "{share}");
        assert_eq!(place.names(), ["model", "whole"]);
    }
    // One damaged shard among sound ones.
    let damaged = place.path("whole/vae/model.safetensors");
    let mut bytes = fs::read(&damaged).unwrap();
    let last = bytes.len() - 5000;
    bytes[last] ^= 1;
    fs::write(&damaged, &bytes).unwrap();
    let error = checkpoint::decompress(&codec(), &place.path("whole"), &place.path("out"), &options(), &mut ());
    assert!(message(error).starts_with("whole/vae/model.safetensors: tensor `z`: "));
    // One that is compressed already, and one that is not.
    place.write("model/vae/model.safetensors", &bytes);
    assert!(
        message(compress(&input, &place.path("out")))
            .ends_with("model/vae/model.safetensors: already compressed by enec")
    );
    place.write("whole/vae/model.safetensors", shard("z", 3));
    let error = checkpoint::decompress(&codec(), &place.path("whole"), &place.path("out"), &options(), &mut ());
    assert!(message(error).ends_with("not compressed by enec"));
    assert_eq!(place.names(), ["model", "whole"]);
}

#[test]
fn an_old_folder_is_replaced_as_a_whole_and_only_if_it_is_a_checkpoint() {
    let place = Place::new();
    let input = model(&place, "model");
    place.write("old/stale.safetensors", "old");
    place.write("old/stale.txt", "old");
    place.write("home/diary.txt", "precious");
    place.write("file", "precious");
    fs::create_dir(place.path("empty")).unwrap();
    assert!(message(compress(&input, &place.path("old"))).starts_with("`old` exists already"));
    for name in ["old", "empty"] {
        checkpoint::compress(&codec(), &input, &place.path(name), &force(), &mut ()).unwrap();
        assert!(tree(&place.path(name)).keys().eq(tree(&input).keys()));
    }
    for (name, why) in [("home", "holds no safetensors files"), ("file", "is no folder")] {
        let error = checkpoint::compress(&codec(), &input, &place.path(name), &force(), &mut ());
        assert!(message(error).contains(why), "{name}");
    }
    assert_eq!(place.names(), ["empty", "file", "home", "model", "old"]);
    assert_eq!(fs::read(place.path("home/diary.txt")).unwrap(), b"precious");
}

#[test]
fn verification_reports_every_damage_of_a_folder() {
    let place = Place::new();
    let input = model(&place, "model");
    let small = place.path("small");
    compress(&input, &small).unwrap();
    let verify = |against: Option<&Path>| checkpoint::verify(&codec(), &small, against, &options(), &mut ());
    let sound = verify(Some(&input)).unwrap();
    assert_eq!((sound.files, sound.tensors, sound.damages), (3, 20, vec![]));

    fs::write(small.join("config.json"), "{ }").unwrap();
    fs::write(small.join("extra.txt"), "").unwrap();
    fs::remove_file(small.join("empty.txt")).unwrap();
    let shard = small.join("model-00001-of-00002.safetensors");
    let mut bytes = fs::read(&shard).unwrap();
    bytes[9] = b'!';
    fs::write(&shard, bytes).unwrap();
    let vae = small.join("vae/model.safetensors");
    let mut bytes = fs::read(&vae).unwrap();
    let last = bytes.len() - 5000;
    bytes[last] ^= 1;
    fs::write(&vae, bytes).unwrap();

    let damages = |against| {
        let damages = verify(against).unwrap().damages;
        let short = |path: &Path| path.strip_prefix(&small).unwrap().to_str().unwrap().to_owned();
        let mut found = Vec::from_iter(damages.iter().map(|damage| (short(&damage.file), damage.tensor.clone())));
        found.sort();
        found
    };
    let file = |name: &str| (name.to_owned(), None);
    let hashes = [file("model-00001-of-00002.safetensors"), ("vae/model.safetensors".to_owned(), Some("z".to_owned()))];
    assert_eq!(damages(None), hashes);
    let mut all = Vec::from(hashes);
    all.extend([file("config.json"), file("empty.txt"), file("extra.txt")]);
    all.sort();
    assert_eq!(damages(Some(&input)), all);
    let one = checkpoint::verify(&codec(), &small, Some(&vae), &options(), &mut ());
    assert!(message(one).contains("one is a file and the other a folder"));
}
