// Lanes of a tile in registers: a thread holds four adjacent ones, two in each 32-bit register, as 16-bit halves.
#ifndef ENEC_LANES
#define ENEC_LANES

#include "abi.cuh"
#include "format.cuh"

// Four lanes: of one row of elements, or of one row of packed words.
struct Quad {
    u32 half[2];
};

// The same value in both halves.
__device__ constexpr u32 pair(u32 value) { return value * 0x00010001u; }

__device__ constexpr u32 low_bits(u32 width) { return (1u << width) - 1u; }

// A dtype as the kernels need to know it. Common widths from SMALLEST_WIDTH to LARGEST_WIDTH have code of their own.
struct Bf16 {
    static constexpr u32 EXPONENT_BITS = 8, ELEMENT_BYTES = 2, EXTRA_WIDTH = 0, TILE_EXTRA_BYTES = 0, LARGEST_WIDTH = 5;
};
struct F16 {
    static constexpr u32 EXPONENT_BITS = 5, ELEMENT_BYTES = 2, EXTRA_WIDTH = 3, TILE_EXTRA_BYTES = 768, LARGEST_WIDTH = 4;
};
struct F32 {
    static constexpr u32 EXPONENT_BITS = 8, ELEMENT_BYTES = 4, EXTRA_WIDTH = 0, TILE_EXTRA_BYTES = 4096, LARGEST_WIDTH = 5;
};
constexpr u32 SMALLEST_WIDTH = 1;

template <class Float> __device__ constexpr u32 tile_bytes() { return ROWS * LANES * Float::ELEMENT_BYTES; }

// Rotates both halves right by E + 1: sign, exponent and mantissa in their places again.
template <class Float> __device__ __forceinline__ u32 rotate_right(u32 value) {
    constexpr u32 by = Float::EXPONENT_BITS + 1;
    constexpr u32 lower = pair(low_bits(16 - by));
    return (value >> by & lower) | (value << (16 - by) & ~lower);
}

// Rotates both halves left by E + 1: the exponent is the lowest E bits, the byte plane's byte the upper 8.
template <class Float> __device__ __forceinline__ u32 rotate_left(u32 value) {
    constexpr u32 by = Float::EXPONENT_BITS + 1;
    constexpr u32 lower = pair(low_bits(by));
    return (value >> (16 - by) & lower) | (value << by & ~lower);
}

// Shifts by a difference that is known when the kernel is compiled.
__device__ __forceinline__ u32 shift_right(u32 value, int by) { return by >= 0 ? value >> by : value << -by; }

// The `WIDTH` bits of row `row` in each half of packed words, moved up by `up`. After unrolling all but the words is constant.
template <u32 WIDTH> __device__ __forceinline__ u32 unpack(const Quad (&words)[8], u32 half, u32 row, u32 up = 0) {
    if (WIDTH == 0) {
        return 0;
    }
    const u32 bit = row * WIDTH, word = bit / 16, shift = bit % 16;
    const u32 first = shift_right(words[word].half[half], (int)shift - (int)up);
    if (shift + WIDTH <= 16) {
        return first & pair(low_bits(WIDTH) << up);
    }
    const u32 in_first = 16 - shift;
    const u32 second = words[(word + 1) % 8].half[half] << (in_first + up);
    const u32 first_mask = pair(low_bits(in_first) << up);
    return (first & first_mask) | (second & (pair(low_bits(WIDTH) << up) ^ first_mask));
}

// Adds the lowest `WIDTH` bits of each half of row `row`, which lie `up` bits up in `value`, to packed words.
template <u32 WIDTH> __device__ __forceinline__ void pack(Quad (&words)[8], u32 half, u32 row, u32 value, u32 up = 0) {
    if (WIDTH == 0) {
        return;
    }
    const u32 bit = row * WIDTH, word = bit / 16, shift = bit % 16;
    const u32 in_first = shift + WIDTH <= 16 ? WIDTH : 16 - shift;
    words[word].half[half] |= shift_right(value, (int)up - (int)shift) & pair(low_bits(in_first) << shift);
    if (in_first < WIDTH) {
        words[(word + 1) % 8].half[half] |= value >> (in_first + up) & pair(low_bits(WIDTH - in_first));
    }
}

// Calls `body.run<width>()` for a width of SMALLEST to LARGEST.
template <u32 SMALLEST, u32 LARGEST, class Body> __device__ __forceinline__ void with_width(u32 width, Body &body) {
    if constexpr (SMALLEST == LARGEST) {
        body.template run<SMALLEST>();
    } else {
        constexpr u32 MIDDLE = (SMALLEST + LARGEST) / 2;
        if (width <= MIDDLE) {
            with_width<SMALLEST, MIDDLE>(width, body);
        } else {
            with_width<MIDDLE + 1, LARGEST>(width, body);
        }
    }
}

template <class Float> __device__ __forceinline__ bool is_common_width(u32 width) {
    return SMALLEST_WIDTH <= width && width <= Float::LARGEST_WIDTH;
}

// The bits of `words[row * width / 16]` and its neighbour that belong to row `row`, in each half, for widths that are known only at run time.
// `row_of(index)` gives the packed words.
template <class Rows> __device__ __forceinline__ Quad unpack_any(const Rows &row_of, u32 width, u32 row) {
    Quad value = {{0, 0}};
    if (width > 0) {
        const u32 bit = row * width, word = bit / 16, shift = bit % 16;
        const u32 in_first = pair(low_bits(16 - shift)), field = pair(low_bits(width));
        const Quad first = row_of(word), second = row_of(min(word + 1, width - 1));
        for (u32 half = 0; half < 2; half++) {
            value.half[half] = ((first.half[half] >> shift & in_first) | (second.half[half] << (16 - shift) & ~in_first)) & field;
        }
    }
    return value;
}

// Packed word `word` of the lowest `width` bits of all rows, in each half, for widths that are known only at run time. `row_of(index)` gives
// the values.
template <class Rows> __device__ __forceinline__ Quad pack_any(const Rows &row_of, u32 width, u32 word) {
    Quad packed = {{0, 0}};
    for (u32 row = word * 16 / width; row < ROWS && row * width < word * 16 + 16; row++) {
        const Quad value = row_of(row);
        const int shift = (int)(row * width) - (int)(word * 16);
        for (u32 half = 0; half < 2; half++) {
            const u32 bits = value.half[half] & pair(low_bits(width));
            packed.half[half] |= shift >= 0 ? bits << shift & pair(0xFFFF & ~low_bits(shift))
                                            : bits >> -shift & pair(0xFFFF >> -shift);
        }
    }
    return packed;
}

#endif
