//! Compressing and restoring single files.

use std::collections::BTreeSet;
use std::fs;
use std::time::{Duration, SystemTime};

use crate::checkpoint::{SAMPLE_SHA256, Tensor, file, sample, tensors, write};
use crate::program::{Run, command, compress, decompress, enec, names, sha256};

#[test]
fn the_sample_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let (compressed, restored) = (folder.path().join("a.safetensors"), folder.path().join("b.safetensors"));
    compress(&sample(), &compressed, &[]).success();
    decompress(&compressed, &restored, &[]).success();
    assert_eq!(sha256(&restored), SAMPLE_SHA256);
    let (before, after) = (sample().metadata().unwrap().len(), compressed.metadata().unwrap().len());
    assert!(after * 4 < before * 3, "{before} bytes have become {after}");
    assert_eq!(names(folder.path()), ["a.safetensors", "b.safetensors"]);
}

#[test]
fn every_kind_of_tensor_comes_back() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let strange = [
        Tensor::weights("a name with \u{1b}[31m and \"quotes\"\n", &[2048]),
        Tensor::new("f32", "F32", &[2, 2048], (0..4096_u32).flat_map(|i| (1.0 + i as f32).to_le_bytes()).collect()),
        Tensor::new("f16", "F16", &[4100], (0..4100_u16).flat_map(|i| (0x3000 + i % 0x400).to_le_bytes()).collect()),
        Tensor::new("one", "F32", &[1], 1_f32.to_le_bytes().to_vec()),
    ];
    let cases = [
        ("everything", tensors()),
        ("strange", strange.to_vec()),
        ("empty", vec![]),
        ("noise", vec![Tensor::noise("n", &[5000])]),
    ];
    for (name, tensors) in cases {
        let (original, compressed, restored) = (path(name), path("compressed"), path("restored"));
        fs::write(&original, file(&tensors)).unwrap();
        compress(&original, &compressed, &["--force"]).success();
        decompress(&compressed, &restored, &["--force"]).success();
        assert_eq!(fs::read(&original).unwrap(), fs::read(&restored).unwrap(), "{name}");
    }
}

#[test]
fn the_output_depends_on_nothing_but_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let mut outputs = Vec::new();
    for (number, more) in [
        &[][..],
        &[],
        &["--threads", "1"],
        &["--threads", "2"],
        &["--threads", "7"],
        &["--no-verify"],
        &["--backend", "auto"],
    ]
    .into_iter()
    .enumerate()
    {
        let output = folder.path().join(number.to_string());
        compress(&sample(), &output, more).success();
        outputs.push(sha256(&output));
    }
    assert!(outputs.iter().all(|output| *output == outputs[0]), "{outputs:?}");
}

#[test]
fn the_codec_is_chosen() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let sizes = ["auto", "enec", "cascade"].map(|codec| {
        let (compressed, restored) = (path(codec), path("restored"));
        compress(&sample(), &compressed, &["--codec", codec]).success();
        decompress(&compressed, &restored, &["--force"]).success();
        assert_eq!(sha256(&restored), SAMPLE_SHA256, "{codec}");
        let inspection = enec(["inspect".into(), compressed.clone(), "--json".into()]).success().json();
        let streams: Vec<_> =
            inspection["tensors"].as_array().unwrap().iter().map(|tensor| &tensor["stream"]).collect();
        let codecs: BTreeSet<&str> = streams.iter().filter_map(|stream| stream["codec"].as_str()).collect();
        match codec {
            "auto" => assert!(codecs.contains("cascade")),
            codec => assert_eq!(codecs, BTreeSet::from([codec])),
        }
        // Of the original it is told what it would become.
        let arguments = ["inspect".into(), sample(), "--json".into(), "--codec".into(), codec.into()];
        let before = enec(arguments).success().json();
        assert_eq!(before["compressed_bytes"], inspection["compressed_bytes"], "{codec}");
        compressed.metadata().unwrap().len()
    });
    let [auto, enec_size, cascade] = sizes;
    assert!(auto <= enec_size && auto <= cascade && cascade < enec_size, "{sizes:?}");
    // The default, and what is no codec.
    compress(&sample(), &path("default"), &[]).success();
    assert_eq!(sha256(&path("default")), sha256(&path("auto")));
    let refused = compress(&sample(), &path("other"), &["--codec", "zip"]);
    assert_eq!(refused.code, Some(2), "{refused:#?}");
    assert!(refused.stderr.contains("enec") && refused.stderr.contains("cascade"), "{refused:#?}");
}

#[test]
fn a_profile_is_made_and_used() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let profile = path("profile.json");
    let profile_text = profile.to_str().unwrap();
    compress(&sample(), &path("searched"), &["--make-profile", profile_text]).success();
    let made: serde_json::Value = serde_json::from_slice(&fs::read(&profile).unwrap()).unwrap();
    assert_eq!(made["enec_profile"], 1);
    assert!(made["BF16"]["m"].is_u64() && made["BF16"]["symbols"].is_array(), "{made}");

    compress(&sample(), &path("profiled"), &["--profile", profile_text]).success();
    decompress(&path("profiled"), &path("restored"), &[]).success();
    assert_eq!(sha256(&path("restored")), SAMPLE_SHA256);
    // One pair of parameters for all tensors: another file, and hardly a larger one.
    assert_ne!(sha256(&path("profiled")), sha256(&path("searched")));
    let size = |name: &str| path(name).metadata().unwrap().len();
    assert!(size("profiled") * 100 < size("searched") * 102);

    // An existing profile is not overwritten.
    let again = compress(&sample(), &path("again"), &["--make-profile", profile_text]).failure(2);
    again.says("profile.json").says("--force");
    assert!(!path("again").exists());
}

#[test]
fn mode_and_time_are_kept() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let (original, compressed, restored) = (path("original"), path("compressed"), path("restored"));
    write(&original);
    let time = SystemTime::UNIX_EPOCH + Duration::from_secs(1_000_000_000);
    fs::File::options().write(true).open(&original).unwrap().set_modified(time).unwrap();
    #[cfg(unix)]
    fs::set_permissions(&original, std::os::unix::fs::PermissionsExt::from_mode(0o640)).unwrap();

    compress(&original, &compressed, &[]).success();
    decompress(&compressed, &restored, &[]).success();
    for copy in [compressed, restored] {
        let (copy, original) = (copy.metadata().unwrap(), original.metadata().unwrap());
        assert_eq!(copy.modified().unwrap(), time);
        assert_eq!(copy.permissions(), original.permissions());
    }
}

#[test]
fn verify_compares() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("original"));
    compress(&path("original"), &path("compressed"), &[]).success();
    enec(["verify".into(), path("compressed")]).success().says("intact");
    let against =
        |original: &str| Run::of(command(["verify"]).arg(path("compressed")).arg("--against").arg(path(original)));
    against("original").success().says("same");

    // One bit of one tensor.
    let mut bytes = fs::read(path("original")).unwrap();
    let at = bytes.len() - 40_000;
    bytes[at] ^= 1;
    fs::write(path("other"), bytes).unwrap();
    against("other").failure(1).says("`layer.2.weight`");
    against("compressed").failure(1);
}

#[test]
fn tensors_are_extracted() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("original"));
    compress(&path("original"), &path("compressed"), &[]).success();
    for input in ["original", "compressed"] {
        for (name, tensor) in ["layer.2.weight", "layer.1.weight", "codes", "nothing"].iter().zip([3, 2, 5, 6]) {
            let call = |more: &[&str]| {
                Run::of(command(["extract", "--tensor", name, "-o"]).arg(path("bytes")).arg(path(input)).args(more))
            };
            call(&["--force"]).success();
            assert_eq!(fs::read(path("bytes")).unwrap(), tensors()[tensor].bytes(), "{name} of {input}");
            call(&[]).failure(2).says("exists");
        }
        let call = Run::of(command(["extract", "--tensor", "layer.9", "-o"]).arg(path("none")).arg(path(input)));
        call.failure(1).says("`layer.9`");
        assert!(!path("none").exists());
    }
}
