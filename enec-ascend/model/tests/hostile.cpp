// Streams that changed after they were validated: tables, masks and planes of random bytes. Kernels may make any elements of them, but must stay within
// their buffers and within the subset. Three jobs in one launch, one of each element type, with a range of tiles each.
#include "../launch.cpp"

#include "harness.h"

using namespace enec_model;

namespace {

struct Stream {
    explicit Stream(uint64_t type, uint64_t tile_count, uint64_t common_width, uint64_t variable_bytes)
        : dtype(type), tiles(tile_count), width(common_width), table((tiles + 7) / 8 * 8), mask(tiles * 16), bytes(tiles * 2048),
          extra(tiles * (type == enec::kDtypeF16 ? 768 : type == enec::kDtypeF32 ? 4096 : 0)), low(tiles * 256 * width),
          variable(variable_bytes), target(tiles * (type == enec::kDtypeF32 ? 8192 : 4096)) {}
    uint64_t dtype;
    uint64_t tiles;
    uint64_t width;
    size_t table, mask, bytes, extra, low, variable, target;
};

// One section with exact bounds; a section without bytes has address 0.
class Section {
   public:
    Section(size_t bytes, std::mt19937_64& random) : bytes_(bytes + 32) {
        start_ = (reinterpret_cast<uint64_t>(bytes_.data()) + 31) / 32 * 32;
        for (size_t i = 0; i < bytes; ++i) {
            data()[i] = static_cast<uint8_t>(random());
        }
        if (bytes > 0) {
            register_memory(data(), bytes);
        }
        len_ = bytes;
    }
    Section(const Section&) = delete;
    Section& operator=(const Section&) = delete;
    ~Section() {
        if (len_ > 0) {
            unregister_memory(data());
        }
    }
    uint8_t* data() { return reinterpret_cast<uint8_t*>(start_); }
    uint64_t address() const { return len_ == 0 ? 0 : start_; }

   private:
    std::vector<uint8_t> bytes_;
    uint64_t start_ = 0;
    size_t len_ = 0;
};

// Table entries and masks that are wrong in ways that come near to being right.
void Twist(const Stream& stream, Section& table, Section& mask, std::mt19937_64& random) {
    const uint64_t exponent_bits = stream.dtype == enec::kDtypeF16 ? 5 : 8;
    uint64_t end = 0;
    for (uint64_t block = 0; block < stream.table / 8; ++block) {
        uint64_t lanes = 0;
        const uint64_t first = block * 128;
        const uint64_t last = std::min<uint64_t>(first + 128, stream.mask);
        for (uint64_t i = first; i < last; ++i) {
            mask.data()[i] = static_cast<uint8_t>(random() & random() & random());
            lanes += static_cast<uint64_t>(__builtin_popcount(mask.data()[i]));
        }
        const uint64_t wide = random() % 4 == 0 ? random() % 256 : stream.width + random() % (exponent_bits - stream.width + 1);
        end += (wide - stream.width) * ((lanes + 15) / 16) + (random() % 4 == 0 ? random() % 3 - 1 : 0);
        if (random() % 8 == 0) {
            end = random();
        }
        const uint16_t high = static_cast<uint16_t>(end >> 32);
        const uint32_t low = static_cast<uint32_t>(end);
        uint8_t* const entry = table.data() + block * 8;
        entry[0] = static_cast<uint8_t>(random());
        entry[1] = static_cast<uint8_t>(wide);
        std::memcpy(entry + 2, &high, 2);
        std::memcpy(entry + 4, &low, 4);
    }
}

}  // namespace

int main() {
    Checks checks;
    constexpr uint32_t kRounds = 150;
    std::mt19937_64 random(7);
    std::string first_error;
    uint32_t refused = 0;
    for (uint32_t round = 0; round < kRounds; ++round) {
        std::vector<std::unique_ptr<Section>> sections;
        std::vector<enec::DecodeJob> jobs;
        uint64_t items = 0;
        for (const uint64_t dtype : {enec::kDtypeF32, enec::kDtypeBf16, enec::kDtypeF16}) {
            const Stream stream(dtype, 1 + random() % 20, random() % 6, random() % 20 * 32 * 64);
            auto section = [&](size_t bytes) {
                sections.push_back(std::make_unique<Section>(bytes, random));
                return sections.back()->address();
            };
            enec::DecodeJob job{};
            job.first_item = items;
            job.tiles = stream.tiles;
            job.dtype = dtype;
            job.common_base = random() % (dtype == enec::kDtypeF16 ? 32 : 256);
            job.common_width = stream.width;
            job.first_tile = random() % stream.tiles;
            job.end_tile = job.first_tile + 1 + random() % (stream.tiles - job.first_tile);
            job.table = section(stream.table);
            Section& table = *sections.back();
            job.mask = section(stream.mask);
            Section& mask = *sections.back();
            if (round % 8 != 0) {
                Twist(stream, table, mask, random);
            }
            job.byte_plane = section(stream.bytes);
            job.extra_plane = section(stream.extra);
            job.low_plane = section(stream.low);
            job.variable = section(stream.variable);
            job.variable_len = stream.variable;
            job.target = section(stream.target / stream.tiles * (job.end_tile - job.first_tile));
            items += (job.end_tile + 7) / 8 - job.first_tile / 8;
            jobs.push_back(job);
        }
        Section records(jobs.size() * sizeof(enec::DecodeJob), random);
        std::memcpy(records.data(), jobs.data(), jobs.size() * sizeof(enec::DecodeJob));
        const uint64_t args[3] = {records.address(), jobs.size(), items};
        Options options;
        options.copies = round % 2 == 0 ? enec_model::Copies::kEager : enec_model::Copies::kLazy;
        std::string error;
        if (!launch("enec_decode_v1", 1 + round % 5, args, 3, options, nullptr, &error)) {
            first_error = first_error.empty() ? "round " + std::to_string(round) + ": " + error : first_error;
            ++refused;
        }
    }
    checks.Expect(refused == 0, std::to_string(kRounds) + " launches on random tables, masks and planes stay within their buffers", first_error);
    return checks.Result();
}
