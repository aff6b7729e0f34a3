//! Faults of codec 2.

use enec_core::Result;
use enec_format::geometry::{BLOCK_TILES, LEVEL_SYMBOLS, SEGMENT_UNIT};
use enec_format::{BlockEntry, Cascade, Coding, DecodePlan, Layout, Levels};

use super::{Fault, Pretend};

/// Calls `change` with the levels and the bytes of every segment of a cascade.
pub(super) fn each_segment(layout: &Layout, first_segment: u64, bytes: &mut [u8], change: impl Fn(&Levels, &mut [u8])) {
    let Coding::Cascade(cascade) = layout.coding else { return };
    for index in 0..layout.blocks() {
        let table = &bytes[layout.table.range()];
        let start = if index == 0 { first_segment } else { BlockEntry::start(table, index) };
        let units = start - first_segment..BlockEntry::read(table, index).end - first_segment;
        let byte = |units: u64| layout.variable.offset + usize::try_from(units).unwrap_or(0) * SEGMENT_UNIT;
        let segment = byte(units.start)..byte(units.end);
        let levels = Levels::count(cascade.levels(), &bytes[layout.block(index).low_plane], &bytes[segment.clone()]);
        change(&levels, &mut bytes[segment]);
    }
}

impl Pretend {
    /// Another plan of the same stream, which leads to wrong elements.
    pub(super) fn damaged_cascade(&self, plan: DecodePlan) -> Result<DecodePlan> {
        let Coding::Cascade(cascade) = plan.layout().coding else { return Ok(plan) };
        let mut symbols = cascade.symbols().to_vec();
        if !self.has(Fault::CascadeLastLevelForgotten) || symbols.len() == LEVEL_SYMBOLS {
            return Ok(plan);
        }
        let last = symbols.len() - LEVEL_SYMBOLS;
        symbols[last - LEVEL_SYMBOLS..].rotate_left(LEVEL_SYMBOLS);
        let mut layout = plan.layout().clone();
        layout.coding = Cascade::new(layout.dtype, &symbols)?.into();
        Ok(DecodePlan::of_layout(layout).with_tiles(plan.tiles(), !plan.tail().is_empty())?)
    }

    /// Makes raw exponents wrong.
    pub(super) fn damage_cascade(&self, layout: &Layout, stream: &mut [u8]) {
        let Coding::Cascade(cascade) = layout.coding else { return };
        match self.fault {
            Some(Fault::CascadeRawDropped) => {
                each_segment(layout, 0, stream, |levels, segment| segment[levels.raw()].fill(0));
            }
            Some(Fault::CascadeRawTakenAsSymbol) => each_segment(layout, 0, stream, |levels, segment| {
                for exponent in &mut segment[levels.raw()] {
                    if let Some(rank) = cascade.symbols().iter().position(|symbol| symbol == exponent) {
                        *exponent = cascade.symbols()[(rank + 1) % cascade.symbols().len()];
                    }
                }
            }),
            _ => {}
        }
    }

    /// The tiles that are decoded instead of those of the plan.
    pub(super) fn cascade_tiles(&self, plan: DecodePlan) -> Result<DecodePlan> {
        let tiles = plan.tiles();
        let within = tiles.start % BLOCK_TILES;
        let is_hit = plan.layout().coding.cascade().is_some() && within > 0 && !tiles.is_empty();
        if !self.has(Fault::CascadeTileStartsAtBlock) || !is_hit || !plan.tail().is_empty() {
            return Ok(plan);
        }
        Ok(plan.with_tiles(tiles.start - within..tiles.end - within, false)?)
    }
}
