//! The kernels of an instruction set with vectors: each is compiled for every element type and width, and picked once per block.

use std::marker::PhantomData;

use enec_format::{Dtype, TwoWindows};

use super::analyse::Analyse;
use super::cascade::{CascadeBlock, CascadeScratch, CascadeSource, DecodeCascade, EncodeCascade};
use super::decode::DecodeTiles;
use super::encode::EncodePlanes;
use super::float::{Bf16, F16, F32, Float};
use super::isa::{Isa, Kernel, NarrowIsa};
use super::pack::with_width;
use super::{DecodeBlock, EncodeBlock, Kernels, TileTarget, WideLanes, WideRows, behind};

impl<I: Isa> Kernels for I {
    const STREAMS: bool = I::STREAMS;

    fn analyse(self, dtype: Dtype, windows: TwoWindows, elements: &[u8], mask: &mut [u8]) -> WideLanes {
        match dtype {
            Dtype::Bf16 => self.vectorise(Analyse { windows, elements, mask, float: PhantomData::<Bf16> }),
            Dtype::F16 => self.vectorise(Analyse { windows, elements, mask, float: PhantomData::<F16> }),
            Dtype::F32 => self.vectorise(Analyse { windows, elements, mask, float: PhantomData::<F32> }),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
    }

    fn encode(self, block: &EncodeBlock<'_>, planes: [TileTarget<'_, '_>; 3], segment: &mut [u8], wide: &mut WideRows) {
        match block.dtype {
            Dtype::Bf16 => encode_planes::<I, Bf16>(self, block, planes, wide),
            Dtype::F16 => encode_planes::<I, F16>(self, block, planes, wide),
            Dtype::F32 => encode_planes::<I, F32>(self, block, planes, wide),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
        wide.write(block.wide.lanes, segment);
    }

    fn decode(self, block: &DecodeBlock<'_>, target: TileTarget<'_, '_>, wide: &mut WideRows) {
        wide.read(block.lanes, block.segment);
        match block.dtype {
            Dtype::Bf16 => decode_tiles::<I, Bf16>(self, block, target, wide),
            Dtype::F16 => decode_tiles::<I, F16>(self, block, target, wide),
            Dtype::F32 => decode_tiles::<I, F32>(self, block, target, wide),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
    }

    fn decode_cascade(self, block: &CascadeBlock<'_>, target: TileTarget<'_, '_>, scratch: &mut CascadeScratch) {
        macro_rules! decode {
            ($float:ty) => {
                self.narrow().vectorise_with_bits(DecodeCascade {
                    block,
                    target,
                    scratch,
                    float: PhantomData::<$float>,
                })
            };
        }
        match block.dtype {
            Dtype::Bf16 => decode!(Bf16),
            Dtype::F16 => decode!(F16),
            Dtype::F32 => decode!(F32),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
    }

    fn encode_cascade(
        self,
        block: &CascadeSource<'_>,
        planes: [TileTarget<'_, '_>; 3],
        show: &mut dyn FnMut(&[u8]),
        scratch: &mut CascadeScratch,
    ) -> usize {
        macro_rules! encode {
            ($float:ty) => {
                self.narrow().vectorise_with_bits(EncodeCascade {
                    block,
                    planes,
                    show,
                    scratch,
                    float: PhantomData::<$float>,
                })
            };
        }
        match block.dtype {
            Dtype::Bf16 => encode!(Bf16),
            Dtype::F16 => encode!(F16),
            Dtype::F32 => encode!(F32),
            Dtype::Opaque => unreachable!("opaque bytes are always stored"),
        }
    }

    fn prefetch(self, bytes: &[u8]) {
        Isa::prefetch(self, bytes, 0, 0, 1);
    }

    fn stream(self, source: &[u8], target: &mut [u8]) {
        self.vectorise(Stream { source, target });
    }

    fn fence(self) {
        Isa::fence(self);
    }
}

fn encode_planes<I: Isa, F: Float>(
    isa: I,
    block: &EncodeBlock<'_>,
    planes: [TileTarget<'_, '_>; 3],
    wide: &mut WideRows,
) {
    let float = PhantomData::<F>;
    with_width!(I, block.windows.common_width(), common_width => {
        isa.vectorise(EncodePlanes { common_width, block, planes, wide, float });
    });
}

fn decode_tiles<I: Isa, F: Float>(isa: I, block: &DecodeBlock<'_>, target: TileTarget<'_, '_>, wide: &WideRows) {
    let float = PhantomData::<F>;
    with_width!(I, block.common_width, common_width => {
        isa.vectorise(DecodeTiles { common_width, block, wide, target, float });
    });
}

/// See [`Kernels::stream`].
struct Stream<'a> {
    source: &'a [u8],
    target: &'a mut [u8],
}

impl Kernel for Stream<'_> {
    type Output = ();

    #[inline(always)]
    fn run<I: Isa>(self, isa: I) {
        behind::stream(isa, self.source, self.target);
    }
}
