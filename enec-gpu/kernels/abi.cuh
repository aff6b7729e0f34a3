// What host and kernels share: the tables of jobs, the entry points and their grids.
//
// Every entry point takes (address of a table of jobs in device memory, number of jobs), so that a batch of tensors is one launch. All
// fields are 64 bits wide, except for pairs of 32: there is no padding. Addresses are device addresses; offsets are bytes
// from `stream`. Tables and scratch lie at multiples of 16 bytes; `stream`, `elements`, `from` and `to` may lie anywhere: at multiples of 16
// rows are read and written 8 or 16 bytes per thread, elsewhere byte by byte and much slower.
//
// A launch has WARPS * 32 threads per thread block (CTA), in x only. A job's CTAs follow each other, those of the job before come first: `first_cta`
// is the running sum, the grid is the sum over all jobs, at most 2^31 - 1. A job may have no CTA. No shared memory is asked for at launch.
//
// | entry point                                 | table     | CTAs per job                                     |
// |---------------------------------------------|-----------|--------------------------------------------------|
// | enec_decode_bf16, _f16, _f32                | DecodeJob | ceil(tiles / WARPS), and 1 if there is a tail     |
// | enec_encode_count_bf16, _f16, _f32          | EncodeJob | ceil(tiles / WARPS) + 1                          |
// | enec_encode_scan                            | EncodeJob | one, whatever `first_cta` says                    |
// | enec_encode_write_bf16, _f16, _f32          | EncodeJob | as for counting                                  |
// | enec_copy                                   | CopyJob   | ceil(bytes / COPY_BYTES), but 1 for zeros alone   |
//
// Decoding is one launch per dtype. Encoding is three, in this order on one stream: count (reads the elements; writes masks and
// block summaries), scan (reads the summaries; writes the block tables and the results), write (reads all of these and the elements; writes everything
// else from byte 64 to the end of the stream, or the elements verbatim if the scan decided to store them). Stored plans have no tile
// and are copies. No entry point writes outside of `elements` (decoding), of bytes 64 up to the plan's target length of `stream`, of
// `blocks` and of `result` (encoding), or of `to`.
#ifndef ENEC_ABI
#define ENEC_ABI

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long long u64;

// Tiles of a CTA, one warp each: the tiles of one format block.
#define WARPS 8u
// Bytes of a CTA that copies.
#define COPY_BYTES 65536u

// A range of tiles of a validated stream.
struct DecodeJob {
    u64 first_cta;
    u64 stream;
    u64 elements;       // where the first tile of the range goes
    u64 first_tile;     // of the range, in the tensor
    u64 tiles;          // of the range
    u64 tensor_tiles;   // of the whole tensor
    u64 table;          // offsets of the sections
    u64 mask;
    u64 byte_plane;
    u64 extra_plane;
    u64 low_plane;
    u64 variable;
    u64 variable_len;   // bytes
    u64 tail;           // offset
    u64 tail_len;       // bytes to copy behind the tiles, 0 if the range leaves the tail out
    u32 common_base;
    u32 common_width;
};

// A tensor, or a window of whole blocks of one, with at least one tile.
struct EncodeJob {
    u64 first_cta;
    u64 elements;
    u64 stream;
    u64 tiles;
    u64 tail_len;       // bytes behind the tiles
    u64 table;          // offsets of the sections
    u64 mask;
    u64 byte_plane;
    u64 extra_plane;
    u64 low_plane;
    u64 variable;
    u64 variable_limit; // bytes; beyond them the elements are stored
    u64 first_segment;  // in units of 32 bytes
    u64 blocks;         // address of scratch: 4 bytes per block of 8 tiles, at a multiple of 16
    u64 result;         // address of an EncodeResult, at a multiple of 16
    u32 common_base;
    u32 common_width;
};

// What became of an encode job.
struct EncodeResult {
    u64 variable_len;   // bytes of the variable section, 0 if stored
    u64 coded;          // 1 coded, 0 stored
};

// Bytes copied verbatim, with zeros behind them.
struct CopyJob {
    u64 first_cta;
    u64 from;
    u64 to;
    u64 len;
    u64 zeros;          // at most 64
};

// An entry point of which `ctas` CTAs at least fit a multiprocessor: three leave 80 registers to a thread, two 128.
#ifndef ENTRY
#define ENTRY(name, ctas) extern "C" __global__ void __launch_bounds__(WARPS * 32, ctas) name
#endif

#endif
