// Reading and writing global memory at any alignment, and copying.
#ifndef ENEC_MEMORY
#define ENEC_MEMORY

#include "lanes.cuh"

// Bytes that a kernel reads, and that nothing writes while it runs.
struct Input {
    const u8 *start;
    bool aligned; // to 16 bytes

    __device__ __forceinline__ explicit Input(u64 address) : start((const u8 *)address), aligned(address % 16 == 0) {}

    __device__ __forceinline__ static Input known_aligned(u64 address) {
        Input input(address);
        input.aligned = true;
        return input;
    }

    // `offset` is a multiple of the access's size in all of the following.
    __device__ __forceinline__ u32 word(u64 offset) const {
        if (aligned) {
            return __ldg((const u16 *)(start + offset));
        }
        return __ldg(start + offset) | __ldg(start + offset + 1) << 8;
    }

    __device__ __forceinline__ u32 pair_of_words(u64 offset) const {
        if (aligned) {
            return __ldg((const u32 *)(start + offset));
        }
        return word(offset) | word(offset + 2) << 16;
    }

    __device__ __forceinline__ Quad quad(u64 offset) const {
        Quad quad;
        if (aligned) {
            const uint2 both = __ldg((const uint2 *)(start + offset));
            quad.half[0] = both.x;
            quad.half[1] = both.y;
        } else {
            quad.half[0] = pair_of_words(offset);
            quad.half[1] = pair_of_words(offset + 4);
        }
        return quad;
    }

    __device__ __forceinline__ uint4 four(u64 offset) const {
        if (aligned) {
            return __ldg((const uint4 *)(start + offset));
        }
        return make_uint4(pair_of_words(offset), pair_of_words(offset + 4), pair_of_words(offset + 8),
                          pair_of_words(offset + 12));
    }
};

// Bytes that a kernel writes. Whole rows are written once and read by no kernel of this launch: they leave the cache first.
struct Output {
    u8 *start;
    bool aligned; // to 16 bytes

    __device__ __forceinline__ explicit Output(u64 address) : start((u8 *)address), aligned(address % 16 == 0) {
        __builtin_assume(__isGlobal(start));
    }

    __device__ __forceinline__ static Output known_aligned(u64 address) {
        Output output(address);
        output.aligned = true;
        return output;
    }

    __device__ __forceinline__ void byte(u64 offset, u32 value) const { start[offset] = (u8)value; }

    __device__ __forceinline__ void word(u64 offset, u32 value) const {
        if (aligned) {
            *(u16 *)(start + offset) = (u16)value;
        } else {
            byte(offset, value);
            byte(offset + 1, value >> 8);
        }
    }

    __device__ __forceinline__ void pair_of_words(u64 offset, u32 value) const {
        if (aligned) {
            *(u32 *)(start + offset) = value;
        } else {
            word(offset, value);
            word(offset + 2, value >> 16);
        }
    }

    __device__ __forceinline__ void quad(u64 offset, Quad value) const {
        if (aligned) {
            __stcs((uint2 *)(start + offset), make_uint2(value.half[0], value.half[1]));
        } else {
            pair_of_words(offset, value.half[0]);
            pair_of_words(offset + 4, value.half[1]);
        }
    }

    __device__ __forceinline__ void four(u64 offset, uint4 value) const {
        if (aligned) {
            __stcs((uint4 *)(start + offset), value);
        } else {
            pair_of_words(offset, value.x);
            pair_of_words(offset + 4, value.y);
            pair_of_words(offset + 8, value.z);
            pair_of_words(offset + 12, value.w);
        }
    }
};

__device__ __forceinline__ u64 align_up(u64 len) { return (len + ALIGNMENT - 1) / ALIGNMENT * ALIGNMENT; }

// The threads of a CTA copy `len` bytes.
__device__ __forceinline__ void copy(u64 to, u64 from, u64 len) {
    const Input source(from);
    const Output target(to);
    u64 done = 0;
    if (source.aligned && target.aligned) {
        constexpr u32 AT_ONCE = 4, STEP = WARPS * 32 * 16;
        const Input aligned_source = Input::known_aligned(from);
        const Output aligned_target = Output::known_aligned(to);
        done = len / 16 * 16;
        for (u64 start = threadIdx.x * 16; start < done; start += AT_ONCE * STEP) {
            uint4 words[AT_ONCE];
#pragma unroll
            for (u32 index = 0; index < AT_ONCE; index++) {
                const u64 at = start + index * STEP;
                words[index] = at < done ? aligned_source.four(at) : make_uint4(0, 0, 0, 0);
            }
#pragma unroll
            for (u32 index = 0; index < AT_ONCE; index++) {
                const u64 at = start + index * STEP;
                if (at < done) {
                    aligned_target.four(at, words[index]);
                }
            }
        }
    }
    for (u64 at = done + threadIdx.x; at < len; at += WARPS * 32) {
        target.byte(at, __ldg(source.start + at));
    }
}

// The threads of a CTA write at most 256 zero bytes.
__device__ __forceinline__ void zero(u64 to, u64 len) {
    if (threadIdx.x < len) {
        Output(to).byte(threadIdx.x, 0);
    }
}

// The job that a CTA belongs to: the last one whose CTAs do not start behind it.
template <class Job> __device__ __forceinline__ const Job &find_job(const Job *jobs, u32 count) {
    const u32 lane = threadIdx.x % 32;
    u32 first = 0;
    while (count > 1) {
        const u32 step = (count + 31) / 32, mine = lane * step;
        const bool starts = mine < count && jobs[first + mine].first_cta <= blockIdx.x;
        // Starts ascend, so the lanes that say yes are the lowest; lane 0 is always one of them.
        const u32 last = (__popc(__ballot_sync(0xFFFFFFFFu, starts)) - 1) * step;
        first += last;
        count = min(step, count - last);
    }
    return jobs[first];
}

#endif
