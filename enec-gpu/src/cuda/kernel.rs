//! The kernels by name, and the code that they are in.

use enec_format::Dtype;

/// An entry point of the kernels.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Kernel {
    /// Copies bytes.
    Copy,
    /// Counts the wide lanes of every block, and writes the masks.
    EncodeCount(Dtype),
    /// Places the segments and writes the block tables.
    EncodeScan,
    /// Writes everything else.
    EncodeWrite(Dtype),
    /// Decodes.
    Decode(Dtype),
}

impl Kernel {
    /// Threads of a thread block, in any kernel.
    pub const BLOCK_THREADS: u32 = 256;

    /// Every kernel.
    pub const ALL: [Self; 11] = [
        Kernel::Copy,
        Kernel::EncodeCount(Dtype::Bf16),
        Kernel::EncodeCount(Dtype::F16),
        Kernel::EncodeCount(Dtype::F32),
        Kernel::EncodeScan,
        Kernel::EncodeWrite(Dtype::Bf16),
        Kernel::EncodeWrite(Dtype::F16),
        Kernel::EncodeWrite(Dtype::F32),
        Kernel::Decode(Dtype::Bf16),
        Kernel::Decode(Dtype::F16),
        Kernel::Decode(Dtype::F32),
    ];

    /// The entry point.
    ///
    /// # Panics
    ///
    /// For opaque bytes, which no kernel encodes.
    #[must_use]
    pub fn name(self) -> &'static str {
        match self {
            Kernel::Copy => "enec_copy",
            Kernel::EncodeScan => "enec_encode_scan",
            Kernel::EncodeCount(Dtype::Bf16) => "enec_encode_count_bf16",
            Kernel::EncodeCount(Dtype::F16) => "enec_encode_count_f16",
            Kernel::EncodeCount(Dtype::F32) => "enec_encode_count_f32",
            Kernel::EncodeWrite(Dtype::Bf16) => "enec_encode_write_bf16",
            Kernel::EncodeWrite(Dtype::F16) => "enec_encode_write_f16",
            Kernel::EncodeWrite(Dtype::F32) => "enec_encode_write_f32",
            Kernel::Decode(Dtype::Bf16) => "enec_decode_bf16",
            Kernel::Decode(Dtype::F16) => "enec_decode_f16",
            Kernel::Decode(Dtype::F32) => "enec_decode_f32",
            Kernel::EncodeCount(Dtype::Opaque) | Kernel::EncodeWrite(Dtype::Opaque) | Kernel::Decode(Dtype::Opaque) => {
                unreachable!("plans of opaque bytes have no tiles")
            }
        }
    }
}
