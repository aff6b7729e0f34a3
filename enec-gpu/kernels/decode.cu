// Decoding: one warp per tile, four adjacent lanes per thread.
//
// Three steps, so that no pair of widths needs code of its own: everything is loaded; the wide lanes' high bits are unpacked, specialised on
// their width; the low bits are unpacked and all parts joined, specialised on the common width.
#include "block.cuh"

namespace {

// Bytes of two lanes' differences and of their words of the byte plane: rows 0 to 7 take its low bytes, rows 8 to 15 its high ones.
constexpr u32 JOIN_LOW_BYTES = 0x6240, JOIN_HIGH_BYTES = 0x7250;

// A tile and where its parts lie, as a thread sees them: offsets include that of the thread's lanes.
struct Tile {
    u64 byte_plane;
    u64 extra_plane;
    u64 low_plane;
    u64 elements;
    u32 common_width;
    // What has been loaded, but not looked at: other loads go out meanwhile.
    u32 index_in_block;
    u32 mask_word;
    u64 start;
    Entry entry;

    template <class Float>
    __device__ __forceinline__ static Tile of(Float, const DecodeJob &job, const Input &stream, u64 index) {
        const u32 lane = threadIdx.x % 32;
        const u64 tile = job.first_tile + index, block = tile / BLOCK_TILES;
        const u64 block_tiles = min((u64)BLOCK_TILES, job.tensor_tiles - block * BLOCK_TILES);
        const u64 mask = job.mask + block * (BLOCK_TILES * TILE_MASK_BYTES);
        const u64 entry = job.table + block * TABLE_ENTRY_BYTES;
        const u32 common_width = min(job.common_width, Float::EXPONENT_BITS);
        return Tile{
            job.byte_plane + tile * TILE_BYTE_PLANE_BYTES + lane * 8,
            job.extra_plane + tile * Float::TILE_EXTRA_BYTES + lane * 8,
            job.low_plane + tile * common_width * ROW_BYTES + lane * 8,
            index * tile_bytes<Float>() + lane * (4 * Float::ELEMENT_BYTES),
            common_width,
            (u32)(tile % BLOCK_TILES),
            WideLanes::mask_word(stream, mask, (u32)block_tiles),
            block == 0 ? 0 : Entry(stream, entry - TABLE_ENTRY_BYTES).end,
            Entry(stream, entry),
        };
    }
};

// The wide lanes of a tile, and what they are given.
struct Wide {
    WideLanes lanes;
    u64 segment;
    u32 high_width;
    Quad base; // of each lane, with a guard bit above

    template <class Float>
    __device__ __forceinline__ static Wide of(Float, const DecodeJob &job, const Tile &tile) {
        const Entry &entry = tile.entry;
        Wide wide = {
            WideLanes::of(tile.mask_word, tile.index_in_block),
            job.variable + tile.start * SEGMENT_UNIT,
            min(entry.width, Float::EXPONENT_BITS),
            {{0, 0}},
        };
        // The stream has been validated, but its bytes may have changed since: whatever the table says now, nothing is read outside of
        // the variable section, and no width exceeds the exponent's.
        const bool fits = tile.start <= entry.end && entry.end <= job.variable_len / SEGMENT_UNIT;
        wide.high_width = wide.high_width > tile.common_width ? wide.high_width - tile.common_width : 0;
        if (!fits || entry.end - tile.start < wide.high_width * wide.lanes.row_units()) {
            wide.high_width = 0;
        }
        const u32 common_base = pair(job.common_base), wide_base = pair(entry.base & low_bits(Float::EXPONENT_BITS));
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            const u32 halves = wide.lanes.halves(half);
            wide.base.half[half] = (common_base & ~halves) | (wide_base & halves) | pair(0x0100);
        }
        return wide;
    }
};

// One row's elements, without the lower halves of F32, of their parts.
template <class Float>
__device__ __forceinline__ u32 join(u32 base, u32 low, u32 high, u32 common_width, u32 extra, u32 bytes, u32 selector) {
    // Both differences together are at most 2^E - 1: the guard bit keeps the borrow out of the other half.
    u32 exponents = base - low - (high << common_width);
    if (Float::EXTRA_WIDTH > 0) {
        exponents = (exponents & pair(low_bits(Float::EXPONENT_BITS))) | extra;
    }
    return rotate_right<Float>(__byte_perm(exponents, bytes, selector));
}

template <class Float>
__device__ __forceinline__ void store(const Input &stream, const Output &elements, const Tile &tile, u32 row, Quad value) {
    if (Float::ELEMENT_BYTES == 2) {
        elements.quad(tile.elements + row * ROW_BYTES, value);
    } else {
        const Quad lower = stream.quad(tile.extra_plane + row * ROW_BYTES);
        u32 words[4];
#pragma unroll
        for (u32 half = 0; half < 2; half++) {
            words[half * 2] = __byte_perm(lower.half[half], value.half[half], 0x5410);
            words[half * 2 + 1] = __byte_perm(lower.half[half], value.half[half], 0x7632);
        }
        elements.four(tile.elements + row * (2 * ROW_BYTES), make_uint4(words[0], words[1], words[2], words[3]));
    }
}

// A thread's lanes of a tile.
template <class Float> struct Lanes {
    const Input &stream;
    const Output &elements;
    const Tile &tile;
    Wide wide;
    Quad low[8];      // packed words of the low plane
    Quad bytes[8];    // the byte plane
    Quad extra[8];    // packed words of the extra plane, F16 only
    Quad high[8];     // packed words of the segment
    Quad rows[ROWS];  // the high bits

    __device__ __forceinline__ Lanes(const DecodeJob &job, const Input &stream, const Output &elements, const Tile &tile)
        : stream(stream), elements(elements), tile(tile) {
#pragma unroll
        for (u32 row = 0; row < 8; row++) {
            bytes[row] = stream.quad(tile.byte_plane + row * ROW_BYTES);
            low[row] = Quad{{0, 0}};
            if (row < tile.common_width) {
                low[row] = stream.quad(tile.low_plane + row * ROW_BYTES);
            }
            if (Float::EXTRA_WIDTH > 0 && row < 3) {
                extra[row] = stream.quad(tile.extra_plane + row * ROW_BYTES);
            }
        }
        wide = Wide::of(Float(), job, tile);
    }
};

template <class Float> struct UnpackHigh {
    Lanes<Float> &lanes;

    template <u32 WIDTH> __device__ __forceinline__ void run() {
        const Expansion expansion(lanes.wide.lanes.own);
#pragma unroll
        for (u32 row = 0; row < WIDTH; row++) {
            lanes.high[row] = expansion.load(lanes.stream, lanes.wide.lanes, lanes.wide.segment, row);
        }
#pragma unroll
        for (u32 row = 0; row < ROWS; row++) {
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                lanes.rows[row].half[half] = unpack<WIDTH>(lanes.high, half, row);
            }
        }
    }
};

template <class Float> struct Join {
    Lanes<Float> &lanes;

    template <u32 WIDTH> __device__ __forceinline__ void run() {
#pragma unroll
        for (u32 row = 0; row < ROWS; row++) {
            Quad value;
#pragma unroll
            for (u32 half = 0; half < 2; half++) {
                const u32 low = unpack<WIDTH>(lanes.low, half, row);
                const u32 extra = unpack<Float::EXTRA_WIDTH>(lanes.extra, half, row, Float::EXPONENT_BITS);
                const u32 bytes = lanes.bytes[row % (ROWS / 2)].half[half];
                const u32 selector = row < ROWS / 2 ? JOIN_LOW_BYTES : JOIN_HIGH_BYTES;
                const u32 base = lanes.wide.base.half[half];
                value.half[half] = join<Float>(base, low, lanes.rows[row].half[half], WIDTH, extra, bytes, selector);
            }
            store<Float>(lanes.stream, lanes.elements, lanes.tile, row, value);
        }
    }
};

// The same for any widths and any alignment, row by row.
template <class Float>
__device__ __forceinline__ void decode_any(const DecodeJob &job, const Input &stream, const Output &elements, const Tile &tile) {
    const Wide wide = Wide::of(Float(), job, tile);
    const Expansion expansion(wide.lanes.own);
    const auto low_row = [&](u32 row) { return stream.quad(tile.low_plane + row * ROW_BYTES); };
    const auto extra_row = [&](u32 row) { return stream.quad(tile.extra_plane + row * ROW_BYTES); };
    const auto high_row = [&](u32 row) { return expansion.load(stream, wide.lanes, wide.segment, row); };
#pragma unroll 1
    for (u32 row = 0; row < ROWS; row++) {
        const Quad low = unpack_any(low_row, tile.common_width, row);
        const Quad high = unpack_any(high_row, wide.high_width, row);
        const Quad bytes = stream.quad(tile.byte_plane + row % (ROWS / 2) * ROW_BYTES);
        const u32 selector = row < ROWS / 2 ? JOIN_LOW_BYTES : JOIN_HIGH_BYTES;
        Quad extra = {{0, 0}};
        if (Float::EXTRA_WIDTH > 0) {
            extra = unpack_any(extra_row, Float::EXTRA_WIDTH, row);
        }
        Quad value;
        for (u32 half = 0; half < 2; half++) {
            value.half[half] = join<Float>(wide.base.half[half], low.half[half], high.half[half], tile.common_width,
                                           extra.half[half] << Float::EXPONENT_BITS, bytes.half[half], selector);
        }
        store<Float>(stream, elements, tile, row, value);
    }
}

template <class Float> __device__ __forceinline__ void decode(const DecodeJob *jobs, u32 count) {
    const DecodeJob &job = find_job(jobs, count);
    const u64 cta = blockIdx.x - job.first_cta;
    if (cta * WARPS >= job.tiles) {
        copy(job.elements + job.tiles * tile_bytes<Float>(), job.stream + job.tail, job.tail_len);
        return;
    }
    const u64 index = cta * WARPS + threadIdx.x / 32;
    if (index >= job.tiles) {
        return;
    }
    const Input stream(job.stream);
    const Output elements(job.elements);
    const Tile tile = Tile::of(Float(), job, stream, index);
    if (!stream.aligned || !elements.aligned || !is_common_width<Float>(tile.common_width)) {
        decode_any<Float>(job, stream, elements, tile);
        return;
    }
    const Input aligned_stream = Input::known_aligned(job.stream);
    const Output aligned_elements = Output::known_aligned(job.elements);
    Lanes<Float> lanes(job, aligned_stream, aligned_elements, tile);
    UnpackHigh<Float> high{lanes};
    with_width<0, Float::EXPONENT_BITS - SMALLEST_WIDTH>(lanes.wide.high_width, high);
    Join<Float> join{lanes};
    with_width<SMALLEST_WIDTH, Float::LARGEST_WIDTH>(tile.common_width, join);
}

} // namespace

ENTRY(enec_decode_bf16, 3)(const DecodeJob *jobs, u32 count) { decode<Bf16>(jobs, count); }
ENTRY(enec_decode_f16, 3)(const DecodeJob *jobs, u32 count) { decode<F16>(jobs, count); }
ENTRY(enec_decode_f32, 2)(const DecodeJob *jobs, u32 count) { decode<F32>(jobs, count); }
