// What the kernels cost by the formula of docs/ascend.md, on weights with a normal distribution: pinned, so that a change shows without a device. The
// figures are estimates for a 910B2, never measurements.
#include "../launch.cpp"

#include "../reference.h"
#include "harness.h"

using namespace enec_model;

namespace {

constexpr uint32_t kCores = 48;
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

// A sum of 12 uniform numbers is close enough to a normal distribution (standard deviation 0.05); the same numbers everywhere.
float Weight(uint64_t& state) {
    int32_t sum = -6 * 65535;
    for (uint32_t i = 0; i < 12; ++i) {
        if (i % 4 == 0) {
            state ^= state << 13;
            state ^= state >> 7;
            state ^= state << 17;
        }
        sum += static_cast<int32_t>(state >> (16 * (i % 4)) & 0xFFFF);
    }
    return (static_cast<float>(sum) + 0.5F) * (0.05F / 65536.0F);
}

void FillElements(uint64_t dtype, uint64_t tiles, uint8_t* bytes) {
    uint64_t state = 88172645463325252U;
    for (uint64_t i = 0; i < tiles * enec::kRows * enec::kLanes; ++i) {
        const float weight = Weight(state);
        uint32_t bits;
        std::memcpy(&bits, &weight, 4);
        if (dtype == enec::kDtypeF32) {
            bits |= static_cast<uint32_t>(state >> 20) & 0xFFFF;
            std::memcpy(bytes + 4 * i, &bits, 4);
        } else {
            const bool tiny = (bits >> 23 & 255) <= 112;  // no normal half
            const auto half_bits = static_cast<uint16_t>((bits >> 16 & 0x8000) | (tiny ? 0 : ((bits >> 13) - (112U << 10)) & 0x7FFF));
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
double Report(const char* name, uint64_t blocks, uint64_t decoded, const Cost& cost, const Expected& expected) {
    const auto count = static_cast<double>(blocks);
    const double rate = static_cast<double>(decoded) / 1e9;
    const double vector = static_cast<double>(cost.max_vector_cycles) / kClockHz;
    const double copy = static_cast<double>(cost.bytes_in + cost.bytes_out) / kBytesPerSecond;
    std::printf("model: %-12s %5.1f instructions %6.0f vector cycles %6.0f bytes a block; vector bound %5.0f, copy bound %5.0f, estimate %5.0f GB/s\n",
                name, static_cast<double>(cost.instructions) / count, static_cast<double>(cost.vector_cycles) / count,
                static_cast<double>(cost.bytes_in + cost.bytes_out) / count, rate / vector, rate / copy, rate / cost.seconds);
    for (const auto& [instruction, tally] : cost.by_name) {
        std::printf("       %-14s %5.1f instructions %6.0f cycles a block\n", instruction.c_str(), static_cast<double>(tally.instructions) / count,
                    static_cast<double>(tally.cycles) / count);
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
    uint64_t blocks_per_core;
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
    const uint64_t blocks = kCores * kind.blocks_per_core;
    const uint64_t tiles = blocks * enec::kTiles;
    const uint64_t decoded = tiles * 2048 * kind.element_bytes;
    const Allocation source(decoded);
    const Allocation target(decoded);
    const Allocation summary(blocks * 32);
    const Allocation table(blocks * 8);
    const Allocation mask(tiles * 16);
    const Allocation byte_plane(tiles * 2048);
    const Allocation extra_plane(tiles * kind.extra_bytes + 32);
    const Allocation low_plane(tiles * 256 * kind.width);
    FillElements(kind.dtype, tiles, source.data());
    const std::string name = kind.name;
    std::string error;
    Cost cost;
    const Allocation jobs(sizeof(enec::EncodeJob));
    const uint64_t args[3] = {jobs.address(), 1, blocks};
    enec::EncodeJob encode{0, tiles, kind.dtype, kind.base, kind.width, 0, source.address(), summary.address(), table.address(),
                           mask.address(), byte_plane.address(), extra_plane.address(), low_plane.address(), 0, 0, 0};
    std::memcpy(jobs.data(), &encode, sizeof(encode));
    if (!launch("enec_analyse_v1", kCores, args, 3, Options(), &cost, &error)) {
        checks.Expect(false, name + " analyse", error);
        return;
    }
    const double analyse_rate = Report((name + " analyse").c_str(), blocks, decoded, cost, kind.analyse);
    uint64_t end = 0;
    for (uint64_t block = 0; block < blocks; ++block) {
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
    const double encode_rate = Report((name + " encode").c_str(), blocks, decoded, cost, kind.encode);
    const enec::DecodeJob decode{0, tiles, kind.dtype, kind.base, kind.width, 0, 0, tiles, table.address(), mask.address(),
                                 byte_plane.address(), extra_plane.address(), low_plane.address(), variable.address(), end * 32,
                                 target.address()};
    std::memcpy(jobs.data(), &decode, sizeof(decode));
    if (!launch("enec_decode_v1", kCores, args, 3, Options(), &cost, &error)) {
        checks.Expect(false, name + " decode", error);
        return;
    }
    const double decode_rate = Report((name + " decode").c_str(), blocks, decoded, cost, kind.decode);
    checks.Expect(std::memcmp(source.data(), target.data(), decoded) == 0, name + " comes back", "");
    const double stored = static_cast<double>(tiles * (16 + 2048 + kind.extra_bytes + 256 * kind.width) + blocks * 8 + end * 32);
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
    // The survey in docs/ascend-subset.md puts the reference at 214, 194 and 315 GB/s in decoding, 357 and 308 in encoding: 2.5 times, 1.8 times
    // and 1.4 times that is wanted.
    Measure({"BF16", 40, enec::kDtypeBf16, 2, 0, 124, 3,
             {67296, 2817984, 63227904}, {84556, 5467609, 107916568}, {103794, 6737499, 107916568},
             500,
             535});
    Measure({"F16", 8, enec::kDtypeF16, 2, 768, 12, 3,
             {13536, 575424, 12650496}, {25222, 1527334, 23832984}, {29472, 1711776, 23832984},
             1.4 * 308,
             1.8 * 194});
    Measure({"F32", 8, enec::kDtypeF32, 4, 4096, 124, 3,
             {17760, 825024, 25233408}, {22671, 1440997, 46753944}, {29362, 1806075, 46753944},
             500,
             1.8 * 315});
    return checks.Result();
}
