//! What is refused, with which words and exit code, and that nothing is left behind.

use std::fs;
use std::path::Path;

use crate::checkpoint::{self, write, write_folder};
use crate::program::{Run, command, compress, decompress, enec, filtered, names};

/// Refusals with their texts, one after the other. Each names a call and leaves the folder as it was.
fn texts(folder: &Path, calls: &[&str]) -> String {
    let before = names(folder);
    let mut texts = String::new();
    for call in calls {
        // What is in braces lies in the folder; a word is an argument.
        let call = call.replace('{', &format!("{}/", folder.display())).replace('}', "");
        let Run { code, stdout, stderr } = enec(call.split(' '));
        assert_eq!(stdout, "", "{call}");
        texts += &format!("$ enec {call}\n{stderr}exit code {}\n\n", code.unwrap());
        assert_eq!(names(folder), before, "{call}");
    }
    texts
}

#[test]
fn inputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("good.safetensors"));
    compress(&path("good.safetensors"), &path("small.safetensors"), &[]).success();
    let good = fs::read(path("good.safetensors")).unwrap();
    fs::write(path("cut.safetensors"), &good[..good.len() - 100]).unwrap();
    fs::write(path("short.safetensors"), &good[..20]).unwrap();
    fs::write(path("long.safetensors"), [&*good, b"x"].concat()).unwrap();
    fs::write(path("empty.safetensors"), "").unwrap();
    fs::write(path("prose.safetensors"), "Weights, in words.").unwrap();
    fs::write(path("pytorch_model.bin"), "PK\x03\x04").unwrap();
    fs::write(path("model.gguf"), "GGUF\x03\0\0\0\0\0\0\0").unwrap();
    fs::write(path("pointer.safetensors"), "version https://git-lfs.github.com/spec/v1\n").unwrap();
    fs::create_dir(path("nothing")).unwrap();
    fs::write(path("nothing/config.json"), "{}").unwrap();
    let mut flipped = fs::read(path("small.safetensors")).unwrap();
    let at = flipped.windows(12).position(|window| window == b"enec.version").unwrap();
    flipped[at] ^= 1;
    fs::write(path("flipped.safetensors"), flipped).unwrap();

    let calls = [
        "compress {absent.safetensors} -o {out}",
        "compress {small.safetensors} -o {out}",
        "compress {cut.safetensors} -o {out}",
        "compress {short.safetensors} -o {out}",
        "compress {long.safetensors} -o {out}",
        "compress {empty.safetensors} -o {out}",
        "compress {prose.safetensors} -o {out}",
        "compress /dev/null -o {out}",
        "compress {pytorch_model.bin} -o {out}",
        "compress {model.gguf} -o {out}",
        "compress {pointer.safetensors} -o {out}",
        "compress {nothing} -o {out}",
        "decompress {good.safetensors} -o {out}",
        "decompress {flipped.safetensors} -o {out}",
        "verify {good.safetensors}",
        "verify {cut.safetensors}",
        "inspect {model.gguf}",
        "extract {small.safetensors} --tensor layer.0.wieght -o {out}",
    ];
    filtered(&texts(folder.path(), &calls), folder.path(), |text| insta::assert_snapshot!(text));
}

#[test]
fn outputs() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("good.safetensors"));
    write(&path("other.safetensors"));
    write_folder(&path("model"));
    fs::create_dir(path("letters")).unwrap();
    fs::write(path("letters/first.txt"), "").unwrap();
    let good = fs::read(path("good.safetensors")).unwrap();

    let calls = [
        "compress {good.safetensors} -o {other.safetensors}",
        "compress {good.safetensors} -o {good.safetensors}",
        "compress {good.safetensors} -o {good.safetensors} --force",
        "compress {good.safetensors} -o {model/../good.safetensors} --force",
        "compress {good.safetensors} -o {absent/out}",
        "compress {good.safetensors} -o {model} --force",
        "compress {model} -o {model} --force",
        "compress {model} -o {model/compressed}",
        "compress {model/tokenizer} -o {model} --force",
        "compress {model} -o {letters} --force",
        "compress {model} -o {other.safetensors} --force",
    ];
    filtered(&texts(folder.path(), &calls), folder.path(), |text| insta::assert_snapshot!(text));
    assert_eq!(fs::read(path("good.safetensors")).unwrap(), good);
    assert_eq!(fs::read(path("other.safetensors")).unwrap(), good);
    assert_eq!(names(&path("model")).len(), 5);
}

#[test]
fn arguments() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("good.safetensors"));
    fs::write(path("profile.json"), r#"{"enec_profile": 1, "BF16": {"b": 256, "m": 3}}"#).unwrap();
    let calls = [
        "compress {good.safetensors} -o {out} --backend abacus",
        "compress {good.safetensors} -o {out} --backend cpu:1",
        "compress {good.safetensors} -o {out} --threads 0",
        "compress {good.safetensors} -o {out} --profile {profile.json}",
        "compress {good.safetensors} -o {out} --profile {absent.json}",
        "compress {good.safetensors} -o {out} --make-profile {profile.json}",
        "compress {good.safetensors} -o {out} --make-profile {out}",
        "compress {good.safetensors} -o {out} --make-profile {out} --force",
        "compress {good.safetensors} -o {out} --make-profile {good.safetensors} --force",
        "compress {good.safetensors} -o {out} --make-profile {absent/profile.json}",
        "compress {good.safetensors} -o {out} --make-profile {new.json} --profile {profile.json}",
        "compress {good.safetensors}",
        "decompress {good.safetensors} -o {out} --no-verify",
        "man expand",
    ];
    filtered(&texts(folder.path(), &calls), folder.path(), |text| insta::assert_snapshot!(text));
}

/// Without the vendor's library nothing is written, and one message says what was looked for.
#[test]
fn an_absent_ascend_library_is_told() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("good.safetensors"), folder.path().join("out"));
    write(&input);
    let variable = ("ENEC_ASCEND_LIBRARY", "/nowhere/libascendcl.so");
    let call = ["compress".as_ref(), input.as_os_str(), "-o".as_ref(), output.as_os_str()];
    let run = Run::of(command(call).args(["--backend", "ascend"]).env(variable.0, variable.1));
    let run = run.failure(2).says("backend `ascend` is not available").says("/nowhere/libascendcl.so").says("CANN");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    assert_eq!(names(folder.path()), ["good.safetensors"]);

    let run = Run::of(command(["devices", "--backend", "ascend"]).env(variable.0, variable.1)).failure(2);
    assert!(run.stdout.is_empty(), "{run:?}");
    assert_eq!(run.stderr.lines().count(), 1, "{run:?}");
    run.says("backend `ascend` is not available").says("/nowhere/libascendcl.so");

    let run = Run::of(command(["devices", "--json"]).env(variable.0, variable.1)).success();
    let listing = run.json();
    let backends = listing["backends"].as_array().unwrap();
    let ascend = backends.iter().find(|backend| backend["name"] == "ascend").unwrap();
    assert_eq!(ascend["devices"].as_array().map(Vec::len), Some(0), "{ascend}");
    assert!(ascend["absent"].as_str().unwrap().contains("/nowhere/libascendcl.so"), "{ascend}");
}

#[cfg(unix)]
#[test]
fn a_link_to_the_input_is_the_input() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("good"));
    std::os::unix::fs::symlink("good", path("link")).unwrap();
    compress(&path("good"), &path("link"), &["--force"]).failure(2);
    compress(&path("link"), &path("good"), &["--force"]).failure(2);
    assert_eq!(fs::read(path("good")).unwrap(), checkpoint::file(&checkpoint::tensors()));
    assert_eq!(names(folder.path()), ["good", "link"]);
}

#[test]
fn force_replaces_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write(&path("good"));
    fs::write(path("out"), "old").unwrap();
    compress(&path("good"), &path("out"), &[]).failure(2);
    assert_eq!(fs::read(path("out")).unwrap(), b"old");
    compress(&path("good"), &path("out"), &["--force"]).success();
    // A failure leaves what was there, force or not.
    let before = fs::read(path("out")).unwrap();
    fs::write(path("bad"), "bad").unwrap();
    compress(&path("bad"), &path("out"), &["--force"]).failure(1);
    decompress(&path("bad"), &path("out"), &["--force"]).failure(1);
    Run::of(command(["extract", "--tensor", "x", "--force", "-o"]).arg(path("out")).arg(path("good"))).failure(1);
    assert_eq!(fs::read(path("out")).unwrap(), before);
    assert_eq!(names(folder.path()), ["bad", "good", "out"]);
}

/// What `enec devices` says of a backend without a device is what a command on it ends with: exit code 2, and one line.
#[test]
fn a_backend_without_a_device_says_why() {
    let folder = tempfile::tempdir().unwrap();
    let (input, output) = (folder.path().join("good.safetensors"), folder.path().join("out"));
    write(&input);
    let devices = enec(["devices", "--json"]).success().json();
    let cuda = devices["backends"].as_array().unwrap().iter().find(|backend| backend["name"] == "cuda").unwrap();
    let call = ["compress".as_ref(), input.as_os_str(), "-o".as_ref(), output.as_os_str()];
    let call: Vec<_> = call.into_iter().chain(["--backend".as_ref(), "cuda".as_ref()]).collect();
    match cuda["absent"].as_str() {
        Some(reason) => {
            let run = enec(&call).failure(2);
            assert_eq!(run.stderr, format!("error: backend `cuda` is not available: {reason}\n"));
            assert!(!output.exists());
        }
        None => {
            enec(&call).success();
        }
    }
}
