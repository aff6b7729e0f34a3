//! The golden streams of codec 2.

use std::collections::BTreeSet;

use enec_conformance::golden::Golden;
use enec_conformance::inputs::Input;
use enec_conformance::{Result, ensure};
use enec_format::geometry::{BLOCK_ELEMENTS, TILE_ELEMENTS};
use enec_format::{Dtype, Levels, Stream};

/// Every structural case of codec 2, each as small as it can be.
pub(crate) fn goldens(dtype: Dtype) -> Vec<Golden> {
    let mut goldens = Vec::new();
    let mut add = |name: &str, covers: &str, elements, input, symbols: Vec<u8>, forced| {
        goldens.push(Golden {
            name: format!("{}_cascade_{name}", dtype.name().to_lowercase()),
            covers: covers.into(),
            dtype: dtype.name().into(),
            elements,
            input,
            windows: None,
            symbols: Some(symbols),
            forced,
            input_sha256: String::new(),
            stream_sha256: String::new(),
        });
    };
    let (middle, mask) = (dtype.exponent_mask() / 2, dtype.exponent_mask());
    let top = u64::from(middle);
    let weights = |seed, zeros| Input::Weights { seed, top, zeros };
    let exponents = |seed, low: u64, size| Input::Exponents { seed, low, size };
    // The order of weights: the most frequent exponent first.
    let symbols = |levels: u8| (0..3 * levels).map(|rank| middle - rank).collect::<Vec<u8>>();
    let tile = TILE_ELEMENTS;
    add("short", "fewer elements than a tile: stored", 21, weights(20, 0), symbols(2), false);
    add("incompressible", "stored because coding gains nothing", tile, Input::Uniform { seed: 21 }, symbols(5), false);
    let constant = exponents(22, top, 1);
    add("no_escape", "no escape, empty variable section, odd tail", tile + 1, constant.clone(), symbols(1), false);
    add("one_level", "one level and raw exponents", tile, weights(23, 0), symbols(1), false);
    add("two_levels", "two levels, levels with padding", tile, weights(24, 20), symbols(2), false);
    add("four_levels", "four levels", tile, weights(25, 0), symbols(4), false);
    add("five_levels", "five levels", tile, weights(26, 0), symbols(5), false);
    let second = [middle - 1, middle - 2, middle - 3, middle, 0, 1].to_vec();
    add("whole_units", "a level and a segment without padding, no raw exponent", tile, constant, second, false);
    let unused = (0..6).collect();
    add("all_raw", "all elements escape from every level", tile, exponents(27, top, 4), unused, true);
    let any_order = (0..15).map(|rank| (7 * rank + 3) & mask).collect();
    add("uniform", "symbols in any order, all levels in use", tile, Input::Uniform { seed: 28 }, any_order, true);
    let special = vec![mask, 0, middle, 1, mask - 1, 2];
    add("special", "infinities, NaN payloads, zeros and subnormals", tile, Input::Special, special, true);
    let (count, tail) = (BLOCK_ELEMENTS + tile, usize::from(dtype == Dtype::Bf16));
    let covers = if tail == 1 {
        "a whole block and a short one, with a tail of one element"
    } else {
        "a whole block and a short one"
    };
    add("blocks", covers, count + tail, weights(29, 2), symbols(3), false);
    goldens
}

/// That the goldens are what they say.
pub(crate) fn cases_are_there(dtype: Dtype, streams: &[Stream<'_>]) -> Result {
    let has = |what: &str, found: bool| -> Result {
        ensure!(found, "no golden stream of {} and codec 2 has {what}", dtype.name());
        Ok(())
    };
    let cascades = || streams.iter().filter_map(|stream| Some((stream, stream.coding().cascade()?)));
    let levels: BTreeSet<u8> = cascades().map(|(_, cascade)| cascade.levels()).collect();
    has("each number of levels", levels == (1..=5).collect())?;
    has("two blocks", cascades().any(|(stream, _)| stream.layout().blocks() == 2))?;
    has("a tail", cascades().any(|(stream, _)| !stream.tail().is_empty()))?;
    has("no tail", cascades().any(|(stream, _)| stream.tail().is_empty()))?;
    has("an empty variable section", cascades().any(|(stream, _)| stream.layout().variable.len == 0))?;
    has("symbols that do not descend", cascades().any(|(_, cascade)| !cascade.symbols().is_sorted_by(|a, b| a > b)))?;
    let blocks: Vec<(u8, Levels)> = cascades()
        .flat_map(|(stream, cascade)| {
            let counted = move |block: enec_format::Block<'_>| {
                (cascade.levels(), Levels::count(cascade.levels(), block.low_plane, block.segment))
            };
            stream.blocks().map(counted)
        })
        .collect();
    let level = |levels: &Levels, level: u8| levels.codes(level);
    has("raw exponents", blocks.iter().any(|(_, levels)| levels.raw_count() > 0))?;
    has("escapes, but no raw exponent", blocks.iter().any(|(_, l)| l.raw_count() == 0 && l.segment_len() > 0))?;
    has("raw exponents only", blocks.iter().any(|(_, levels)| levels.raw_count() == level(levels, 1)))?;
    has("a padded level", blocks.iter().any(|(k, levels)| *k > 1 && level(levels, 2) % 16 != 0))?;
    has("a level without padding", blocks.iter().any(|(k, l)| *k > 1 && level(l, 2) % 16 == 0 && level(l, 2) > 0))?;
    has("a last level in use", blocks.iter().any(|(k, levels)| *k == 5 && level(levels, 5) > 0))
}
