//! BMI2, which moves bits by masks.

use std::arch::x86_64::*;

use crate::kernels::cascade::Bits;

/// Proof that the processor has BMI2, and that it moves bits in a few cycles.
#[derive(Debug, Clone, Copy)]
pub(super) struct Bmi2(());

impl Bmi2 {
    /// The proof, if the processor has it.
    pub(super) fn new() -> Option<Self> {
        (is_x86_feature_detected!("bmi2") && !moves_bits_in_microcode()).then_some(Self(()))
    }
}

/// Whether this is a processor of AMD's before Zen 3: they have PDEP and PEXT, but take dozens to hundreds of cycles for one.
#[allow(unused_unsafe, reason = "newer compilers know the instruction to be safe, the oldest supported one does not")]
fn moves_bits_in_microcode() -> bool {
    // SAFETY: every x86-64 processor has the instruction.
    let (vendor, version) = unsafe { (__cpuid(0), __cpuid(1)) };
    let name = [vendor.ebx, vendor.edx, vendor.ecx].map(u32::to_le_bytes);
    let is_amd = [*b"AuthenticAMD", *b"HygonGenuine"].iter().any(|known| *known.as_chunks().0 == name);
    let family = (version.eax >> 8 & 0xF) + (version.eax >> 20 & 0xFF);
    is_amd && family < 0x19
}

impl Bits for Bmi2 {
    #[inline(always)]
    fn spread(self, pairs: u64, mask: u64) -> u64 {
        // SAFETY: a `Bmi2` exists only if the processor has BMI2, and the intrinsic has no other precondition.
        unsafe { _pdep_u64(pairs, mask) }
    }

    #[inline(always)]
    fn gather(self, pairs: u64, mask: u64) -> u64 {
        // SAFETY: as above.
        unsafe { _pext_u64(pairs, mask) }
    }
}
