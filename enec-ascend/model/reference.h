// The paper's reference kernels under the same formula: what their BF16 kernels (exponent width 6, common width 3, hpdps-group/ENEC at 9c7481f) issue
// for a block of 16,384 elements, as counts of elements. They wait for all pipes after nearly every instruction and never copy while they compute, so
// times add up.
#ifndef ENEC_MODEL_REFERENCE_H
#define ENEC_MODEL_REFERENCE_H

#include <cstddef>
#include <cstdint>

namespace enec_model {

struct ReferenceStep {
    const char* name;
    uint32_t times;
    uint32_t elements;
    uint32_t per_cycle;
};

constexpr uint32_t kReferenceElements = 16384;

constexpr ReferenceStep kReferenceCompress[] = {
    {"rotate", 3, 16384, 128},
    {"byte plane: shift", 1, 16384, 128},
    {"byte plane: join", 2, 8192, 128},
    {"exponent: shifts, negation, bias", 6, 16384, 128},
    {"largest code of 16: 8,192", 1, 8192, 128},
    {"largest code of 16: 4,096", 1, 4096, 128},
    {"largest code of 16: 2,048", 1, 2048, 128},
    {"largest code of 16: 1,024", 1, 1024, 128},
    {"CompareScalar", 1, 1024, 128},
    {"mask, 16 times", 4, 256, 128},
    {"GatherMask", 1, 16384, 64},
    {"pack: low bits", 2, 16384, 128},
    {"pack: halves", 2, 8192, 128},
    {"pack: quarters", 5, 4096, 128},
    {"pack: eighths", 2, 2048, 128},
    {"pack: three sixteenths", 2, 3072, 128},
    {"high bits of what was gathered", 1, 1024, 128},
};

constexpr ReferenceStep kReferenceDecompress[] = {
    {"Select", 1, 1024, 128},
    {"CumSum of 64 x 16: transposes", 2, 1024, 128},
    {"CumSum of 64 x 16: sums", 15, 64, 128},
    {"scan: sums", 7, 1024, 128},
    {"scan: GatherMask", 1, 1024, 64},
    {"scan: Broadcast", 1, 64, 8},
    {"scan: Cast", 2, 1024, 64},
    {"offsets of 15 more rows", 15, 1024, 64},
    {"high bits of what was gathered", 1, 1024, 128},
    {"offsets: shift, bias", 2, 16384, 64},
    {"mask, 16 times", 4, 256, 128},
    {"offsets: Select", 1, 16384, 64},
    {"Gather", 1, 16384, 5},
    {"unpack: three sixteenths", 3, 3072, 128},
    {"unpack: eighths", 1, 2048, 128},
    {"unpack: quarters", 3, 4096, 128},
    {"unpack: halves", 1, 8192, 128},
    {"unpack: low bits", 2, 16384, 128},
    {"join, negation, bias", 3, 16384, 128},
    {"byte plane: half", 1, 8192, 128},
    {"byte plane: shift, join", 2, 16384, 128},
    {"rotate", 3, 16384, 128},
};

struct ReferenceEstimate {
    uint64_t instructions;
    uint64_t vector_cycles;  // with 24 for each instruction's head
    double seconds;          // of one block on one core: vector instructions, barriers of 24 cycles, and copies
    double bytes_per_second;  // of 48 cores, decoded bytes
};

constexpr uint32_t kReferenceCompressBarriers = 44;  // for all pipes, with those behind copies
constexpr uint32_t kReferenceDecompressBarriers = 89;

// `stored_bits`: bits per element in the stream, beside the element's own 16.
template <size_t kSteps>
constexpr ReferenceEstimate Estimate(const ReferenceStep (&steps)[kSteps], uint32_t barriers, double stored_bits) {
    constexpr uint32_t kHead = 24;
    constexpr uint32_t kBarrier = 24;
    ReferenceEstimate estimate{0, 0, 0, 0};
    for (const ReferenceStep& step : steps) {
        estimate.instructions += step.times;
        estimate.vector_cycles += uint64_t{step.times} * (kHead + (step.elements + step.per_cycle - 1) / step.per_cycle);
    }
    const double cycles = static_cast<double>(estimate.vector_cycles + kBarrier * barriers);
    const double bytes = kReferenceElements * (16 + stored_bits) / 8;
    estimate.seconds = cycles / 1.8e9 + bytes / (1.6e12 / 48);
    estimate.bytes_per_second = 48 * 2.0 * kReferenceElements / estimate.seconds;
    return estimate;
}

}  // namespace enec_model

#endif
