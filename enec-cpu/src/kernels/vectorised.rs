//! The kernels of an instruction set with vectors: each is compiled for every element type and width, and picked once per block.

use std::marker::PhantomData;

use enec_format::{Dtype, TwoWindows};

use super::analyse::Analyse;
use super::decode::{DecodeTiles, UnpackSegment};
use super::encode::{EncodePlanes, PackSegment};
use super::float::{Bf16, F16, F32, Float};
use super::isa::Isa;
use super::{DecodeBlock, EncodeBlock, EncodedParts, Kernels, Scratch, WideLanes};

/// Calls a kernel that is generic over a width with the width at hand.
macro_rules! with_width {
    ($width:expr, $kernel:ident => $call:expr) => {
        match $width {
            0 => {
                const $kernel: usize = 0;
                $call
            }
            1 => {
                const $kernel: usize = 1;
                $call
            }
            2 => {
                const $kernel: usize = 2;
                $call
            }
            3 => {
                const $kernel: usize = 3;
                $call
            }
            4 => {
                const $kernel: usize = 4;
                $call
            }
            5 => {
                const $kernel: usize = 5;
                $call
            }
            6 => {
                const $kernel: usize = 6;
                $call
            }
            7 => {
                const $kernel: usize = 7;
                $call
            }
            _ => {
                const $kernel: usize = 8;
                $call
            }
        }
    };
}

impl<I: Isa> Kernels for I {
    fn analyse(self, dtype: Dtype, windows: TwoWindows, elements: &[u8], mask: &mut [u8]) -> WideLanes {
        match dtype {
            Dtype::Bf16 => self.vectorise(Analyse { windows, elements, mask, float: PhantomData::<Bf16> }),
            Dtype::F16 => self.vectorise(Analyse { windows, elements, mask, float: PhantomData::<F16> }),
            Dtype::F32 => self.vectorise(Analyse { windows, elements, mask, float: PhantomData::<F32> }),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
    }

    fn encode(self, block: &EncodeBlock<'_>, parts: &mut EncodedParts<'_>, scratch: &mut Scratch) {
        match block.dtype {
            Dtype::Bf16 => encode_planes::<I, Bf16>(self, block, parts, scratch),
            Dtype::F16 => encode_planes::<I, F16>(self, block, parts, scratch),
            Dtype::F32 => encode_planes::<I, F32>(self, block, parts, scratch),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
        let common_width = usize::from(block.windows.common_width());
        if !parts.segment.is_empty() {
            with_width!(block.wide.high_width(block.windows), H => {
                self.vectorise(PackSegment::<H> { common_width, wide: &scratch.wide, segment: parts.segment });
            });
        }
    }

    fn decode(self, block: &DecodeBlock<'_>, target: &mut [u8], scratch: &mut Scratch) {
        let common_width = usize::from(block.common_width);
        if block.high_width == 0 {
            scratch.wide.clear(block.lanes);
        } else if !block.segment.is_empty() {
            with_width!(block.high_width, H => {
                self.vectorise(UnpackSegment::<H> { common_width, segment: block.segment, wide: &mut scratch.wide });
            });
        }
        match block.dtype {
            Dtype::Bf16 => decode_tiles::<I, Bf16>(self, block, target, scratch),
            Dtype::F16 => decode_tiles::<I, F16>(self, block, target, scratch),
            Dtype::F32 => decode_tiles::<I, F32>(self, block, target, scratch),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
    }
}

fn encode_planes<I: Isa, F: Float>(
    isa: I,
    block: &EncodeBlock<'_>,
    parts: &mut EncodedParts<'_>,
    scratch: &mut Scratch,
) {
    let (wide, float) = (&mut *scratch.wide, PhantomData::<F>);
    with_width!(block.windows.common_width(), M => {
        isa.vectorise(EncodePlanes::<F, M> { block, parts, wide, float });
    });
}

fn decode_tiles<I: Isa, F: Float>(isa: I, block: &DecodeBlock<'_>, target: &mut [u8], scratch: &Scratch) {
    let (wide, float) = (&*scratch.wide, PhantomData::<F>);
    with_width!(block.common_width, M => {
        isa.vectorise(DecodeTiles::<F, M> { block, wide, target, float });
    });
}
