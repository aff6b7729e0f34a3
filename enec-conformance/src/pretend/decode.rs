//! Decoding with faults.

use enec_core::{CheckedDecodeJob, Result, Source, TargetMut};
use enec_format::geometry::{BLOCK_TILES, LANES, TILE_ELEMENTS};
use enec_format::{BlockEntry, Coding, DecodePlan, Dtype, Stream, reference};

use super::encode::exchange_wide_lanes;
use super::pieces::{Pieces, report};
use super::{Fault, Pretend};

impl Pretend {
    /// Decodes, and tells whether the stream changed after its validation.
    pub(super) fn decode_job(&self, job: &mut CheckedDecodeJob<'_, '_>) -> Result<bool> {
        let (plan, source, target, pieces) = job.split();
        let mut stream = self.read(source)?;
        // Kernels are tested with streams whose header does not matter; the rest of the structure does.
        let changed = {
            let mut bytes = stream.clone();
            plan.layout().header(None).write(&mut bytes);
            Stream::open(&bytes).is_err()
        };
        assert!(!(changed && self.has(Fault::ChangedStreamPanics)), "index out of bounds");
        let intact = stream.clone();
        if !changed {
            self.damage_stream(plan, &mut stream);
        }
        let mut elements = vec![0; plan.target_len()];
        let damaged = self.damaged_cascade(self.cascade_tiles(self.damaged_plan(plan)?)?)?;
        reference::decode(&damaged, &stream, &mut elements)?;
        self.damage_elements(plan, &stream, &mut elements);
        let from_device = matches!(source, Source::Device(_));
        if self.has(Fault::DeviceDecodeShifted) && from_device {
            let by = plan.layout().dtype.element_bytes().min(elements.len());
            elements.rotate_left(by);
        }
        if let (Some(pieces), false, TargetMut::Host(_)) = (pieces, from_device, &target) {
            self.report_decoded(plan, &intact, &elements, pieces);
        }
        let mut written = elements.len();
        if self.has(Fault::DecodedTailOmitted) {
            written -= plan.tail().len();
        }
        let device = if let TargetMut::Device(slice) = &target { Some(*slice) } else { None };
        self.write(target, 0, &elements[..written], plan.target_len())?;
        if changed
            && self.has(Fault::ChangedStreamWritesBeyond)
            && let Some(slice) = device
        {
            self.with_memory(slice, |memory| {
                if let Some(byte) = memory.get_mut(slice.range().end + 3) {
                    *byte ^= 1;
                }
            })?;
        }
        Ok(changed)
    }

    fn damaged_plan(&self, plan: &DecodePlan) -> Result<DecodePlan> {
        let tiles = plan.tiles();
        match self.fault {
            Some(Fault::RangeOffByTile) if tiles.start > 0 && plan.tail().is_empty() && !tiles.is_empty() => {
                Ok(plan.clone().with_tiles(tiles.start - 1..tiles.end - 1, false)?)
            }
            Some(Fault::RangeTailIgnored) if !plan.is_whole() => Ok(plan.clone().with_tiles(tiles, false)?),
            _ => Ok(plan.clone()),
        }
    }

    fn damage_stream(&self, plan: &DecodePlan, stream: &mut [u8]) {
        let layout = plan.layout();
        self.damage_cascade(layout, stream);
        let Coding::TwoWindows(windows) = layout.coding else { return };
        match self.fault {
            Some(Fault::DecodedRankWrong) => exchange_wide_lanes(layout, 0, stream),
            Some(Fault::EmptySegmentTakenAsCommon) => {
                for index in 0..layout.blocks() {
                    let entry = layout.block(index).entry;
                    if stream[entry.start + 1] == windows.common_width() {
                        stream[entry.start] = windows.common_base();
                    }
                }
            }
            _ => {}
        }
    }

    fn damage_elements(&self, plan: &DecodePlan, stream: &[u8], elements: &mut [u8]) {
        let (layout, dtype) = (plan.layout(), plan.layout().dtype);
        if dtype == Dtype::Opaque {
            return;
        }
        let tile_of = |element: usize| plan.tiles().start + element / TILE_ELEMENTS;
        for (index, word) in elements.chunks_exact_mut(dtype.element_bytes()).enumerate() {
            let exponent = reference::exponent(dtype, word);
            match (self.fault, layout.coding) {
                (Some(Fault::SubnormalsFlushed), _) if exponent == 0 => clear_mantissa(dtype, word),
                (Some(Fault::NansQuieted), _) if exponent == dtype.exponent_mask() => quiet(dtype, word),
                (Some(Fault::WideBaseSaturates | Fault::CommonBaseSaturates), Coding::TwoWindows(windows))
                    if index / TILE_ELEMENTS < plan.tiles().len() =>
                {
                    let (tile, lane) = (tile_of(index), index % LANES);
                    let block = tile / BLOCK_TILES;
                    let mask = stream[layout.mask.offset + tile * LANES / 8 + lane / 8];
                    let is_wide = mask >> (lane % 8) & 1 == 1;
                    let wide_base = BlockEntry::read(&stream[layout.table.range()], block).wide_base;
                    let base = if is_wide { wide_base } else { windows.common_base() };
                    // An exponent above the base can only come from a subtraction that wrapped.
                    if exponent > base && is_wide == self.has(Fault::WideBaseSaturates) {
                        clear_exponent(dtype, word);
                    }
                }
                _ => {}
            }
        }
    }

    fn report_decoded(&self, plan: &DecodePlan, stream: &[u8], elements: &[u8], sink: &dyn enec_core::PieceSink) {
        let (layout, tiles) = (plan.layout(), plan.tiles());
        if layout.coding == Coding::Stored && !self.has(Fault::StoredPiecesReported) {
            return;
        }
        let has_tail = layout.tail.len > 0;
        let with_tail = plan.tail().len() == layout.tail.len;
        let mut first = tiles.start.div_ceil(BLOCK_TILES);
        let mut end = if tiles.end == layout.tiles && (with_tail || !has_tail) {
            layout.blocks()
        } else {
            tiles.end.min(layout.tiles.saturating_sub(1)) / BLOCK_TILES
        };
        if self.has(Fault::PartialBlocksReported) {
            (first, end) = (tiles.start / BLOCK_TILES, tiles.end.div_ceil(BLOCK_TILES));
        }
        let skipped = (first * BLOCK_TILES).saturating_sub(tiles.start) * layout.dtype.tile_bytes();
        let elements = elements.get(skipped..).unwrap_or(&[]);
        let job = Pieces { layout, first_segment: 0, blocks: first..end.max(first), payload: Some(stream) };
        report(self.fault, &job, elements, sink);
    }
}

fn mantissa_bits(dtype: Dtype) -> usize {
    8 * dtype.element_bytes() - 1 - usize::from(dtype.exponent_bits())
}

fn map_word(word: &mut [u8], change: impl Fn(u32) -> u32) {
    let mut wide = [0; 4];
    wide[..word.len()].copy_from_slice(word);
    wide = change(u32::from_le_bytes(wide)).to_le_bytes();
    word.copy_from_slice(&wide[..word.len()]);
}

fn clear_mantissa(dtype: Dtype, word: &mut [u8]) {
    map_word(word, |word| word & !((1 << mantissa_bits(dtype)) - 1));
}

fn clear_exponent(dtype: Dtype, word: &mut [u8]) {
    map_word(word, |word| word & !(u32::from(dtype.exponent_mask()) << mantissa_bits(dtype)));
}

fn quiet(dtype: Dtype, word: &mut [u8]) {
    let mantissa = (1 << mantissa_bits(dtype)) - 1;
    map_word(word, |word| if word & mantissa == 0 { word } else { word | 1 << (mantissa_bits(dtype) - 1) });
}
