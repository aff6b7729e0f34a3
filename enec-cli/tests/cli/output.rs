//! What goes to standard output and what to standard error.

use std::fs;
use std::path::PathBuf;

use crate::checkpoint::{Tensor, file, sample, write, write_folder};
use crate::program::{Run, command, compress, enec, filtered};

/// Each command on good input, in an order in which each finds what it needs.
fn calls(folder: &std::path::Path) -> [Vec<PathBuf>; 6] {
    let path = |name: &str| folder.join(name);
    let word = |word: &str| PathBuf::from(word);
    [
        vec![word("compress"), path("original"), word("-o"), path("compressed")],
        vec![word("decompress"), path("compressed"), word("-o"), path("restored")],
        vec![word("verify"), path("compressed"), word("--against"), path("original")],
        vec![word("extract"), path("compressed"), word("--tensor"), word("layer.0.weight"), word("-o"), path("bytes")],
        vec![word("inspect"), path("compressed")],
        vec![word("inspect"), path("original")],
    ]
}

#[test]
fn summaries_go_to_standard_error() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("original"));
    let mut text = String::new();
    for call in calls(folder.path()) {
        let Run { stdout, stderr, .. } = enec(&call).success();
        let is_data = call[0].to_str() == Some("inspect");
        assert_eq!(is_data, !stdout.is_empty(), "{call:?}");
        let call: Vec<_> = call.iter().map(|word| word.to_str().unwrap()).collect();
        text += &format!("$ enec {}\n--- standard output\n{stdout}--- standard error\n{stderr}\n", call.join(" "));
        assert!(!stderr.contains(['\r', '\u{1b}']), "a progress bar in a pipe: {stderr:?}");
    }
    filtered(&text, folder.path(), |text| insta::assert_snapshot!(text));
}

#[test]
fn quiet_is_quiet() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("original"));
    for mut call in calls(folder.path()) {
        call.push("--quiet".into());
        let run = enec(&call).success();
        assert_eq!(run.stderr, "", "{call:?}");
        assert_eq!(run.stdout.is_empty(), call[0].to_str() != Some("inspect"), "{call:?}");
    }
    // Errors are said nevertheless.
    let mut call = calls(folder.path())[0].clone();
    call.push("-q".into());
    enec(&call).failure(2).says("exists");
}

#[test]
fn json_is_one_object_per_command() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("original"));
    let mut text = String::new();
    for mut call in calls(folder.path()).into_iter().take(5) {
        call.extend(["--json".into(), "--quiet".into()]);
        let run = enec(&call).success();
        assert!(run.json().is_object());
        text += &format!("{}\n{}\n", call[0].display(), run.stdout);
    }
    filtered(&text, folder.path(), |text| insta::assert_snapshot!(text));
    let devices = enec(["devices", "--json"]).success().json();
    assert_eq!(devices["backends"][0]["name"], "cpu");
    assert_eq!(devices["backends"][0]["devices"][0]["backend"], "cpu:0");
    let cpu = enec(["devices", "--backend", "cpu", "--json"]).success().json();
    assert_eq!(cpu["backends"].as_array().map(Vec::len), Some(1));
    assert_eq!(cpu["backends"][0], devices["backends"][0]);
    enec(["devices", "--backend", "abacus"]).failure(2).says("`abacus`");
}

#[test]
fn timings_are_told_when_wanted() {
    let folder = tempfile::tempdir().unwrap();
    write(&folder.path().join("original"));
    let call = &calls(folder.path())[0];
    for (flags, hashed) in [(&["--json", "--force"][..], false), (&["--json", "--force", "--timings"], true)] {
        let run = enec(call.iter().cloned().chain(flags.iter().map(PathBuf::from))).success();
        assert_eq!(run.stderr.contains("search  "), hashed, "{run:?}");
        let timings = &run.json()["timings"];
        assert_eq!(timings["hash_seconds"].as_f64().unwrap() > 0.0, hashed);
        assert!(timings["search_seconds"].as_f64().unwrap() > 0.0);
    }
}

#[test]
fn a_failure_prints_no_json() {
    enec(["inspect", "--json", "/absent"]).failure(1);
}

#[test]
fn nothing_gained_is_said() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("noise"), file(&[Tensor::noise("a", &[9000]), Tensor::new("b", "I8", &[1], vec![1])])).unwrap();
    compress(&path("noise"), &path("out"), &[]).success().says("0 of 2 tensors gain");
    let table = enec(["inspect".into(), path("noise")]).success().stdout;
    assert!(table.contains("0 of 2 tensors gain"), "{table}");
}

#[test]
fn inspect_shows_the_sample() {
    let folder = tempfile::tempdir().unwrap();
    let compressed = folder.path().join("compressed");
    compress(&sample(), &compressed, &[]).success();
    let table = |input: PathBuf| enec(["inspect".into(), input]).success().stdout;
    let (before, after) = (table(sample()), table(compressed));
    filtered(&after, folder.path(), |text| insta::assert_snapshot!(text));
    // What compressing would give is what it gives.
    let rows = |table: &str| table.lines().skip(1).map(str::to_owned).collect::<Vec<_>>();
    let tensors = |rows: Vec<String>| rows.into_iter().filter(|row| row.contains('[')).collect::<Vec<_>>();
    assert_eq!(tensors(rows(&before)), tensors(rows(&after)));
    assert_eq!(tensors(rows(&after)).len(), 21);
}

#[test]
fn inspect_shows_every_file_of_a_folder() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    write_folder(&path("original"));
    compress(&path("original"), &path("compressed"), &[]).success();
    let table = enec(["inspect".into(), path("compressed")]).success().stdout;
    filtered(&table, folder.path(), |text| insta::assert_snapshot!(text));
    let json = Run::of(command(["inspect", "--json"]).arg(path("compressed"))).success().json();
    let files = json["tensors"].as_array().unwrap().iter().map(|tensor| tensor["file"].as_str().unwrap());
    assert_eq!(std::collections::BTreeSet::from_iter(files).len(), 2);
}

#[test]
fn names_cannot_take_the_terminal_over() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    fs::write(path("original"), file(&[Tensor::weights("\u{1b}]0;gotcha\u{7}", &[4096])])).unwrap();
    compress(&path("original"), &path("compressed"), &[]).success();
    let mut bytes = fs::read(path("compressed")).unwrap();
    let middle = bytes.len() - 3000;
    bytes[middle] ^= 1;
    fs::write(path("damaged"), bytes).unwrap();
    let shown = enec(["inspect".into(), path("compressed")]).success().stdout;
    let said = enec(["verify".into(), path("damaged")]).failure(1).stderr;
    for text in [shown, said] {
        assert!(text.contains("gotcha") && !text.contains(['\u{1b}', '\u{7}']), "{text:?}");
    }
}
