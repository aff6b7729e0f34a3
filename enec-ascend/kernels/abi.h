// What host and kernels agree on: entry points, job records, geometry. Rust mirrors this file in `enec-ascend/src/abi.rs`. The version is part of
// the entry points' names, so that a host refuses kernels of another.
//
// Every entry point takes three 64-bit arguments: the address of an array of job records in device memory, their number, and the
// number of work items of all jobs together. One work item is one format block (8 tiles; the last of a tensor has 1 to 8). A launch may
// have any number of cores from 1 to 65,535: core `c` of `C` takes the items from `items * c / C` to `items * (c + 1) / C`, and no core
// waits for another. `items` is at most 2^47.
//
// Encoding is two launches, with a prefix sum on the host between them:
//
//   enec_analyse_v1   reads  `source`
//                  writes `mask` (16 bytes per tile) and `summary` (one BlockSummary per block)
//   host           reads the summaries, makes the block table, decides on the stored rule, writes the table into `table`
//   enec_encode_v1    reads  `source`, `mask`, `table`
//                  writes `byte_plane`, `extra_plane`, `low_plane`, and `variable` (each block's segment at its own place)
//
// Decoding is one:
//
//   enec_decode_v1    reads  `table`, `mask`, `byte_plane`, `extra_plane`, `low_plane`, `variable`
//                  writes `target`
//
// Kernels touch whole tiles only. Tail, header, table and the padding behind every section are the host's.
//
// All addresses are multiples of 32 bytes, but `table`, which is a multiple of 8. Nothing is read or written outside the bytes that a
// section has; a section that is empty may have address 0. Buffers that are written overlap nothing else of the launch.
#ifndef ENEC_KERNELS_ABI_H
#define ENEC_KERNELS_ABI_H

#include <stdint.h>

namespace enec {

constexpr uint32_t kDtypeBf16 = 1;
constexpr uint32_t kDtypeF16 = 2;
constexpr uint32_t kDtypeF32 = 3;

// One tensor, or window of whole blocks, to encode. 128 bytes. Records lie one behind the other, `first_item` ascending.
struct EncodeJob {
    uint64_t first_item;     // blocks of all jobs before this one
    uint64_t tiles;          // whole tiles of the source, at least 1; there are ceil(tiles / 8) blocks
    uint64_t dtype;          // 1 BF16, 2 F16, 3 F32
    uint64_t common_base;    // b < 2^E
    uint64_t common_width;   // m <= E
    uint64_t first_segment;  // what the first block's segment starts at in the table, in units of 32 bytes; it lies at byte 0 of `variable`
    uint64_t source;         // elements: 4,096 bytes per tile, F32 8,192
    uint64_t summary;        // 32 bytes per block
    uint64_t table;          // 8 bytes per block, as in the stream
    uint64_t mask;           // 16 bytes per tile
    uint64_t byte_plane;     // 2,048 bytes per tile
    uint64_t extra_plane;    // BF16 none, F16 768 bytes per tile, F32 4,096
    uint64_t low_plane;      // 256 m bytes per tile
    uint64_t variable;       // the segments
    uint64_t variable_len;   // bytes that may be written there; blocks whose segment would lie beyond write none
    uint64_t reserved;       // 0
};

// One stream, or range of its tiles, to decode. 128 bytes. Records lie one behind the other, `first_item` ascending. The number of items of
// a job is ceil(end_tile / 8) - floor(first_tile / 8); a job without tiles has no record.
struct DecodeJob {
    uint64_t first_item;     // blocks of all jobs before this one
    uint64_t tiles;          // whole tiles of the stream
    uint64_t dtype;          // as above
    uint64_t common_base;
    uint64_t common_width;
    uint64_t first_segment;  // as above; 0 for a whole stream
    uint64_t first_tile;     // the range to decode, first_tile < end_tile <= tiles
    uint64_t end_tile;
    uint64_t table;          // all sections are those of the whole stream, whatever the range
    uint64_t mask;
    uint64_t byte_plane;
    uint64_t extra_plane;
    uint64_t low_plane;
    uint64_t variable;
    uint64_t variable_len;   // bytes there; a segment beyond, or of another length than its mask says, counts as zeros
    uint64_t target;         // the first byte of `first_tile`
};

// What `enec_analyse_v1` finds out about a block. 32 bytes, so that two cores never write into one 32-byte sector.
struct BlockSummary {
    uint32_t wide_base;   // B; 0 without a wide lane
    uint32_t wide_width;  // n; m without a wide lane
    uint32_t wide_lanes;  // P; the segment has 32 (n - m) ceil(P / 16) bytes
    uint32_t reserved[5];  // 0
};

static_assert(sizeof(EncodeJob) == 128 && sizeof(DecodeJob) == 128 && sizeof(BlockSummary) == 32, "records have fixed sizes");

}  // namespace enec

#endif
