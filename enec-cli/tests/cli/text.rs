//! Help texts, completions, manual pages.

use crate::program::enec;

#[test]
fn help() {
    let mut text = String::new();
    for call in [
        "--help",
        "-h",
        "compress --help",
        "decompress --help",
        "inspect --help",
        "verify --help",
        "extract --help",
        "devices --help",
    ] {
        text += &format!("$ enec {call}\n{}\n", enec(call.split(' ')).success().stdout);
    }
    insta::assert_snapshot!(text);
}

#[test]
fn every_long_help_that_makes_people_compress_says_what_cannot_be_done() {
    for call in [&["--help"][..], &["compress", "--help"], &["decompress", "--help"], &["man", "compress"]] {
        let text = enec(call).success().stdout;
        assert!(text.contains("transformers") && text.contains("enec decompress"), "{call:?}: {text}");
    }
}

#[test]
fn every_command_has_a_manual_page() {
    for (command, heading) in [("", "enec"), ("compress", "enec-compress"), ("verify", "enec-verify")] {
        let page = enec(["man", command].iter().filter(|word| !word.is_empty())).success().stdout;
        assert!(page.contains(&format!(".TH {heading} 1")), "{page}");
    }
}

#[test]
fn every_shell_has_completions() {
    for shell in ["bash", "zsh", "fish", "powershell", "elvish"] {
        let text = enec(["completions", shell]).success().stdout;
        assert!(text.contains("decompress") && text.contains("make-profile"), "{shell}: {text}");
    }
}

#[test]
fn no_command_is_wrong_usage() {
    let run = enec([""; 0]);
    assert_eq!((run.code, &*run.stdout), (Some(2), ""));
    assert!(run.stderr.contains("Usage: enec"), "{run:#?}");
    enec(["exterminate"]).failure(2);
    let version = enec(["--version"]).success().stdout;
    assert_eq!(version, format!("enec {}\n", env!("CARGO_PKG_VERSION")));
}
