//! Writes or checks the golden streams of `testdata/v1`.
//!
//! `--write` creates those that are missing and refuses to change one that exists. `--check` compares every file with what the
//! reference codec writes.

#![allow(clippy::print_stdout, reason = "a program")]

mod cascade;

use std::collections::BTreeSet;
use std::fs;

use enec_conformance::golden::{Golden, Manifest, folder};
use enec_conformance::inputs::Input;
use enec_conformance::{Result, ensure};
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Coding, Dtype, Stream, reference};

/// Most bytes of all golden streams together: they are cloned with every checkout.
const LARGEST_TOTAL: usize = 600_000;

fn main() -> Result {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match arguments.iter().map(String::as_str).collect::<Vec<_>>()[..] {
        ["--check"] => check(),
        ["--write"] => write(),
        _ => Err("usage: golden --check | --write".into()),
    }
}

/// What is frozen: every dtype and every structural case, each as small as it can be.
fn goldens() -> Vec<Golden> {
    let mut goldens = Vec::new();
    let mut add = |name: String, covers: &str, dtype: Dtype, elements, input, windows, forced| {
        goldens.push(Golden {
            name,
            covers: covers.into(),
            dtype: dtype.name().into(),
            elements,
            input,
            windows,
            symbols: None,
            forced,
            input_sha256: String::new(),
            stream_sha256: String::new(),
        });
    };
    let bytes = |seed| Input::Uniform { seed };
    add("opaque_empty".into(), "no bytes: header only, hashes of nothing", Dtype::Opaque, 0, bytes(1), None, false);
    add("opaque_bytes".into(), "opaque bytes, stored, with padding", Dtype::Opaque, 77, bytes(2), None, false);
    add(
        "opaque_pieces".into(),
        "two hash pieces of a stored stream",
        Dtype::Opaque,
        32_769,
        Input::Constant { word: 7 },
        None,
        false,
    );
    for dtype in Dtype::FLOATS {
        let of = |name: &str| format!("{}_{name}", dtype.name().to_lowercase());
        let middle = dtype.exponent_mask() / 2;
        let top = u64::from(middle);
        let weights = |seed| Input::Weights { seed, top, zeros: 0 };
        let lanes = |wide, base: u8, width, wide_base: u8, wide_width| Input::Lanes {
            seed: 3,
            wide,
            base: base.into(),
            width,
            wide_base: wide_base.into(),
            wide_width,
        };
        let window = Some((middle, 3));
        add(of("empty"), "no elements", dtype, 0, weights(1), window, false);
        add(of("short"), "fewer elements than a tile: stored", dtype, 21, weights(2), window, false);
        let incompressible = Input::Uniform { seed: 4 };
        add(
            of("incompressible"),
            "stored because coding gains nothing",
            dtype,
            TILE_ELEMENTS,
            incompressible,
            window,
            false,
        );
        add(
            of("no_wide_lane"),
            "every table entry unused, empty variable section, odd tail",
            dtype,
            TILE_ELEMENTS + 1,
            lanes(0, middle, 2, middle, 2),
            Some((middle, 2)),
            false,
        );
        add(
            of("seventeen_wide_lanes"),
            "rows of a high segment with padding",
            dtype,
            TILE_ELEMENTS,
            lanes(17, middle, 2, middle + 3, 4),
            Some((middle, 2)),
            true,
        );
        add(
            of("sixteen_wide_lanes"),
            "one tile by the stored rule, no tail; rows of a high segment without padding",
            dtype,
            TILE_ELEMENTS,
            lanes(16, middle, 2, middle + 3, 4),
            Some((middle, 2)),
            false,
        );
        add(
            of("all_wide"),
            "no common lane, widths 0 and E",
            dtype,
            TILE_ELEMENTS,
            Input::Exponents { seed: 5, low: 0, size: 2 * top + 2 },
            Some((0, 0)),
            true,
        );
        add(
            of("wide_as_common"),
            "wide lanes of the common width: their segment is empty",
            dtype,
            TILE_ELEMENTS,
            lanes(40, middle, 3, dtype.exponent_mask(), 3),
            Some((middle, 3)),
            true,
        );
        add(
            of("width_zero"),
            "common width 0: no low plane",
            dtype,
            TILE_ELEMENTS,
            lanes(3, middle, 0, middle, 1),
            Some((middle, 0)),
            true,
        );
        add(
            of("width_full"),
            "common width E: no lane can be wide",
            dtype,
            TILE_ELEMENTS,
            Input::Uniform { seed: 6 },
            Some((dtype.exponent_mask(), dtype.exponent_bits())),
            true,
        );
        add(
            of("special"),
            "infinities, NaN payloads, zeros and subnormals",
            dtype,
            TILE_ELEMENTS,
            Input::Special,
            window,
            true,
        );
        // F32 is twice as long: eight tiles and one are enough for two blocks.
        let count = BLOCK_ELEMENTS + TILE_ELEMENTS;
        if dtype == Dtype::Bf16 {
            add(
                of("blocks"),
                "a whole block and a short one, with a tail of one element; widths differ by block",
                dtype,
                count + 1,
                Input::Weights { seed: 7, top, zeros: 2 },
                window,
                false,
            );
        } else {
            add(of("blocks"), "a whole block and a short one", dtype, count, weights(8), window, false);
        }
    }
    goldens.extend(Dtype::FLOATS.into_iter().flat_map(cascade::goldens));
    goldens
}

fn write() -> Result {
    let written = Manifest { version: 1, streams: goldens() }.write(&folder())?;
    println!("{written} golden streams written");
    check()
}

fn check() -> Result {
    let manifest = Manifest::read()?;
    let mut names = BTreeSet::from(["manifest.json".to_owned()]);
    let mut total = 0;
    for golden in &manifest.streams {
        let frozen = golden.frozen()?;
        ensure!(golden.encoded()? == frozen, "{}: the reference encodes other bytes", golden.name);
        let stream = Stream::open(&frozen)?;
        stream.check_payload()?;
        let elements = golden.elements();
        stream.check_content(&elements)?;
        ensure!(reference::decode_stream(&stream)? == elements, "{}: decoded bytes differ", golden.name);
        names.insert(golden.file_name());
        total += frozen.len();
    }
    for entry in fs::read_dir(folder())? {
        let name = entry?.file_name().to_string_lossy().into_owned();
        ensure!(names.remove(&name), "`{name}` is not in the manifest");
    }
    ensure!(names.is_empty(), "missing: {names:?}");
    ensure!(total <= LARGEST_TOTAL, "golden streams of {total} bytes, at most {LARGEST_TOTAL} wanted");
    cases_are_there(&manifest)
}

/// That the goldens are what they say, so that a change of the list cannot lose a structural case.
fn cases_are_there(manifest: &Manifest) -> Result {
    for dtype in Dtype::FLOATS {
        let streams = manifest.streams.iter().filter(|golden| golden.dtype() == dtype);
        let streams: Vec<Vec<u8>> = streams.map(Golden::frozen).collect::<Result<_>>()?;
        let streams: Vec<Stream<'_>> = streams.iter().map(|bytes| Stream::open(bytes)).collect::<Result<_, _>>()?;
        cascade::cases_are_there(dtype, &streams)?;
        let streams: Vec<_> = streams.into_iter().filter(|stream| stream.coding().cascade().is_none()).collect();
        let blocks: Vec<_> = streams.iter().flat_map(Stream::blocks).collect();
        let wide = |block: &enec_format::Block<'_>| enec_format::wide_lanes(block.mask);
        let has = |what: &str, found: bool| -> Result {
            ensure!(found, "no golden stream of {} has {what}", dtype.name());
            Ok(())
        };
        has(
            "codec 0 with elements",
            streams.iter().any(|stream| stream.coding() == Coding::Stored && !stream.tail().is_empty()),
        )?;
        has("no elements", streams.iter().any(|stream| stream.elements() == 0))?;
        has("two blocks", streams.iter().any(|stream| stream.layout().blocks() == 2))?;
        has(
            "a tail behind tiles",
            streams.iter().any(|stream| stream.layout().tiles > 0 && !stream.tail().is_empty()),
        )?;
        has("no tail", streams.iter().any(|stream| stream.layout().tiles > 0 && stream.tail().is_empty()))?;
        has("a block without wide lanes", blocks.iter().any(|block| wide(block) == 0))?;
        has("a block of wide lanes only", blocks.iter().any(|block| wide(block) == block.mask.len() * 8))?;
        has("padded rows", blocks.iter().any(|block| wide(block) % 16 != 0 && !block.segment.is_empty()))?;
        has("whole rows", blocks.iter().any(|block| wide(block) == 16 && !block.segment.is_empty()))?;
        has(
            "wide lanes with an empty segment",
            blocks.iter().any(|block| wide(block) > 0 && block.segment.is_empty()),
        )?;
        let widths: BTreeSet<u8> = streams
            .iter()
            .filter_map(|stream| stream.coding().two_windows())
            .map(|windows| windows.common_width())
            .collect();
        has("common width 0", widths.contains(&0))?;
        has("common width E", widths.contains(&dtype.exponent_bits()))?;
    }
    println!("{} golden streams are as the reference writes them", manifest.streams.len());
    Ok(())
}

#[cfg(test)]
#[test]
fn what_is_committed_is_what_the_reference_codec_writes() {
    check().unwrap();
}
