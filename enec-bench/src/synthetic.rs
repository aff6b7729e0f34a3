//! Generated weights: Gaussian, each row of 4,096 with its own scale, as trained matrices have.

use enec::Dtype;
use rayon::prelude::*;

const ROW: usize = 4096;

/// Little-endian elements that fill `bytes`, the same for the same length and dtype.
pub(crate) fn fill(dtype: Dtype, bytes: &mut [u8]) {
    let element_bytes = dtype.element_bytes();
    bytes.par_chunks_mut(ROW * element_bytes).enumerate().for_each(|(row, bytes)| {
        let mut random = SplitMix64(row as u64);
        let scale = 0.02 * (0.3 * random.gaussian()).exp();
        for element in bytes.chunks_exact_mut(element_bytes) {
            #[expect(clippy::cast_possible_truncation, reason = "rounding to F32 is wanted")]
            let value = (scale * random.gaussian()) as f32;
            match dtype {
                Dtype::F32 => element.copy_from_slice(&value.to_le_bytes()),
                Dtype::F16 => element.copy_from_slice(&half::f16::from_f32(value).to_le_bytes()),
                Dtype::Bf16 | Dtype::Opaque => element.copy_from_slice(&half::bf16::from_f32(value).to_le_bytes()),
            }
        }
    });
}

struct SplitMix64(u64);

impl SplitMix64 {
    /// Uniform in (0, 1].
    fn uniform(&mut self) -> f64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let z = (self.0 ^ (self.0 >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        (((z ^ (z >> 31)) >> 11) + 1) as f64 / (1_u64 << 53) as f64
    }

    fn gaussian(&mut self) -> f64 {
        (-2.0 * self.uniform().ln()).sqrt() * (std::f64::consts::TAU * self.uniform()).cos()
    }
}
