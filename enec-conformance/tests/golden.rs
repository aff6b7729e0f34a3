//! The writer of golden streams: what is frozen stays.

#![allow(clippy::unwrap_used, reason = "helpers of tests")]

use std::fs;
use std::path::PathBuf;

use enec_conformance::golden::{Golden, Manifest};
use enec_conformance::inputs::Input;

/// A folder of its own, deleted when dropped.
struct Folder(PathBuf);

impl Folder {
    fn new(name: &str) -> Self {
        let path = std::env::temp_dir().join(format!("enec-golden-{}-{name}", std::process::id()));
        let _ = fs::remove_dir_all(&path);
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

fn golden(name: &str, seed: u64) -> Golden {
    Golden {
        name: name.into(),
        covers: "a test".into(),
        dtype: "BF16".into(),
        elements: 2049,
        input: Input::Weights { seed, top: 127, zeros: 0 },
        windows: Some((127, 3)),
        symbols: None,
        forced: false,
        input_sha256: String::new(),
        stream_sha256: String::new(),
    }
}

fn manifest(streams: &[Golden]) -> Manifest {
    Manifest { version: 1, streams: streams.to_vec() }
}

#[test]
fn what_is_missing_is_written_and_nothing_else() {
    let folder = Folder::new("missing");
    assert_eq!(manifest(&[golden("a", 1)]).write(&folder.0).unwrap(), 1);
    assert_eq!(manifest(&[golden("a", 1)]).write(&folder.0).unwrap(), 0);
    assert_eq!(manifest(&[golden("a", 1), golden("b", 2)]).write(&folder.0).unwrap(), 1);
}

#[test]
fn frozen_streams_and_entries_stay() {
    let folder = Folder::new("frozen");
    let both = [golden("a", 1), golden("b", 2)];
    manifest(&both).write(&folder.0).unwrap();
    let files = || ["a.enec", "b.enec", "manifest.json"].map(|name| fs::read(folder.0.join(name)).unwrap());
    let frozen = files();

    let described_otherwise = Golden { covers: "another test".into(), ..golden("b", 2) };
    for (changed, word) in [
        (vec![golden("a", 1), golden("b", 3)], "b.enec"),
        (vec![golden("a", 1)], "`b`"),
        (vec![golden("a", 1), described_otherwise], "`b`"),
    ] {
        let error = manifest(&changed).write(&folder.0).unwrap_err().to_string();
        assert!(error.contains(word) && error.contains("frozen"), "{error}");
        assert_eq!(files(), frozen, "a refused write changed something");
    }

    let mut damaged = frozen[0].clone();
    damaged[100] ^= 1;
    fs::write(folder.0.join("a.enec"), &damaged).unwrap();
    assert!(manifest(&both).write(&folder.0).is_err(), "the damaged file is not silently replaced");
    assert_eq!(fs::read(folder.0.join("a.enec")).unwrap(), damaged);
}
