//! Constants quoted in documents: the number a reader sees is the number in the source.
//!
//! A quoted constant is followed at once by a comment that names it and its file; on the page the comment is invisible:
//!
//! ```text
//! A tile is **2,048**<!-- const TILE_ELEMENTS enec-format/src/geometry.rs --> elements.
//! It starts with `89 45 4E 45 43 0D 0A 1A`<!-- const MAGIC enec-format/src/header.rs -->.
//! ```
//!
//! Integers are decimal, or hexadecimal with `0x`; two or more bytes are pairs of hexadecimal digits, with spaces between them.

use std::fs;
use std::path::{Path, PathBuf};

use crate::Result;

/// The document that must quote its constants.
const SPECIFICATION: &str = "docs/format.md";

const OPEN: &str = "<!-- const ";
const CLOSE: &str = " -->";

/// Every quoted constant that the source contradicts or does not have.
pub(super) fn check(root: &Path, files: &[PathBuf]) -> Result<Vec<String>> {
    let mut problems = Vec::new();
    let mut specified = false;
    for file in files.iter().filter(|file| file.extension().is_some_and(|extension| extension == "md")) {
        let text = fs::read_to_string(root.join(file))?;
        for quote in quotes(&text) {
            specified |= file == Path::new(SPECIFICATION);
            if let Err(problem) = verify(&quote, |path| fs::read_to_string(root.join(path)).ok()) {
                problems.push(format!("{}: line {}: {problem}", file.display(), quote.line));
            }
        }
    }
    if !specified {
        problems.push(format!("{SPECIFICATION}: quotes no constant; see xtask/src/tidy/quotes.rs"));
    }
    Ok(problems)
}

/// A value in a document and the constant it stands for.
#[derive(Debug, PartialEq)]
struct Quote<'a> {
    line: usize,
    value: &'a str,
    name: &'a str,
    source: &'a str,
}

/// All quotes in a document.
fn quotes(text: &str) -> Vec<Quote<'_>> {
    let mut quotes = Vec::new();
    for (line, number) in text.lines().zip(1..) {
        let mut rest = line;
        while let Some((before, after)) = rest.split_once(OPEN) {
            let (inside, next) = after.split_once(CLOSE).unwrap_or((after, ""));
            let (name, source) = inside.split_once(' ').unwrap_or((inside, ""));
            quotes.push(Quote { line: number, value: quoted(before), name, source });
            rest = next;
        }
    }
    quotes
}

/// What stands at the end of `text`: a code span, or a word, bold or not.
fn quoted(text: &str) -> &str {
    let text = text.trim_end_matches('*');
    if let Some(span) = text.strip_suffix('`') {
        return span.rsplit('`').next().unwrap_or_default();
    }
    let word = |c: char| c.is_ascii_alphanumeric() || c == ',' || c == '_';
    text.rsplit(|c| !word(c)).next().unwrap_or_default()
}

fn verify(quote: &Quote<'_>, read: impl Fn(&str) -> Option<String>) -> std::result::Result<(), String> {
    let Quote { value, name, source, .. } = quote;
    let text = read(source).ok_or_else(|| format!("no source file `{source}` for `{name}`"))?;
    let expected = constant(&text, name).ok_or_else(|| format!("no constant `{name}` with a value in {source}"))?;
    let found = value_in_document(value).ok_or_else(|| format!("`{value}` before the mark of `{name}` is no value"))?;
    if found == expected { Ok(()) } else { Err(format!("`{name}` is {expected:?} in {source}, not `{value}`")) }
}

/// `2,048`, `0x0100`, or bytes such as `89 45`.
fn value_in_document(text: &str) -> Option<Vec<u64>> {
    if text.contains(' ') {
        return text.split_whitespace().map(|byte| u64::from_str_radix(byte, 16).ok()).collect();
    }
    Some(vec![integer(text)?])
}

fn integer(text: &str) -> Option<u64> {
    let digits = text.replace(['_', ','], "");
    match digits.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16).ok(),
        None => digits.parse().ok(),
    }
}

/// The value of `const NAME: TYPE = VALUE;`: an integer, a product or quotient of integers and constants of the same file,
/// or an array of these.
pub(crate) fn constant(source: &str, name: &str) -> Option<Vec<u64>> {
    let (_, definition) = source.split_once(&format!("const {name}: "))?;
    let (_, value) = definition.split_once('=')?;
    let (value, _) = value.split_once(';')?;
    match value.trim().strip_prefix('[').and_then(|items| items.strip_suffix(']')) {
        Some(items) => {
            items.split(',').filter(|item| !item.trim().is_empty()).map(|item| product(source, item)).collect()
        }
        None => Some(vec![product(source, value)?]),
    }
}

/// `a * b / c`, from left to right.
fn product(source: &str, text: &str) -> Option<u64> {
    let mut words = text.split_whitespace();
    let mut result = factor(source, words.next()?)?;
    while let Some(operator) = words.next() {
        let factor = factor(source, words.next()?)?;
        result = match operator {
            "*" => result.checked_mul(factor)?,
            "/" => result.checked_div(factor)?,
            _ => return None,
        };
    }
    Some(result)
}

/// An integer, a byte such as `b'E'`, or a constant of the same file.
fn factor(source: &str, text: &str) -> Option<u64> {
    if let Some(character) = text.strip_prefix("b'").and_then(|rest| rest.strip_suffix('\'')) {
        let &[byte] = character.as_bytes() else { return None };
        return Some(byte.into());
    }
    integer(text).or_else(|| match constant(source, text)?[..] {
        [value] => Some(value),
        _ => None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const SOURCE: &str = "
pub const ROWS: usize = 16;
pub const LANES: usize = 128;
pub const TILE_ELEMENTS: usize = ROWS * LANES;
pub const TILE_MASK_BYTES: usize = LANES / 8;
const CONTENT_PIECE_BYTES: usize = 32_768;
const MAGIC: [u8; 4] = [0x89, b'E', b'N', 0x1A];
const BITS: u64 = 1 << 3;
";

    fn verdict(document: &str) -> std::result::Result<(), String> {
        let quotes = quotes(document);
        assert_eq!(quotes.len(), 1);
        verify(&quotes[0], |path| (path == "a.rs").then(|| SOURCE.to_owned()))
    }

    #[test]
    fn values_of_the_source_pass() {
        for document in [
            "A tile is **2,048**<!-- const TILE_ELEMENTS a.rs --> elements.",
            "16<!-- const TILE_MASK_BYTES a.rs -->",
            "pieces of `32768`<!-- const CONTENT_PIECE_BYTES a.rs -->",
            "`89 45 4e 1A`<!-- const MAGIC a.rs -->",
            "`0x80`<!-- const LANES a.rs -->",
        ] {
            assert_eq!(verdict(document), Ok(()), "{document}");
        }
    }

    #[test]
    fn other_values_are_found() {
        for document in [
            "A tile is 2,049<!-- const TILE_ELEMENTS a.rs --> elements.",
            "2,048 <!-- const TILE_ELEMENTS a.rs -->",
            "`89 45 4E`<!-- const MAGIC a.rs -->",
            "16<!-- const COLUMNS a.rs -->",
            "16<!-- const ROWS b.rs -->",
            "16<!-- const ROWS",
            "8<!-- const BITS a.rs -->",
        ] {
            assert!(verdict(document).is_err(), "{document}");
        }
    }

    #[test]
    fn a_line_may_quote_twice() {
        let document = "a\n1<!-- const A a.rs --> and `2`<!-- const B b.rs -->";
        let expected = [
            Quote { line: 2, value: "1", name: "A", source: "a.rs" },
            Quote { line: 2, value: "2", name: "B", source: "b.rs" },
        ];
        assert_eq!(quotes(document), expected);
    }
}
