// Encoding in three launches: count the wide lanes, give each block the place of its segment, write.
//
// One warp per tile, four adjacent lanes per thread; a CTA has a block. Nothing depends on the order in which CTAs run.
#include "count.cuh"

namespace {

// Bytes 1 and 3 of two rows' rotated lanes: the byte plane's words of rows t and t + 8.
constexpr u32 BYTES_OF_ROWS = 0x7351;

// A tile and where its parts go, as a thread sees them: offsets include that of the thread's lanes.
struct Tile {
    u64 index;
    u64 byte_plane;
    u64 extra_plane;
    u64 low_plane;
    u32 common_width;
    // What has been loaded, but not looked at: other loads go out meanwhile.
    u32 mask_word;
    u64 start;
    Entry entry;

    // Masks and table are those of the launches before.
    template <class Float>
    __device__ __forceinline__ static Tile of(Float, const EncodeJob &job, const Input &written, u64 index) {
        const u32 lane = threadIdx.x % 32;
        const u64 block = index / BLOCK_TILES;
        const u64 block_tiles = min((u64)BLOCK_TILES, job.tiles - block * BLOCK_TILES);
        const u64 mask = job.mask + block * (BLOCK_TILES * TILE_MASK_BYTES);
        const u64 entry = job.table + block * TABLE_ENTRY_BYTES;
        return Tile{
            index,
            job.byte_plane + index * TILE_BYTE_PLANE_BYTES + lane * 8,
            job.extra_plane + index * Float::TILE_EXTRA_BYTES + lane * 8,
            job.low_plane + index * job.common_width * ROW_BYTES + lane * 8,
            job.common_width,
            WideLanes::mask_word(written, mask, (u32)block_tiles),
            block == 0 ? job.first_segment : Entry(written, entry - TABLE_ENTRY_BYTES).end,
            Entry(written, entry),
        };
    }
};

// The wide lanes of a tile, and what they are given.
struct Wide {
    WideLanes lanes;
    u64 segment;
    u32 high_width;
    Quad base; // of each lane

    __device__ __forceinline__ static Wide of(const EncodeJob &job, const Tile &tile) {
        Wide wide = {
            WideLanes::of(tile.mask_word, (u32)(tile.index % BLOCK_TILES)),
            job.variable + (tile.start - job.first_segment) * SEGMENT_UNIT,
            tile.entry.width - job.common_width,
            {{0, 0}},
        };
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 halves = wide.lanes.halves(half);
            wide.base.half[half] = (pair(job.common_base) & ~halves) | (pair(tile.entry.base) & halves);
        }
        return wide;
    }

    // The warp of a block's first tile ends the rows of its segment.
    __device__ __forceinline__ void pad(const Output &stream, const Tile &tile) const {
        const u32 word = lanes.in_block + threadIdx.x % 32, row_words = lanes.row_units() * SEGMENT_ROW_LANES;
        if (tile.index % BLOCK_TILES == 0 && word < row_words) {
            for (u32 row = 0; row < high_width; row++) {
                stream.word(segment + (u64)(row * row_words + word) * 2, 0);
            }
        }
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
    Wide wide;
    Quad differences[ROWS];

    __device__ __forceinline__ Lanes(const EncodeJob &job, const Input &elements, const Output &stream, const Tile &tile)
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
        wide = Wide::of(job, tile);
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
                first = wide.base.half[half] - (first & mask);
                second = wide.base.half[half] - (second & mask);
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
        const Compaction compaction(lanes.wide.lanes.own);
#pragma unroll
        for (u32 row = 0; row < WIDTH; row++) {
            compaction.store(lanes.stream, lanes.wide.lanes, lanes.wide.segment, row, words[row]);
        }
    }
};

// The same for any widths and any alignment, word by word.
template <class Float>
__device__ __forceinline__ void write_any(const EncodeJob &job, const Input &elements, const Output &stream, const Tile &tile) {
    const Wide wide = Wide::of(job, tile);
    const u32 exponent_mask = pair(low_bits(Float::EXPONENT_BITS));
    const auto rotated = [&](u32 row) {
        const Quad value = load<Float>(elements, tile.index, row).value;
        return Quad{{rotate_left<Float>(value.half[0]), rotate_left<Float>(value.half[1])}};
    };
    const auto low = [&](u32 row) {
        const Quad value = rotated(row);
        return Quad{{wide.base.half[0] - (value.half[0] & exponent_mask), wide.base.half[1] - (value.half[1] & exponent_mask)}};
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
    const Compaction compaction(wide.lanes.own);
#pragma unroll 1
    for (u32 word = 0; word < wide.high_width; word++) {
        compaction.store(stream, wide.lanes, wide.segment, word, pack_any(high, wide.high_width, word));
    }
    wide.pad(stream, tile);
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
    const Tile tile = Tile::of(Float(), job, Input(job.stream), index);
    if (!elements.aligned || !stream.aligned || !is_common_width<Float>(tile.common_width)) {
        write_any<Float>(job, elements, stream, tile);
        return;
    }
    const Input aligned_elements = Input::known_aligned(job.elements);
    const Output aligned_stream = Output::known_aligned(job.stream);
    const Lanes<Float> lanes(job, aligned_elements, aligned_stream, tile);
    PackLow<Float> low{lanes};
    with_width<SMALLEST_WIDTH, Float::LARGEST_WIDTH>(tile.common_width, low);
    PackHigh<Float> high{lanes};
    with_width<0, Float::EXPONENT_BITS - SMALLEST_WIDTH>(lanes.wide.high_width, high);
    lanes.wide.pad(aligned_stream, tile);
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
