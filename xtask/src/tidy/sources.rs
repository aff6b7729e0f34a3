//! Files of the tree: first lines of modules, white space, unfinished work, size.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Result;
use crate::command::root;

/// Larger files belong into a release or a registry; the sample checkpoint is the exception.
const MAX_BYTES: u64 = 5_000_000;
const LARGE_FILES: &str = "assets";

/// Extensions of files that people write.
const TEXT: [&str; 7] = ["rs", "md", "toml", "py", "sh", "json", "yml"];

/// Written so that this file does not contain it.
const UNFINISHED: &str = concat!("TO", "DO");

/// All files of the tree that git tracks or would track, relative to `root`, sorted.
pub(super) fn files(root: &Path) -> Result<Vec<PathBuf>> {
    // The tree may belong to another user than the one who tests it, as in containers.
    let arguments = "-c safe.directory=* ls-files -z --cached --others --exclude-standard --deduplicate";
    let output = Command::new("git").args(arguments.split(' ')).current_dir(root).output()?;
    if !output.status.success() {
        return Err(format!("git ls-files: {}", String::from_utf8_lossy(&output.stderr).trim()).into());
    }
    let names = String::from_utf8(output.stdout)?;
    let mut files: Vec<PathBuf> = names.split_terminator('\0').map(PathBuf::from).collect();
    files.retain(|file| root.join(file).is_file());
    files.sort();
    Ok(files)
}

/// Every file that breaks a rule.
pub(super) fn check(files: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for file in files {
        let mut report = |problem: String| problems.push(format!("{}: {problem}", file.display()));
        let path = root().join(file);
        let size = fs::metadata(&path)?.len();
        if size > MAX_BYTES && !file.starts_with(LARGE_FILES) {
            report(format!("{size} bytes; at most {MAX_BYTES} outside `{LARGE_FILES}/`"));
        }
        let extension = file.extension().and_then(|extension| extension.to_str()).unwrap_or_default();
        if TEXT.contains(&extension) {
            let text = fs::read_to_string(&path).map_err(|error| format!("{}: {error}", file.display()))?;
            text_problems(&text, extension == "rs").into_iter().for_each(report);
        }
    }
    Ok(problems)
}

fn text_problems(text: &str, rust: bool) -> Vec<String> {
    let mut problems = Vec::new();
    if rust && !text.starts_with("//! ") {
        problems.push("the first line must say what the module is about (`//! `)".into());
    }
    for (line, number) in text.lines().zip(1..) {
        if line.contains(UNFINISHED) {
            problems.push(format!("line {number}: `{UNFINISHED}`; finish it or file an issue"));
        }
        if rust && line.chars().any(|c| c != ' ' && c.is_whitespace()) {
            problems.push(format!("line {number}: white space other than spaces"));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_module_without_a_first_line_is_found() {
        assert!(text_problems("//! Tiles.\nfn f() {}\n", true).is_empty());
        assert_eq!(text_problems("fn f() {}\n", true).len(), 1);
        assert_eq!(text_problems("\n//! Tiles.\n", true).len(), 1);
        assert_eq!(text_problems("", true).len(), 1);
        assert!(text_problems("fn f() {}\n", false).is_empty());
    }

    #[test]
    fn tabs_and_foreign_spaces_are_found() {
        assert_eq!(text_problems("//! Tiles.\n\tlet a = 1;\n", true), ["line 2: white space other than spaces"]);
        assert_eq!(text_problems("//! Tiles.\u{a0}\n", true).len(), 1);
        assert!(text_problems("a\tb\n", false).is_empty());
    }

    #[test]
    fn unfinished_work_is_found() {
        assert_eq!(text_problems(&format!("a\nb {UNFINISHED}: c\n"), false).len(), 1);
    }

    #[test]
    fn files_ignored_by_git_are_not_listed() {
        let files = files(root()).unwrap();
        assert!(files.iter().any(|file| file.ends_with("tidy/sources.rs")));
        assert!(files.iter().any(|file| file.starts_with(".cargo")));
        assert!(!files.iter().any(|file| file.starts_with("target") || file.starts_with(".git/")));
    }
}
