//! Running `enec`, and looking at what it said and left behind.

use std::ffi::OsStr;
use std::fs;
use std::path::Path;
use std::process::{Command, Output, Stdio};

use sha2::{Digest, Sha256};

/// A finished run.
#[derive(Debug)]
pub(crate) struct Run {
    pub(crate) code: Option<i32>,
    pub(crate) stdout: String,
    pub(crate) stderr: String,
}

impl Run {
    pub(crate) fn of(command: &mut Command) -> Self {
        let Output { status, stdout, stderr } = command.stdin(Stdio::null()).output().unwrap();
        let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
        Self { code: status.code(), stdout: text(stdout), stderr: text(stderr) }
    }

    /// Demands success.
    #[track_caller]
    pub(crate) fn success(self) -> Self {
        assert_eq!(self.code, Some(0), "{self:#?}");
        self
    }

    /// Demands an exit code, no data, and that the first line of standard error is an error.
    #[track_caller]
    pub(crate) fn failure(self, code: i32) -> Self {
        assert_eq!(self.code, Some(code), "{self:#?}");
        assert_eq!(self.stdout, "", "{self:#?}");
        assert!(self.stderr.starts_with("error: "), "{self:#?}");
        self
    }

    /// Demands that standard error has these words.
    #[track_caller]
    pub(crate) fn says(self, words: &str) -> Self {
        assert!(self.stderr.contains(words), "`{words}` is missing: {self:#?}");
        self
    }

    /// Standard output as JSON.
    #[track_caller]
    pub(crate) fn json(&self) -> serde_json::Value {
        serde_json::from_str(&self.stdout).unwrap_or_else(|error| panic!("{error}: {self:#?}"))
    }
}

/// The program.
pub(crate) const ENEC: &str = env!("CARGO_BIN_EXE_enec");

/// A call of the program.
pub(crate) fn command(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Command {
    let mut command = Command::new(ENEC);
    // Help texts are as wide as the terminal.
    command.env("COLUMNS", "100").args(arguments);
    command
}

/// Runs the program with `arguments`.
pub(crate) fn enec(arguments: impl IntoIterator<Item = impl AsRef<OsStr>>) -> Run {
    Run::of(&mut command(arguments))
}

/// `enec compress INPUT -o OUTPUT`, and more.
pub(crate) fn compress(input: &Path, output: &Path, more: &[&str]) -> Run {
    Run::of(command(["compress"]).arg(input).arg("-o").arg(output).args(more))
}

/// `enec decompress INPUT -o OUTPUT`, and more.
pub(crate) fn decompress(input: &Path, output: &Path, more: &[&str]) -> Run {
    Run::of(command(["decompress"]).arg(input).arg("-o").arg(output).args(more))
}

/// What lies in a folder, hidden names included, sorted.
pub(crate) fn names(folder: &Path) -> Vec<String> {
    let mut names: Vec<String> =
        folder.read_dir().unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    names
}

/// The SHA-256 of a file, as `sha256sum` writes it.
pub(crate) fn sha256(path: &Path) -> String {
    Sha256::digest(fs::read(path).unwrap()).iter().map(|byte| format!("{byte:02x}")).collect()
}

/// A text with what differs from run to run replaced: the folder, times and rates.
pub(crate) fn filtered(text: &str, folder: &Path, snapshot: impl FnOnce(&str)) {
    let mut settings = insta::Settings::clone_current();
    let folder = folder.to_str().unwrap().replace('.', r"\.");
    settings.add_filter(&folder, "[FOLDER]");
    settings.add_filter(r"\d+\.\d+ s, \d+\.\d+ GB/s", "[TIME]");
    settings.add_filter(r#"("(?:\w*seconds|gigabytes_per_second)": )[0-9.e-]+"#, "$1[TIME]");
    // The last digits of a logarithm are the machine's own.
    settings.add_filter(r"(\d\.\d{6})\d+", "$1");
    settings.bind(|| snapshot(text));
}
