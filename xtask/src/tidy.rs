//! `cargo xtask tidy`: rules that the compiler does not check. All problems are printed, not only the first.

mod imports;
mod licences;
mod manifests;
pub(crate) mod quotes;
mod sources;

use crate::Result;
use crate::command::{metadata, root};

pub(crate) fn run() -> Result {
    let metadata = metadata()?;
    let files = sources::files(root())?;
    let mut problems = imports::check(&metadata);
    problems.extend(licences::check(&metadata));
    problems.extend(manifests::check(&metadata)?);
    problems.extend(sources::check(&files)?);
    problems.extend(quotes::check(root(), &files)?);
    for problem in &problems {
        println!("tidy: {problem}");
    }
    match problems.len() {
        0 => {
            println!("tidy: {} files, {} packages, no problem", files.len(), metadata.packages.len());
            Ok(())
        }
        1 => Err("tidy found a problem".into()),
        count => Err(format!("tidy found {count} problems").into()),
    }
}
