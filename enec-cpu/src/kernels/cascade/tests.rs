//! Every way to move bits on every instruction set against the scalar kernels, block by block.

use enec_format::Dtype;
use enec_format::geometry::{BLOCK_TILES, TILE_BYTE_PLANE_BYTES, TILE_ELEMENTS};

use super::{CascadeBlock, CascadeScratch, CascadeSource, TILE_LOW_BYTES};
#[cfg(target_arch = "x86_64")]
use crate::kernels::Avx2;
use crate::kernels::{Behind, Kernels, Portable, Scalar, TileBytes, TileTarget};

struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0 ^ self.0 >> 29
    }

    fn byte(&mut self) -> u8 {
        (self.next() >> 32).to_le_bytes()[0]
    }
}

/// What a block becomes.
#[derive(Debug, Clone, PartialEq, Eq)]
struct Encoded {
    planes: [Vec<u8>; 3],
    segment: Vec<u8>,
}

fn encode<K: Kernels>(kernels: K, block: &CascadeSource<'_>, scratch: &mut CascadeScratch) -> Encoded {
    let tiles = block.elements.len() / block.dtype.tile_bytes();
    let lens = [TILE_BYTE_PLANE_BYTES, block.dtype.tile_extra_bytes(), TILE_LOW_BYTES].map(|len| tiles * len);
    let mut planes = lens.map(|len| vec![0xA5; len]);
    let mut seen = Vec::new();
    let targets = planes.each_mut().map(|plane| TileTarget::Cached(plane));
    let len = kernels.encode_cascade(block, targets, &mut |tile| seen.extend_from_slice(tile), scratch);
    assert!(seen == block.elements);
    let encoded = Encoded { planes, segment: scratch.segment(len).to_vec() };
    if K::STREAMS {
        // Each target starts elsewhere in a line.
        let mut streamed = lens.map(|len| vec![0xA5; len + 80]);
        let mut shown = lens.map(Vec::with_capacity);
        let mut buffers = [TileBytes::ZERO; 3];
        let ([byte_plane, extra_plane, low_plane], [first, second, third]) = (&mut streamed, &mut buffers);
        let mut behind = [
            Behind::new(&mut byte_plane[1..][..lens[0]], first),
            Behind::new(&mut extra_plane[31..][..lens[1]], second),
            Behind::new(&mut low_plane[64..][..lens[2]], third),
        ];
        let mut show = shown.each_mut().map(|shown| |bytes: &[u8]| shown.extend_from_slice(bytes));
        let mut both = behind.iter_mut().zip(&mut show);
        let targets = std::array::from_fn(|_| {
            let (behind, show) = both.next().unwrap();
            TileTarget::Streamed(behind, show)
        });
        let len = kernels.encode_cascade(block, targets, &mut |_| {}, scratch);
        kernels.fence();
        assert!(scratch.segment(len) == encoded.segment && shown == encoded.planes);
        for ((streamed, start), plane) in streamed.iter().zip([1, 31, 64]).zip(&encoded.planes) {
            assert!(streamed[start..][..plane.len()] == *plane);
            assert!(streamed[..start].iter().chain(&streamed[start + plane.len()..]).all(|&byte| byte == 0xA5));
        }
    }
    encoded
}

fn decode<K: Kernels>(kernels: K, block: &CascadeBlock<'_>, scratch: &mut CascadeScratch) -> Vec<u8> {
    let mut target = vec![0xA5; block.tiles.len() * block.dtype.tile_bytes()];
    kernels.decode_cascade(block, TileTarget::Cached(&mut target), scratch);
    if K::STREAMS {
        let (mut streamed, mut shown) = (vec![0xA5; target.len() + 80], Vec::new());
        let mut buffer = TileBytes::ZERO;
        let mut behind = Behind::new(&mut streamed[15..][..target.len()], &mut buffer);
        let mut show = |tile: &[u8]| shown.extend_from_slice(tile);
        kernels.decode_cascade(block, TileTarget::Streamed(&mut behind, &mut show), scratch);
        kernels.fence();
        assert!(shown == target && streamed[15..][..target.len()] == target);
        assert!(streamed[..15].iter().chain(&streamed[15 + target.len()..]).all(|&byte| byte == 0xA5));
    }
    target
}

fn check(kernels: impl Kernels, scratch: &mut CascadeScratch, random: &mut Random, what: &str) {
    for dtype in Dtype::FLOATS {
        for levels in 1..=5 {
            for round in 0..8_u64 {
                let mut symbols: Vec<u8> = (0..=dtype.exponent_mask()).collect();
                for index in 0..15 {
                    let rest = u64::try_from(symbols.len() - index).unwrap();
                    symbols.swap(index, index + usize::try_from(random.next() % rest).unwrap());
                }
                symbols.truncate(3 * levels);
                let tiles = if round % 2 == 0 { BLOCK_TILES } else { usize::from(random.byte()) % BLOCK_TILES + 1 };
                let elements = elements(dtype, tiles, &symbols, round, random);
                let source = CascadeSource { dtype, levels, symbols: &symbols, elements: &elements };
                let encoded = encode(kernels, &source, scratch);
                let what = format!("{what} {dtype:?} {levels} levels, round {round}");
                assert!(encoded == encode(Scalar, &source, &mut scratch.clone()), "{what}");
                for (start, end) in [(0, tiles), (tiles / 2, tiles), (tiles / 3, tiles * 2 / 3)] {
                    let tile = |plane: &[u8], tiles: usize| plane.len() / tiles;
                    let part = |plane: &[u8]| plane[start * tile(plane, tiles)..end * tile(plane, tiles)].to_vec();
                    let [byte_plane, extra_plane] = [part(&encoded.planes[0]), part(&encoded.planes[1])];
                    let block = CascadeBlock {
                        dtype,
                        levels,
                        symbols: &symbols,
                        tiles: start..end,
                        byte_plane: &byte_plane,
                        extra_plane: &extra_plane,
                        low_plane: &encoded.planes[2],
                        segment: &encoded.segment,
                    };
                    assert!(decode(kernels, &block, scratch) == part(&elements), "{what}, {start}..{end}");
                    // Bytes that were never validated: any codes, and a segment that is too short for them.
                    let mut changed = encoded.clone();
                    changed.planes[2].fill_with(|| random.byte());
                    changed.segment.fill_with(|| random.byte() | random.byte());
                    let cut = usize::try_from(random.next()).unwrap() % (changed.segment.len() + 1);
                    let (low_plane, segment) = (&changed.planes[2][..], &changed.segment[..cut]);
                    let block = CascadeBlock { low_plane, segment, ..block };
                    let expected = decode(Scalar, &block, scratch);
                    assert!(decode(kernels, &block, scratch) == expected, "{what}, {start}..{end} of random codes");
                }
            }
        }
    }
}

/// Elements whose exponents are symbols, the more often the higher their rank, or anything.
fn elements(dtype: Dtype, tiles: usize, symbols: &[u8], round: u64, random: &mut Random) -> Vec<u8> {
    let mut elements = Vec::new();
    for _ in 0..tiles * TILE_ELEMENTS {
        let rank = match round {
            0 | 1 => usize::try_from((random.next() >> 20 | 1 << 40).trailing_zeros()).unwrap(),
            2 | 3 => usize::from(random.byte()) % 20,
            4 => symbols.len() - 1,
            5 => symbols.len(),
            6 => usize::from(random.byte().is_multiple_of(64)) * 14,
            _ => usize::from(random.byte()) % 3,
        };
        let exponent = symbols.get(rank).copied().unwrap_or_else(|| random.byte() & dtype.exponent_mask());
        let (noise, exponent) = ((random.next() >> 32).to_le_bytes(), u32::from(exponent));
        let noise = u32::from_le_bytes([noise[0], noise[1], noise[2], noise[3]]);
        match dtype {
            Dtype::F32 => elements.extend((noise & 0x807F_FFFF | exponent << 23).to_le_bytes()),
            Dtype::F16 => elements.extend((noise & 0x83FF | exponent << 10).to_le_bytes()[..2].iter()),
            _ => elements.extend((noise & 0x807F | exponent << 7).to_le_bytes()[..2].iter()),
        }
    }
    elements
}

#[test]
fn all_kernels_agree_with_the_scalar_ones() {
    let scratch = &mut Box::new(CascadeScratch::ZERO);
    check(Portable, scratch, &mut Random(1), "portable");
    #[cfg(target_arch = "x86_64")]
    if let Some(avx2) = Avx2::new() {
        check(avx2, scratch, &mut Random(2), "avx2");
        check(avx2.without_bmi2(), scratch, &mut Random(3), "avx2 without BMI2");
    }
}
