// Included by the build script too, which compiles a copy of the kernels with each fault.

/// A fault that the suite must catch: a change of the kernels' sources.
#[derive(Debug, Clone, Copy)]
pub struct Fault {
    /// Its name.
    pub name: &'static str,
    /// The translation units that are compiled with it: the others are those without a fault.
    pub units: &'static [&'static str],
    /// The file that is changed.
    pub file: &'static str,
    /// What is there, exactly once.
    pub original: &'static str,
    /// What it is replaced by.
    pub replacement: &'static str,
    /// The start of the names of the cases that must catch it.
    pub caught_by: &'static str,
    /// The order of warps in which they must.
    pub variant: &'static str,
}

/// Every fault.
pub const FAULTS: &[Fault] = &[
    Fault {
        name: "rank",
        units: &["decode"],
        file: "block.cuh",
        original: "rank = before + __popc(bits & low_bits(shift));",
        replacement: "rank = before + __popc(bits & low_bits(shift + 1));",
        caught_by: "parity/bf16/weights",
        variant: "forward",
    },
    Fault {
        name: "rank_of_tile",
        units: &["encode"],
        file: "block.cuh",
        original: "__shfl_sync(0xFFFFFFFFu, ends - __popc(word), source)",
        replacement: "__shfl_sync(0xFFFFFFFFu, ends - __popc(word), tile * 4)",
        caught_by: "parity/bf16/weights",
        variant: "forward",
    },
    Fault {
        name: "mask_word",
        units: &["encode"],
        file: "encode.cu",
        original: "lane / 8 * 4, word);",
        replacement: "(lane / 8 ^ 1) * 4, word);",
        caught_by: "windows/bf16/wide_lanes",
        variant: "forward",
    },
    Fault {
        name: "mask_of_short_block",
        units: &["decode"],
        file: "block.cuh",
        original: "lane < tiles * (TILE_MASK_BYTES / 4) ?",
        replacement: "lane < tiles * TILE_MASK_BYTES ?",
        caught_by: "parity/bf16/sizes",
        variant: "forward",
    },
    Fault {
        name: "warp_sum",
        units: &["decode"],
        file: "block.cuh",
        original: "distance < 32; distance *= 2",
        replacement: "distance < 16; distance *= 2",
        caught_by: "windows/bf16/wide_lanes",
        variant: "forward",
    },
    Fault {
        name: "barrier_before_summary",
        units: &["encode"],
        file: "encode.cu",
        original: "    __syncthreads();\n    if (threadIdx.x == 0) {\n        Summary of_block",
        replacement: "    if (threadIdx.x == 0) {\n        Summary of_block",
        caught_by: "windows/bf16/wide_lanes",
        variant: "forward",
    },
    Fault {
        name: "segment_offset",
        units: &["decode"],
        file: "decode.cu",
        original: "job.variable + start * SEGMENT_UNIT,",
        replacement: "job.variable + (block == 0 ? 0 : entry.end - start) * SEGMENT_UNIT,",
        caught_by: "windows/bf16/wide_lanes",
        variant: "forward",
    },
    Fault {
        name: "row_padding",
        units: &["encode"],
        file: "encode.cu",
        original: "tile.wide.in_block + lane < row_words) {",
        replacement: "tile.wide.in_block + lane + 1 < row_words) {",
        caught_by: "windows/bf16/wide_lanes",
        variant: "forward",
    },
    Fault {
        name: "section_padding",
        units: &["encode"],
        file: "encode.cu",
        original: "zero(job.stream + mask_end, align_up(mask_end) - mask_end);",
        replacement: "zero(job.stream + mask_end, mask_end % 32);",
        caught_by: "parity/bf16/sizes",
        variant: "forward",
    },
    Fault {
        name: "tail",
        units: &["encode"],
        file: "encode.cu",
        original: "copy(job.stream + tail_start, tail, job.tail_len);",
        replacement: "copy(job.stream + tail_start, tail, job.tail_len / 16 * 16);",
        caught_by: "parity/bf16/tails",
        variant: "forward",
    },
    Fault {
        name: "last_bytes_of_copy",
        units: &["decode", "encode", "copy"],
        file: "memory.cuh",
        original: "for (u64 at = done + threadIdx.x; at < len;",
        replacement: "for (u64 at = done + threadIdx.x; at + 1 < len;",
        caught_by: "parity/bf16/tails",
        variant: "forward",
    },
    Fault {
        name: "guard_bit",
        units: &["decode"],
        file: "decode.cu",
        original: "(wide_base & halves) | pair(0x0100);",
        replacement: "(wide_base & halves);",
        caught_by: "corrupt/bf16/hostile",
        variant: "forward",
    },
    Fault {
        name: "guard_bit_of_count",
        units: &["encode"],
        file: "encode.cu",
        original: "base = pair(job.common_base) | guard;",
        replacement: "base = pair(job.common_base);",
        caught_by: "parity/bf16/",
        variant: "forward",
    },
    Fault {
        name: "bound_of_segment",
        units: &["decode"],
        file: "decode.cu",
        original: "if (!fits || entry.end - start < result.high_width * result.wide.row_units()) {",
        replacement: "if (!fits && false) {",
        caught_by: "corrupt/bf16/changed/device",
        variant: "forward",
    },
];
