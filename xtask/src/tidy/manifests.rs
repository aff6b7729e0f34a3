//! Manifests of the members: whatever the workspace decides is inherited, not repeated.

use std::fs;

use cargo_metadata::Metadata;

use crate::Result;

/// Lines that every member's manifest contains.
const INHERITED: [&str; 6] = [
    "version.workspace = true",
    "edition.workspace = true",
    "rust-version.workspace = true",
    "license.workspace = true",
    "repository.workspace = true",
    "[lints]\nworkspace = true",
];

/// Every manifest that does not inherit.
pub(super) fn check(metadata: &Metadata) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    for package in metadata.workspace_packages() {
        let text = fs::read_to_string(&package.manifest_path)?;
        problems.extend(missing(&text).into_iter().map(|line| format!("{} lacks `{line}`", package.manifest_path)));
        if package.description.is_none() {
            problems.push(format!("{} lacks a description", package.manifest_path));
        }
    }
    Ok(problems)
}

/// What a manifest should inherit and does not.
fn missing(manifest: &str) -> Vec<String> {
    let manifest = format!("\n{}\n", manifest.replace('\r', ""));
    let missing = INHERITED.iter().filter(|lines| !manifest.contains(&format!("\n{lines}\n")));
    missing.map(|lines| lines.replace('\n', " ")).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn whatever_is_not_inherited_is_found() {
        let manifest = format!("[package]\nname = \"a\"\n{}\n", INHERITED.join("\n"));
        assert!(missing(&manifest).is_empty());
        assert_eq!(
            missing(&manifest.replace("version.workspace = true\nedition", "version = \"1.0.0\"\nedition")).len(),
            1
        );
        assert_eq!(missing(&manifest.replace("[lints]\n", "[lints]\n# ")), ["[lints] workspace = true"]);
        assert_eq!(missing("").len(), INHERITED.len());
    }
}
