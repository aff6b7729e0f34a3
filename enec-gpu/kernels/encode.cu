// Encoding in three launches: count the wide lanes, give each block the place of its segment, write.
//
// One warp per tile, four adjacent lanes per thread; a CTA has a block. Nothing depends on the order in which CTAs run.
#include "block.cuh"

namespace {

// Bytes 1 and 3 of two rows' rotated lanes: the byte plane's words of rows t and t + 8.
constexpr u32 BYTES_OF_ROWS = 0x7351;

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

// A tile and where its parts go, as a thread sees them: offsets include that of the thread's lanes.
struct Tile {
    u64 index;
    u64 byte_plane;
    u64 extra_plane;
    u64 low_plane;
    u64 segment;
    WideLanes wide;
    Quad base; // of each lane
    u32 common_width;
    u32 high_width;

    template <class Float>
    __device__ __forceinline__ static Tile of(Float, const EncodeJob &job, const Input &written, u64 index) {
        const u32 lane = threadIdx.x % 32;
        const u64 block = index / BLOCK_TILES;
        const u64 block_tiles = min((u64)BLOCK_TILES, job.tiles - block * BLOCK_TILES);
        const u64 entry_at = job.table + block * TABLE_ENTRY_BYTES;
        const Entry entry(written, entry_at);
        const u64 start = block == 0 ? job.first_segment : Entry(written, entry_at - TABLE_ENTRY_BYTES).end;
        Tile tile = {
            index,
            job.byte_plane + index * TILE_BYTE_PLANE_BYTES + lane * 8,
            job.extra_plane + index * Float::TILE_EXTRA_BYTES + lane * 8,
            job.low_plane + index * job.common_width * ROW_BYTES + lane * 8,
            job.variable + (start - job.first_segment) * SEGMENT_UNIT,
            WideLanes(written, job.mask + block * (BLOCK_TILES * TILE_MASK_BYTES), (u32)block_tiles,
                      (u32)(index % BLOCK_TILES)),
            {{0, 0}},
            job.common_width,
            entry.width - job.common_width,
        };
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 halves = tile.wide.halves(half);
            tile.base.half[half] = (pair(job.common_base) & ~halves) | (pair(entry.base) & halves);
        }
        return tile;
    }
};

// Puts the words of a thread's wide lanes next to each other.
struct Compaction {
    u32 selectors[2];

    __device__ __forceinline__ explicit Compaction(u32 own) : selectors{0, 0} {
#pragma unroll
        for (u32 lane = 0; lane < 4; lane++) {
            const u32 rank = __popc(own & low_bits(lane));
            const u32 bytes = (own >> lane & 1) * (0x10 + 0x22 * lane) << rank % 2 * 8;
            selectors[0] |= rank < 2 ? bytes : 0;
            selectors[1] |= rank < 2 ? 0 : bytes;
        }
    }

    // Writes row `row` of a segment.
    __device__ __forceinline__ void store(const Output &stream, const WideLanes &wide, u64 segment, u32 row, Quad value) const {
        const u64 at = segment + (u64)(row * wide.row_units()) * SEGMENT_UNIT + wide.rank * 2;
        const u32 count = __popc(wide.own);
#pragma unroll
        for (u32 index = 0; index < 4; index++) {
            const u32 both = __byte_perm(value.half[0], value.half[1], selectors[index / 2]);
            if (index < count) {
                stream.word(at + index * 2, both >> index % 2 * 16);
            }
        }
    }
};

// A thread's lanes of a tile: the differences of the exponents from their lanes' bases.
template <class Float> struct Lanes {
    const Output &stream;
    const Tile &tile;
    Quad differences[ROWS];

    __device__ __forceinline__ Lanes(const Input &elements, const Output &stream, const Tile &tile)
        : stream(stream), tile(tile) {
        Quad extra[8] = {};
#pragma unroll
        for (u32 row = 0; row < ROWS; row++) {
            const Row loaded = load<Float>(elements, tile.index, row);
            differences[row] = loaded.value;
            if (Float::ELEMENT_BYTES == 4) {
                stream.quad(tile.extra_plane + row * ROW_BYTES, loaded.lower);
            }
        }
#pragma unroll
        for (u32 row = 0; row < ROWS / 2; row++) {
            Quad bytes;
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                u32 &first = differences[row].half[half], &second = differences[row + ROWS / 2].half[half];
                first = rotate_left<Float>(first);
                second = rotate_left<Float>(second);
                bytes.half[half] = __byte_perm(first, second, BYTES_OF_ROWS);
                pack<Float::EXTRA_WIDTH>(extra, half, row, first, Float::EXPONENT_BITS);
                pack<Float::EXTRA_WIDTH>(extra, half, row + ROWS / 2, second, Float::EXPONENT_BITS);
                const u32 mask = pair(low_bits(Float::EXPONENT_BITS));
                first = tile.base.half[half] - (first & mask);
                second = tile.base.half[half] - (second & mask);
            }
            stream.quad(tile.byte_plane + row * ROW_BYTES, bytes);
        }
#pragma unroll
        for (u32 row = 0; row < Float::EXTRA_WIDTH; row++) {
            stream.quad(tile.extra_plane + row * ROW_BYTES, extra[row]);
        }
    }
};

template <class Float> struct PackLow {
    const Lanes<Float> &lanes;

    template <u32 WIDTH> __device__ __forceinline__ void run() {
        Quad words[8] = {};
#pragma unroll
        for (u32 row = 0; row < ROWS; row++) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                pack<WIDTH>(words, half, row, lanes.differences[row].half[half]);
            }
        }
#pragma unroll
        for (u32 row = 0; row < WIDTH; row++) {
            lanes.stream.quad(lanes.tile.low_plane + row * ROW_BYTES, words[row]);
        }
    }
};

template <class Float> struct PackHigh {
    const Lanes<Float> &lanes;

    template <u32 WIDTH> __device__ __forceinline__ void run() {
        Quad words[8] = {};
#pragma unroll
        for (u32 row = 0; row < ROWS; row++) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                pack<WIDTH>(words, half, row, lanes.differences[row].half[half] >> lanes.tile.common_width);
            }
        }
        const Compaction compaction(lanes.tile.wide.own);
#pragma unroll
        for (u32 row = 0; row < WIDTH; row++) {
            compaction.store(lanes.stream, lanes.tile.wide, lanes.tile.segment, row, words[row]);
        }
    }
};

// The same for any widths and any alignment, word by word.
template <class Float> __device__ __forceinline__ void write_any(const Input elements, const Output stream, const Tile tile) {
    const u32 exponent_mask = pair(low_bits(Float::EXPONENT_BITS));
    const auto rotated = [&](u32 row) {
        const Quad value = load<Float>(elements, tile.index, row).value;
        return Quad{{rotate_left<Float>(value.half[0]), rotate_left<Float>(value.half[1])}};
    };
    const auto low = [&](u32 row) {
        const Quad value = rotated(row);
        return Quad{{tile.base.half[0] - (value.half[0] & exponent_mask), tile.base.half[1] - (value.half[1] & exponent_mask)}};
    };
    const auto high = [&](u32 row) {
        const Quad value = low(row);
        return Quad{{value.half[0] >> tile.common_width, value.half[1] >> tile.common_width}};
    };
    const auto extra = [&](u32 row) {
        const Quad value = rotated(row);
        return Quad{{value.half[0] >> Float::EXPONENT_BITS, value.half[1] >> Float::EXPONENT_BITS}};
    };
#pragma unroll 1
    for (u32 row = 0; row < ROWS / 2; row++) {
        const Quad first = rotated(row), second = rotated(row + ROWS / 2);
        const Quad bytes = {{__byte_perm(first.half[0], second.half[0], BYTES_OF_ROWS),
                             __byte_perm(first.half[1], second.half[1], BYTES_OF_ROWS)}};
        stream.quad(tile.byte_plane + row * ROW_BYTES, bytes);
    }
    if (Float::ELEMENT_BYTES == 4) {
#pragma unroll 1
        for (u32 row = 0; row < ROWS; row++) {
            stream.quad(tile.extra_plane + row * ROW_BYTES, load<Float>(elements, tile.index, row).lower);
        }
    }
    if (Float::EXTRA_WIDTH > 0) {
#pragma unroll 1
        for (u32 word = 0; word < Float::EXTRA_WIDTH; word++) {
            stream.quad(tile.extra_plane + word * ROW_BYTES, pack_any(extra, Float::EXTRA_WIDTH, word));
        }
    }
#pragma unroll 1
    for (u32 word = 0; word < tile.common_width; word++) {
        stream.quad(tile.low_plane + word * ROW_BYTES, pack_any(low, tile.common_width, word));
    }
    const Compaction compaction(tile.wide.own);
#pragma unroll 1
    for (u32 word = 0; word < tile.high_width; word++) {
        compaction.store(stream, tile.wide, tile.segment, word, pack_any(high, tile.high_width, word));
    }
}

// Writes what belongs to no tile: the tail, and all sections' padding.
__device__ __forceinline__ void finish(const EncodeJob &job, const EncodeResult &result, u64 tail) {
    const u64 blocks = (job.tiles + BLOCK_TILES - 1) / BLOCK_TILES;
    const u64 table_end = job.table + blocks * TABLE_ENTRY_BYTES, mask_end = job.mask + job.tiles * TILE_MASK_BYTES;
    const u64 variable_end = job.variable + result.variable_len;
    zero(job.stream + table_end, align_up(table_end) - table_end);
    zero(job.stream + mask_end, align_up(mask_end) - mask_end);
    zero(job.stream + variable_end, align_up(variable_end) - variable_end);
    const u64 tail_start = align_up(variable_end), tail_end = tail_start + job.tail_len;
    copy(job.stream + tail_start, tail, job.tail_len);
    zero(job.stream + tail_end, align_up(tail_end) - tail_end);
}

// Writes a CTA's share of a stream that is stored.
template <class Float> __device__ __forceinline__ void store(const EncodeJob &job, u64 block) {
    const u64 len = job.tiles * tile_bytes<Float>();
    const u64 start = min(len, block * (BLOCK_TILES * tile_bytes<Float>()));
    const u64 end = min(len, start + BLOCK_TILES * tile_bytes<Float>());
    const u64 target = job.stream + HEADER_BYTES;
    if (start < end) {
        copy(target + start, job.elements + start, end - start);
    } else {
        const u64 all = len + job.tail_len;
        copy(target + len, job.elements + len, job.tail_len);
        zero(target + all, align_up(all) - all);
    }
}

template <class Float> __device__ __forceinline__ void write(const EncodeJob *jobs, u32 count) {
    const EncodeJob &job = find_job(jobs, count);
    const uint4 words = Input::known_aligned(job.result).four(0);
    const EncodeResult result = {(u64)words.y << 32 | words.x, words.z};
    const u64 block = blockIdx.x - job.first_cta;
    if (!result.coded) {
        store<Float>(job, block);
        return;
    }
    if (block * BLOCK_TILES >= job.tiles) {
        finish(job, result, job.elements + job.tiles * tile_bytes<Float>());
        return;
    }
    const u64 index = block * BLOCK_TILES + threadIdx.x / 32;
    if (index >= job.tiles) {
        return;
    }
    const Input elements(job.elements);
    const Output stream(job.stream);
    // Masks and table are those of the launches before.
    const Tile tile = Tile::of(Float(), job, Input(job.stream), index);
    if (!elements.aligned || !stream.aligned || !is_common_width<Float>(tile.common_width)) {
        write_any<Float>(elements, stream, tile);
    } else {
        const Input aligned_elements = Input::known_aligned(job.elements);
        const Output aligned_stream = Output::known_aligned(job.stream);
        const Lanes<Float> lanes(aligned_elements, aligned_stream, tile);
        PackLow<Float> low{lanes};
        with_width<SMALLEST_WIDTH, Float::LARGEST_WIDTH>(tile.common_width, low);
        PackHigh<Float> high{lanes};
        with_width<0, Float::EXPONENT_BITS - SMALLEST_WIDTH>(tile.high_width, high);
    }
    // The first tile's warp ends the rows of the segment.
    const u32 lane = threadIdx.x % 32, row_words = tile.wide.row_units() * SEGMENT_ROW_LANES;
    if (index % BLOCK_TILES == 0 && tile.wide.in_block + lane < row_words) {
        for (u32 row = 0; row < tile.high_width; row++) {
            stream.word(tile.segment + (u64)(row * row_words + tile.wide.in_block + lane) * 2, 0);
        }
    }
}

} // namespace

ENTRY(enec_encode_count_bf16, 3)(const EncodeJob *jobs, u32 count_of_jobs) { count<Bf16>(jobs, count_of_jobs); }
ENTRY(enec_encode_count_f16, 3)(const EncodeJob *jobs, u32 count_of_jobs) { count<F16>(jobs, count_of_jobs); }
ENTRY(enec_encode_count_f32, 3)(const EncodeJob *jobs, u32 count_of_jobs) { count<F32>(jobs, count_of_jobs); }

// One CTA per job.
ENTRY(enec_encode_scan, 3)(const EncodeJob *jobs, u32) { scan(jobs[blockIdx.x]); }

ENTRY(enec_encode_write_bf16, 3)(const EncodeJob *jobs, u32 count_of_jobs) { write<Bf16>(jobs, count_of_jobs); }
ENTRY(enec_encode_write_f16, 3)(const EncodeJob *jobs, u32 count_of_jobs) { write<F16>(jobs, count_of_jobs); }
ENTRY(enec_encode_write_f32, 3)(const EncodeJob *jobs, u32 count_of_jobs) { write<F32>(jobs, count_of_jobs); }
