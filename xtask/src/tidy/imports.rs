//! Who may import whom: the table of ARCHITECTURE.md against `cargo metadata`.

use cargo_metadata::{DependencyKind, Metadata};

/// What one crate of ours may import of ours.
struct Rule {
    importer: &'static str,
    /// In any target.
    imports: &'static [&'static str],
    /// In tests, examples and benchmarks, beyond `imports`.
    test_imports: &'static [&'static str],
}

/// One entry for each member; a new crate needs a new entry, and thereby a decision.
const RULES: [Rule; 9] = [
    Rule { importer: "enec-format", imports: &[], test_imports: &[] },
    Rule { importer: "enec-core", imports: &["enec-format"], test_imports: &[] },
    Rule { importer: "enec-conformance", imports: &["enec-core", "enec-format"], test_imports: &[] },
    Rule { importer: "enec-cpu", imports: &["enec-core", "enec-format"], test_imports: &["enec-conformance"] },
    Rule { importer: "enec-gpu", imports: &["enec-core", "enec-format"], test_imports: &["enec-conformance"] },
    Rule { importer: "enec", imports: &["enec-core", "enec-format", "enec-cpu"], test_imports: &[] },
    Rule { importer: "enec-cli", imports: &["enec"], test_imports: &[] },
    Rule { importer: "enec-bench", imports: &["enec", "enec-core"], test_imports: &[] },
    Rule { importer: "xtask", imports: &[], test_imports: &[] },
];

/// Third-party crates that stand for a subject only some of our crates may know; tests are free.
const RESERVED: [(&str, &[&str]); 9] = [
    ("clap", PROGRAMS),
    ("indicatif", PROGRAMS),
    ("ctrlc", PROGRAMS),
    ("rayon", &["enec-core", "enec-cpu", "enec-bench"]),
    ("memmap2", FILES),
    ("tempfile", FILES),
    ("cudarc", DEVICES),
    ("wgpu", DEVICES),
    ("libloading", DEVICES),
];
const PROGRAMS: &[&str] = &["enec-cli", "enec-bench", "xtask"];
const FILES: &[&str] = &["enec-core", "enec-cli", "enec-bench", "xtask"];
const DEVICES: &[&str] = &["enec-gpu", "enec-ascend"];

/// One line of one manifest.
struct Import {
    importer: String,
    imported: String,
    test: bool,
}

/// Every import that the tables do not allow.
pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.workspace_packages();
    let members: Vec<&str> = packages.iter().map(|package| package.name.as_str()).collect();
    let imports = packages.iter().flat_map(|package| {
        package.dependencies.iter().map(|dependency| Import {
            importer: package.name.to_string(),
            imported: dependency.name.clone(),
            test: dependency.kind == DependencyKind::Development,
        })
    });
    violations(&members, imports)
}

fn violations(members: &[&str], imports: impl IntoIterator<Item = Import>) -> Vec<String> {
    let rule = |name: &str| RULES.iter().find(|rule| rule.importer == name);
    let unknown = members.iter().filter(|name| rule(name).is_none());
    let mut problems: Vec<String> =
        unknown.map(|name| format!("crate `{name}` has no entry in `RULES` of xtask/src/tidy/imports.rs")).collect();
    for Import { importer, imported, test } in imports {
        if members.contains(&imported.as_str()) {
            let allowed = rule(&importer).is_none_or(|rule| {
                let mut allowed = rule.imports.iter().chain(if test { rule.test_imports } else { &[] });
                allowed.any(|name| *name == imported)
            });
            if !allowed {
                let whose = if test { "tests of " } else { "" };
                problems.push(format!("{whose}`{importer}` must not import `{imported}` (ARCHITECTURE.md says why)"));
            }
        } else if let Some((_, importers)) = RESERVED.iter().find(|(name, _)| *name == imported)
            && !test
            && !importers.contains(&importer.as_str())
        {
            problems.push(format!("`{importer}` must not import `{imported}`, which is for {}", importers.join(", ")));
        }
    }
    problems
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMBERS: [&str; 4] = ["enec-format", "enec-core", "enec-cpu", "enec-conformance"];

    fn problems(importer: &str, imported: &str, test: bool) -> usize {
        violations(&MEMBERS, [Import { importer: importer.into(), imported: imported.into(), test }]).len()
    }

    #[test]
    fn edges_of_the_table_pass() {
        assert_eq!(problems("enec-core", "enec-format", false), 0);
        assert_eq!(problems("enec-cpu", "enec-conformance", true), 0);
        assert_eq!(problems("enec-format", "thiserror", false), 0);
    }

    #[test]
    fn edges_against_the_table_are_found() {
        assert_eq!(problems("enec-format", "enec-core", false), 1);
        assert_eq!(problems("enec-core", "enec-cpu", false), 1);
        assert_eq!(problems("enec-core", "enec-cpu", true), 1);
        assert_eq!(problems("enec-cpu", "enec-conformance", false), 1);
    }

    #[test]
    fn reserved_subjects_are_found_outside_tests() {
        assert_eq!(problems("enec-core", "clap", false), 1);
        assert_eq!(problems("enec-format", "rayon", false), 1);
        assert_eq!(problems("enec-cpu", "tempfile", false), 1);
        assert_eq!(problems("enec-cpu", "tempfile", true), 0);
        assert_eq!(problems("enec-cpu", "rayon", false), 0);
    }

    #[test]
    fn a_crate_without_a_rule_is_found() {
        assert_eq!(violations(&["enec-new"], []).len(), 1);
    }
}
