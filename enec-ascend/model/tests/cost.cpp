// What the kernels cost by the formula of docs/ascend.md, on weights with a normal distribution: pinned, so that a change shows without a device. The
// figures are estimates for a 910B2, never measurements.
#include "../launch.cpp"

#include "../reference.h"
#include "harness.h"

using namespace enec_model;

namespace {

constexpr uint32_t kCores = 48;
constexpr uint64_t kBlocks = uint64_t{kCores} * 16;
constexpr uint64_t kTileCount = kBlocks * enec::kTiles;

Checks checks;

class Allocation {
   public:
    explicit Allocation(size_t bytes) : bytes_(bytes + 32) {
        start_ = (reinterpret_cast<uint64_t>(bytes_.data()) + 31) / 32 * 32;
        register_memory(reinterpret_cast<void*>(start_), bytes);
    }
    Allocation(const Allocation&) = delete;
    Allocation& operator=(const Allocation&) = delete;
    ~Allocation() { unregister_memory(reinterpret_cast<void*>(start_)); }
    uint64_t address() const { return start_; }
    uint8_t* data() const { return reinterpret_cast<uint8_t*>(start_); }

   private:
    std::vector<uint8_t> bytes_;
    uint64_t start_;
};

// A sum of 8 bytes is close enough to a normal distribution; the same numbers everywhere.
float Weight(uint64_t& state) {
    state ^= state << 13;
    state ^= state >> 7;
    state ^= state << 17;
    int32_t sum = -1020;
    for (uint32_t i = 0; i < 8; ++i) {
        sum += static_cast<int32_t>(state >> (8 * i) & 255);
    }
    return (static_cast<float>(sum) + 0.5F) * (0.05F / 256.0F);
}

void FillElements(uint64_t dtype, uint8_t* bytes) {
    uint64_t state = 88172645463325252U;
    for (uint64_t i = 0; i < kTileCount * enec::kRows * enec::kLanes; ++i) {
        const float weight = Weight(state);
        uint32_t bits;
        std::memcpy(&bits, &weight, 4);
        if (dtype == enec::kDtypeF32) {
            bits |= static_cast<uint32_t>(state >> 20) & 0xFFFF;
            std::memcpy(bytes + 4 * i, &bits, 4);
        } else {
            const auto half_bits = static_cast<uint16_t>((bits >> 16 & 0x8000) | (((bits >> 13) - (112U << 10)) & 0x7FFF));
            const uint16_t word = dtype == enec::kDtypeBf16 ? static_cast<uint16_t>(bits >> 16) : half_bits;
            std::memcpy(bytes + 2 * i, &word, 2);
        }
    }
}

struct Expected {
    uint64_t instructions;  // of one launch over all blocks
    uint64_t vector_cycles;
    uint64_t bytes;
};

// Decoded bytes per second, in GB/s.
double Report(const char* name, uint64_t decoded, const Cost& cost, const Expected& expected) {
    const double rate = static_cast<double>(decoded) / 1e9;
    const double vector = static_cast<double>(cost.max_vector_cycles) / kClockHz;
    const double copy = static_cast<double>(cost.bytes_in + cost.bytes_out) / kBytesPerSecond;
    std::printf("model: %-12s %5.1f instructions %6.0f vector cycles %6.0f bytes a block; vector bound %5.0f, copy bound %5.0f, estimate %5.0f GB/s\n",
                name, static_cast<double>(cost.instructions) / kBlocks, static_cast<double>(cost.vector_cycles) / kBlocks,
                static_cast<double>(cost.bytes_in + cost.bytes_out) / kBlocks, rate / vector, rate / copy, rate / cost.seconds);
    for (const auto& [instruction, tally] : cost.by_name) {
        std::printf("       %-14s %5.1f instructions %6.0f cycles a block\n", instruction.c_str(), static_cast<double>(tally.instructions) / kBlocks,
                    static_cast<double>(tally.cycles) / kBlocks);
    }
    const uint64_t bytes = cost.bytes_in + cost.bytes_out;
    const bool same = cost.instructions == expected.instructions && cost.vector_cycles == expected.vector_cycles && bytes == expected.bytes;
    checks.Expect(same, std::string(name) + " costs what it did",
                  "{" + std::to_string(cost.instructions) + ", " + std::to_string(cost.vector_cycles) + ", " + std::to_string(bytes) + "}");
    return rate / cost.seconds;
}

void Require(const std::string& name, double found, double wanted) {
    checks.Expect(found >= wanted, name + ": at least " + std::to_string(static_cast<int>(wanted)) + " GB/s (model)", std::to_string(found));
}

struct Kind {
    const char* name;
    uint64_t dtype;
    uint64_t element_bytes;
    uint64_t extra_bytes;  // of a tile
    uint64_t base;
    uint64_t width;
    Expected analyse;
    Expected encode;
    Expected decode;
    double encode_wanted;
    double decode_wanted;
};

void Measure(const Kind& kind) {
    const uint64_t decoded = kTileCount * 2048 * kind.element_bytes;
    const Allocation source(decoded);
    const Allocation target(decoded);
    const Allocation summary(kBlocks * 32);
    const Allocation table(kBlocks * 8);
    const Allocation mask(kTileCount * 16);
    const Allocation byte_plane(kTileCount * 2048);
    const Allocation extra_plane(kTileCount * kind.extra_bytes + 32);
    const Allocation low_plane(kTileCount * 256 * kind.width);
    FillElements(kind.dtype, source.data());
    const std::string name = kind.name;
    std::string error;
    Cost cost;
    const Allocation jobs(sizeof(enec::EncodeJob));
    const uint64_t args[3] = {jobs.address(), 1, kBlocks};
    enec::EncodeJob encode{0, kTileCount, kind.dtype, kind.base, kind.width, 0, source.address(), summary.address(), table.address(),
                           mask.address(), byte_plane.address(), extra_plane.address(), low_plane.address(), 0, 0, 0};
    std::memcpy(jobs.data(), &encode, sizeof(encode));
    if (!launch("enec_analyse_v1", kCores, args, 3, Options(), &cost, &error)) {
        checks.Expect(false, name + " analyse", error);
        return;
    }
    const double analyse_rate = Report((name + " analyse").c_str(), decoded, cost, kind.analyse);
    uint64_t end = 0;
    for (uint64_t block = 0; block < kBlocks; ++block) {
        enec::BlockSummary found;
        std::memcpy(&found, summary.data() + block * 32, 32);
        end += (found.wide_width - kind.width) * ((found.wide_lanes + 15) / 16);
        const uint32_t entry[2] = {found.wide_base | found.wide_width << 8, static_cast<uint32_t>(end)};
        std::memcpy(table.data() + block * 8, entry, 8);
    }
    const Allocation variable(end * 32 + 32);
    encode.variable = variable.address();
    encode.variable_len = end * 32;
    std::memcpy(jobs.data(), &encode, sizeof(encode));
    if (!launch("enec_encode_v1", kCores, args, 3, Options(), &cost, &error)) {
        checks.Expect(false, name + " encode", error);
        return;
    }
    const double encode_rate = Report((name + " encode").c_str(), decoded, cost, kind.encode);
    const enec::DecodeJob decode{0, kTileCount, kind.dtype, kind.base, kind.width, 0, 0, kTileCount, table.address(), mask.address(),
                                 byte_plane.address(), extra_plane.address(), low_plane.address(), variable.address(), end * 32,
                                 target.address()};
    std::memcpy(jobs.data(), &decode, sizeof(decode));
    if (!launch("enec_decode_v1", kCores, args, 3, Options(), &cost, &error)) {
        checks.Expect(false, name + " decode", error);
        return;
    }
    const double decode_rate = Report((name + " decode").c_str(), decoded, cost, kind.decode);
    checks.Expect(std::memcmp(source.data(), target.data(), decoded) == 0, name + " comes back", "");
    const double stored = static_cast<double>(kTileCount * (16 + 2048 + kind.extra_bytes + 256 * kind.width) + kBlocks * 8 + end * 32);
    const double both = 1 / (1 / analyse_rate + 1 / encode_rate);
    std::printf("model: %s: ratio %.3f, analyse and encode together %.0f GB/s, decode %.0f GB/s\n", kind.name, static_cast<double>(decoded) / stored,
                both, decode_rate);
    Require(name + " analyse and encode", both, kind.encode_wanted);
    Require(name + " decode", decode_rate, kind.decode_wanted);
}

}  // namespace

int main() {
    const ReferenceEstimate compress = Estimate(kReferenceCompress, kReferenceCompressBarriers, 16 / 1.35);
    const ReferenceEstimate decompress = Estimate(kReferenceDecompress, kReferenceDecompressBarriers, 16 / 1.35);
    for (const auto& [name, estimate] : {std::make_pair("compress", compress), std::make_pair("decompress", decompress)}) {
        std::printf("model: the paper's reference kernel, BF16 %s: %d instructions, %d vector cycles a block; estimate %.0f GB/s\n", name,
                    static_cast<int>(estimate.instructions), static_cast<int>(estimate.vector_cycles), estimate.bytes_per_second / 1e9);
    }
    // What the reference reaches in decoding by this formula is 214, 194 and 315 GB/s, in encoding 357 and 308.
    Measure({"BF16", enec::kDtypeBf16, 2, 0, 121, 3, {26976, 1136064, 25294848}, {34526, 2211134, 44156920}, {42144, 2633760, 44156920}, 1.4 * 357,
             2.5 * 214});
    Measure({"F16", enec::kDtypeF16, 2, 768, 10, 3, {26976, 1136064, 25294848}, {49011, 3006411, 48721272}, {57504, 3418656, 48721272}, 1.4 * 308,
             1.8 * 194});
    Measure({"F32", enec::kDtypeF32, 4, 4096, 121, 3, {35424, 1635264, 50460672}, {43742, 2828606, 94488568}, {58272, 3513888, 94488568}, 500,
             1.8 * 315});
    return checks.Result();
}
