//! Licences of third-party crates, on every platform and in every feature.

use cargo_metadata::Metadata;

/// Licences under which a dependency can be taken; both of ours can be kept with each of them.
const ACCEPTED: [&str; 5] = ["MIT", "Apache-2.0", "ISC", "Unicode-3.0", "Zlib"];

/// Every package that cannot be taken under accepted licences.
pub(super) fn check(metadata: &Metadata) -> Vec<String> {
    let packages = metadata.packages.iter().filter(|package| package.source.is_some());
    let refused = packages.filter(|package| !package.license.as_deref().is_some_and(accepted));
    refused
        .map(|package| {
            let licence = package.license.as_deref().unwrap_or("no stated licence");
            format!("`{}` is under {licence}: not in `ACCEPTED` of xtask/src/tidy/licences.rs", package.name)
        })
        .collect()
}

/// Whether one choice out of an SPDX expression (or its old form with `/`) has accepted licences only. Not a full parser: it splits at
/// `AND` first and drops parentheses, which may refuse a nested expression but accepts none wrongly.
fn accepted(expression: &str) -> bool {
    let expression = expression.replace('/', " OR ").replace(['(', ')'], "");
    expression.split(" AND ").all(|part| part.split(" OR ").any(|licence| ACCEPTED.contains(&licence.trim())))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_choice_of_accepted_licences_passes() {
        for expression in ["MIT", "MIT/Apache-2.0", "Unlicense OR MIT", "(MIT OR Apache-2.0) AND Unicode-3.0"] {
            assert!(accepted(expression), "{expression}");
        }
    }

    #[test]
    fn anything_else_is_found() {
        for expression in ["GPL-3.0-only", "MIT AND GPL-3.0-only", "(MIT AND GPL-3.0-only) OR MPL-2.0", ""] {
            assert!(!accepted(expression), "{expression}");
        }
    }
}
