//! Writes the seeds of the fuzz targets into a folder: `cargo run -p enec-conformance --example seeds -- FOLDER`.

use std::fs;
use std::path::Path;

use enec_conformance::{Result, Subject, fuzzing, pretend};
use enec_core::OpenOptions;

fn main() -> Result {
    let folder = std::env::args().nth(1).ok_or("usage: seeds FOLDER")?;
    let codec = Subject::open(&pretend::DRIVER, OpenOptions::default())?.codec();
    let seeds = [
        ("stream", fuzzing::stream_seeds()?),
        ("roundtrip", fuzzing::roundtrip_seeds()?),
        ("container", fuzzing::container_seeds(&codec)?),
    ];
    for (target, seeds) in seeds {
        let folder = Path::new(&folder).join(target);
        fs::create_dir_all(&folder)?;
        for (name, bytes) in seeds {
            fs::write(folder.join(name), bytes)?;
        }
    }
    Ok(())
}
