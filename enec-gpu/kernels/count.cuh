// The first two launches of encoding: which lanes are wide, and where each block's segment goes.
#ifndef ENEC_COUNT
#define ENEC_COUNT

#include "block.cuh"

namespace {

// One row of a thread's lanes: 16-bit elements, or the upper halves of F32 and the lower ones.
struct Row {
    Quad value;
    Quad lower;
};

template <class Float> __device__ __forceinline__ Row load(const Input &elements, u64 tile, u32 row) {
    const u32 lane = threadIdx.x % 32;
    const u64 at = tile * tile_bytes<Float>() + (row * LANES + lane * 4) * Float::ELEMENT_BYTES;
    Row loaded = {{{0, 0}}, {{0, 0}}};
    if (Float::ELEMENT_BYTES == 2) {
        loaded.value = elements.quad(at);
    } else {
        const uint4 words = elements.four(at);
        loaded.value = Quad{{__byte_perm(words.x, words.y, 0x7632), __byte_perm(words.z, words.w, 0x7632)}};
        loaded.lower = Quad{{__byte_perm(words.x, words.y, 0x5410), __byte_perm(words.z, words.w, 0x5410)}};
    }
    return loaded;
}

template <class Float> __device__ __forceinline__ u32 exponents(u32 value) {
    return value >> (15 - Float::EXPONENT_BITS) & pair(low_bits(Float::EXPONENT_BITS));
}

// Wide lanes of a tile or block, and the range of their exponents.
struct Summary {
    u32 lanes, largest, smallest;

    __device__ __forceinline__ static Summary none() { return Summary{0, 0, 0xFF}; }

    __device__ __forceinline__ void add(const Summary &other) {
        lanes += other.lanes;
        largest = max(largest, other.largest);
        smallest = min(smallest, other.smallest);
    }

    __device__ __forceinline__ static Summary unpack(u32 word) {
        return Summary{word & 0xFFFF, word >> 16 & 0xFF, word >> 24};
    }

    __device__ __forceinline__ u32 packed() const { return lanes | largest << 16 | smallest << 24; }
};

// Writes the mask of a tile, and returns what the thread's lanes add to the summary. Rows are loaded `AT_ONCE`.
template <class Float, int AT_ONCE>
__device__ __forceinline__ Summary analyse(const EncodeJob &job, const Input &elements, const Output &stream, u64 tile) {
    const u32 lane = threadIdx.x % 32;
    const u32 guard = pair(0x0100), base = pair(job.common_base) | guard;
    u32 outside[2] = {0, 0};
    u32 largest[2][2] = {{0, 0}, {0, 0}}, smallest[2][2] = {{~0u, ~0u}, {~0u, ~0u}};
#pragma unroll AT_ONCE
    for (u32 row = 0; row < ROWS; row++) {
        const Row loaded = load<Float>(elements, tile, row);
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 both = exponents<Float>(loaded.value.half[half]);
            // The guard bit is gone where the exponent is above the base.
            outside[half] |= (base - both) ^ guard;
            // The upper half decides a comparison of both unless they are equal, and then either is right.
            const u32 lower_up = both << 16;
            largest[half][0] = max(largest[half][0], lower_up);
            largest[half][1] = max(largest[half][1], both);
            smallest[half][0] = min(smallest[half][0], lower_up);
            smallest[half][1] = min(smallest[half][1], both);
        }
    }
    Summary summary = Summary::none();
    u32 own = 0;
#pragma unroll
    for (u32 index = 0; index < 4; index++) {
        const u32 half = index / 2, upper = index % 2;
        if ((outside[half] >> upper * 16 & 0x1FF) >> job.common_width != 0) {
            own |= 1u << index;
            summary.add(Summary{1, largest[half][upper] >> 16, smallest[half][upper] >> 16});
        }
    }
    u32 word = own << lane % 8 * 4;
#pragma unroll
    for (u32 distance = 1; distance < 8; distance *= 2) {
        word |= __shfl_xor_sync(0xFFFFFFFFu, word, distance);
    }
    if (lane % 8 == 0) {
        stream.pair_of_words(job.mask + tile * TILE_MASK_BYTES + lane / 8 * 4, word);
    }
    return summary;
}

template <class Float> __device__ __forceinline__ void count(const EncodeJob *jobs, u32 count) {
    const EncodeJob &job = find_job(jobs, count);
    const u64 block = blockIdx.x - job.first_cta;
    if (block * BLOCK_TILES >= job.tiles) {
        return;
    }
    const u32 warp = threadIdx.x / 32;
    const u64 tile = block * BLOCK_TILES + warp;
    Summary summary = Summary::none();
    if (tile < job.tiles) {
        const Input elements(job.elements);
        const Output stream(job.stream);
        if (elements.aligned && stream.aligned) {
            summary = analyse<Float, ROWS>(job, Input::known_aligned(job.elements), Output::known_aligned(job.stream), tile);
        } else {
            summary = analyse<Float, 1>(job, elements, stream, tile);
        }
    }
    __shared__ u32 of_warps[WARPS];
    summary.lanes = __reduce_add_sync(0xFFFFFFFFu, summary.lanes);
    summary.largest = __reduce_max_sync(0xFFFFFFFFu, summary.largest);
    summary.smallest = __reduce_min_sync(0xFFFFFFFFu, summary.smallest);
    if (threadIdx.x % 32 == 0) {
        of_warps[warp] = summary.packed();
    }
    __syncthreads();
    if (threadIdx.x == 0) {
        Summary of_block = Summary::none();
        for (u32 index = 0; index < WARPS; index++) {
            of_block.add(Summary::unpack(of_warps[index]));
        }
        Output::known_aligned(job.blocks).pair_of_words(block * 4, of_block.packed());
    }
}

// What a block's summary says of its entry.
struct WideWindow {
    u32 base, width, units;

    __device__ __forceinline__ WideWindow(const Summary &summary, u32 common_width) : base(0), width(common_width), units(0) {
        if (summary.lanes > 0) {
            base = summary.largest;
            width = max(common_width, 32 - __clz((int)(summary.largest - summary.smallest)));
            units = (width - common_width) * ((summary.lanes + SEGMENT_ROW_LANES - 1) / SEGMENT_ROW_LANES);
        }
    }
};

// Blocks of one thread, and of a CTA, in one round of the scan.
constexpr u32 THREAD_BLOCKS = 16, ROUND_BLOCKS = THREAD_BLOCKS * WARPS * 32;

__device__ __forceinline__ void scan(const EncodeJob &job) {
    const u32 lane = threadIdx.x % 32, warp = threadIdx.x / 32;
    const u64 blocks = (job.tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    const Input summaries = Input::known_aligned(job.blocks);
    const Output stream(job.stream);
    __shared__ u32 of_warps[WARPS];
    u64 end = 0;
    for (u64 round = 0; round < blocks; round += ROUND_BLOCKS) {
        const u64 first = round + threadIdx.x * THREAD_BLOCKS;
        u32 units = 0;
        for (u32 index = 0; index < THREAD_BLOCKS && first + index < blocks; index++) {
            units += WideWindow(Summary::unpack(summaries.pair_of_words((first + index) * 4)), job.common_width).units;
        }
        const u32 scanned = warp_scan(units);
        if (lane == 31) {
            of_warps[warp] = scanned;
        }
        __syncthreads();
        u32 before = 0, all = 0;
        for (u32 index = 0; index < WARPS; index++) {
            before += index < warp ? of_warps[index] : 0;
            all += of_warps[index];
        }
        // The next round writes what this one has read.
        __syncthreads();
        u64 own_end = job.first_segment + end + before + scanned - units;
        for (u32 index = 0; index < THREAD_BLOCKS && first + index < blocks; index++) {
            const WideWindow window(Summary::unpack(summaries.pair_of_words((first + index) * 4)), job.common_width);
            own_end += window.units;
            const u32 low = window.base | window.width << 8 | (u32)(own_end >> 32) << 16;
            stream.quad(job.table + (first + index) * TABLE_ENTRY_BYTES, Quad{{low, (u32)own_end}});
        }
        end += all;
    }
    if (threadIdx.x == 0) {
        const bool coded = end <= job.variable_limit / SEGMENT_UNIT;
        const u64 len = coded ? end * SEGMENT_UNIT : 0;
        Output::known_aligned(job.result).four(0, make_uint4((u32)len, (u32)(len >> 32), coded, 0));
    }
}

} // namespace

#endif
