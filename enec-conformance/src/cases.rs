//! The cases, one family per file.

mod batch;
mod codec;
mod corpora;
mod corrupt;
mod geometry;
mod golden;
mod info;
mod memory;
mod parity;
mod pieces;
mod placement;
mod ranges;
mod stored;
mod windows;

use crate::Case;

/// Every case of the suite.
#[must_use]
pub fn all() -> Vec<Case> {
    let families = [
        info::cases,
        memory::cases,
        golden::cases,
        parity::cases,
        windows::cases,
        stored::cases,
        placement::cases,
        ranges::cases,
        corrupt::cases,
        batch::cases,
        geometry::cases,
        pieces::cases,
        codec::cases,
        corpora::cases,
    ];
    families.into_iter().flat_map(|cases| cases()).collect()
}
