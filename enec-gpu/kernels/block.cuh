// The wide lanes of a block: which they are, their ranks, and where their words lie.
#ifndef ENEC_BLOCK
#define ENEC_BLOCK

#include "memory.cuh"

// An entry of the block table.
struct Entry {
    u32 base, width;
    u64 end; // in units of 32 bytes

    __device__ __forceinline__ Entry(const Input &stream, u64 offset) {
        const Quad bytes = stream.quad(offset);
        base = bytes.half[0] & 0xFF;
        width = bytes.half[0] >> 8 & 0xFF;
        end = (u64)(bytes.half[0] >> 16) << 32 | bytes.half[1];
    }
};

// The inclusive sums of a value over the lanes of a warp.
__device__ __forceinline__ u32 warp_scan(u32 value) {
    const u32 lane = threadIdx.x % 32;
#pragma unroll
    for (u32 distance = 1; distance < 32; distance *= 2) {
        const u32 before = __shfl_up_sync(0xFFFFFFFFu, value, distance);
        value += lane >= distance ? before : 0;
    }
    return value;
}

// The wide lanes of one tile, as the thread that holds four of its lanes sees them.
struct WideLanes {
    u32 in_block; // wide lanes of the block
    u32 rank;     // wide lanes of the block before this thread's lanes
    u32 own;      // one bit for each of this thread's lanes

    // One word of the block's masks per lane of the warp. `mask` is the offset of the first.
    __device__ __forceinline__ static u32 mask_word(const Input &stream, u64 mask, u32 tiles) {
        const u32 lane = threadIdx.x % 32;
        return lane < tiles * (TILE_MASK_BYTES / 4) ? stream.pair_of_words(mask + lane * 4) : 0;
    }

    // All ranks come from the same copy of the masks, so that none reaches the block's count, whatever the bytes say.
    __device__ __forceinline__ static WideLanes of(u32 word, u32 tile) {
        const u32 lane = threadIdx.x % 32;
        const u32 ends = warp_scan(__popc(word));
        const u32 in_block = __shfl_sync(0xFFFFFFFFu, ends, 31);
        const u32 source = tile * 4 + lane / 8, shift = lane % 8 * 4;
        const u32 bits = __shfl_sync(0xFFFFFFFFu, word, source);
        const u32 before = __shfl_sync(0xFFFFFFFFu, ends - __popc(word), source);
        return WideLanes{in_block, before + __popc(bits & low_bits(shift)), bits >> shift & 0xF};
    }

    // Units of one row of the block's segment.
    __device__ __forceinline__ u32 row_units() const { return (in_block + SEGMENT_ROW_LANES - 1) / SEGMENT_ROW_LANES; }

    // All bits in the halves of the wide lanes.
    __device__ __forceinline__ u32 halves(u32 half) const {
        const u32 bits = own >> half * 2;
        return (bits & 1 ? 0x0000FFFFu : 0) | (bits & 2 ? 0xFFFF0000u : 0);
    }
};

// Puts the words of a thread's wide lanes, which are neighbours in each row of a segment, into the places of these lanes.
struct Expansion {
    u32 selectors[2];

    // The last of four words is zero if there is a common lane to take it.
    __device__ __forceinline__ explicit Expansion(u32 own) {
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 first = own >> half * 2 & 1 ? __popc(own & low_bits(half * 2)) : 3;
            const u32 second = own >> half * 2 & 2 ? __popc(own & low_bits(half * 2 + 1)) : 3;
            selectors[half] = 0x1010 + 0x22 * first + 0x2200 * second;
        }
    }

    // Row `row` of a segment.
    __device__ __forceinline__ Quad load(const Input &stream, const WideLanes &wide, u64 segment, u32 row) const {
        const u64 at = segment + (u64)(row * wide.row_units()) * SEGMENT_UNIT + wide.rank * 2;
        const u32 count = __popc(wide.own);
        u32 words[4];
#pragma unroll
        for (u32 index = 0; index < 4; index++) {
            words[index] = index < count ? stream.word(at + index * 2) : 0;
        }
        const u32 first = words[0] | words[1] << 16, second = words[2] | words[3] << 16;
        return Quad{{__byte_perm(first, second, selectors[0]), __byte_perm(first, second, selectors[1])}};
    }
};

#endif
