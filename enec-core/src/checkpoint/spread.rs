//! How the exponents of a stream are spread over its codec's two windows or levels.

use enec_format::geometry::MAX_LEVELS;
use enec_format::{Coding, Levels, wide_lanes};

/// Counts over the blocks of a stream.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Spread {
    /// Codec 1: wide lanes.
    pub(crate) wide_lanes: u64,
    /// Codec 2: elements that escape from level `k + 1`.
    pub(crate) escapes: [u64; MAX_LEVELS],
}

impl Spread {
    /// Counts one more block, given its mask, low plane and segment.
    pub(crate) fn add(&mut self, coding: Coding, mask: &[u8], low_plane: &[u8], segment: &[u8]) {
        match coding {
            Coding::TwoWindows(_) => self.wide_lanes += wide_lanes(mask) as u64,
            Coding::Cascade(cascade) => {
                let levels = Levels::count(cascade.levels(), low_plane, segment);
                let further = (2..=cascade.levels()).map(|level| levels.codes(level));
                for (sum, escapes) in self.escapes.iter_mut().zip(further.chain([levels.raw_count()])) {
                    *sum += escapes as u64;
                }
            }
            _ => {}
        }
    }
}
