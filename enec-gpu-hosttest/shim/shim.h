// What kernels see of CUDA when g++ compiles them: one fiber per thread, and a scheduler that runs one warp at a time.
#pragma once

#include <cstdint>
#include <cstring>

#define __global__
#define __device__
#define __forceinline__ inline __attribute__((always_inline))
#define __noinline__ __attribute__((noinline))
// One CTA runs at a time on each thread of the host.
#define __shared__ static __thread
#define __launch_bounds__(...)
#define __builtin_assume(condition) ((void)0)
#define ENTRY(name, ctas) static void name

struct alignas(8) uint2 {
    unsigned x, y;
};
struct alignas(16) uint4 {
    unsigned x, y, z, w;
};
static inline uint2 make_uint2(unsigned x, unsigned y) { return {x, y}; }
static inline uint4 make_uint4(unsigned x, unsigned y, unsigned z, unsigned w) { return {x, y, z, w}; }

namespace shim {

struct Index {
    unsigned x;
};
// Of the fiber that runs.
extern __thread Index thread, cta;

// What all lanes of a warp must arrive at together, or all threads of a CTA.
enum class Meeting : unsigned { SHUFFLE_UP, SHUFFLE_XOR, SHUFFLE, BALLOT, ADD, MAX, MIN, WARP, CTA };

// Leaves `value` for the other lanes, waits for them all, and returns what the 32 of them have left. With a mask that is not full, the run is
// over: no kernel here uses one.
const uint32_t *meet(Meeting meeting, unsigned mask, uint32_t value);

void wait_for_cta();

// One entry point.
struct Kernel {
    const char *name;
    void (*run)(uint64_t jobs, uint32_t count);
};

} // namespace shim

#define threadIdx (shim::thread)
#define blockIdx (shim::cta)

static inline void __syncthreads() { shim::wait_for_cta(); }
static inline void __syncwarp(unsigned mask = ~0u) { shim::meet(shim::Meeting::WARP, mask, 0); }

static inline uint32_t __shfl_sync(unsigned mask, uint32_t value, unsigned lane) {
    return shim::meet(shim::Meeting::SHUFFLE, mask, value)[lane % 32];
}
static inline uint32_t __shfl_up_sync(unsigned mask, uint32_t value, unsigned distance) {
    const unsigned lane = shim::thread.x % 32;
    return shim::meet(shim::Meeting::SHUFFLE_UP, mask, value)[lane >= distance ? lane - distance : lane];
}
static inline uint32_t __shfl_xor_sync(unsigned mask, uint32_t value, unsigned bits) {
    const unsigned lane = shim::thread.x % 32;
    return shim::meet(shim::Meeting::SHUFFLE_XOR, mask, value)[(lane ^ bits) % 32];
}
static inline unsigned __ballot_sync(unsigned mask, int predicate) {
    const uint32_t *all = shim::meet(shim::Meeting::BALLOT, mask, predicate != 0);
    unsigned bits = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        bits |= all[lane] << lane;
    }
    return bits;
}
static inline unsigned __reduce_add_sync(unsigned mask, unsigned value) {
    const uint32_t *all = shim::meet(shim::Meeting::ADD, mask, value);
    unsigned sum = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        sum += all[lane];
    }
    return sum;
}
static inline unsigned __reduce_max_sync(unsigned mask, unsigned value) {
    const uint32_t *all = shim::meet(shim::Meeting::MAX, mask, value);
    unsigned largest = 0;
    for (unsigned lane = 0; lane < 32; lane++) {
        largest = all[lane] > largest ? all[lane] : largest;
    }
    return largest;
}
static inline unsigned __reduce_min_sync(unsigned mask, unsigned value) {
    const uint32_t *all = shim::meet(shim::Meeting::MIN, mask, value);
    unsigned smallest = ~0u;
    for (unsigned lane = 0; lane < 32; lane++) {
        smallest = all[lane] < smallest ? all[lane] : smallest;
    }
    return smallest;
}

static inline int __popc(unsigned value) { return __builtin_popcount(value); }
static inline int __clz(int value) { return value == 0 ? 32 : __builtin_clz((unsigned)value); }
static inline unsigned __byte_perm(unsigned first, unsigned second, unsigned selectors) {
    const uint64_t bytes = (uint64_t)second << 32 | first;
    unsigned result = 0;
    for (unsigned byte = 0; byte < 4; byte++) {
        result |= (unsigned)(bytes >> (selectors >> byte * 4 & 7) * 8 & 0xFF) << byte * 8;
    }
    return result;
}
template <class T> static inline T __ldg(const T *from) { return *from; }
template <class T> static inline void __stcs(T *to, T value) { *to = value; }
static inline bool __isGlobal(const void *) { return true; }

static inline unsigned min(unsigned a, unsigned b) { return a < b ? a : b; }
static inline unsigned max(unsigned a, unsigned b) { return a > b ? a : b; }
static inline unsigned long long min(unsigned long long a, unsigned long long b) { return a < b ? a : b; }
