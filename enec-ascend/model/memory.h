// Device memory: known ranges of host memory, and who wrote what in the running launch.
#ifndef ENEC_MODEL_MEMORY_H
#define ENEC_MODEL_MEMORY_H

#include <cstdint>
#include <map>
#include <mutex>
#include <vector>

#include "fault.h"

namespace enec_model {

constexpr uint32_t kSectorBytes = 32;

class Machine {
   public:
    void Register(uint64_t address, uint64_t len) {
        std::lock_guard<std::mutex> lock(mutex_);
        ranges_[address] = Range{len, 0, {}};
    }
    void Unregister(uint64_t address) {
        std::lock_guard<std::mutex> lock(mutex_);
        ranges_.erase(address);
    }
    void BeginLaunch() { ++launch_; }

    void Read(uint32_t core, uint64_t address, uint64_t len, const Site& site) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto [start, range] = Find(address, len, site, "reads");
        if (range->launch != launch_) {
            return;
        }
        for (uint64_t sector = (address - start) / kSectorBytes; sector <= (address + len - 1 - start) / kSectorBytes; ++sector) {
            const uint32_t writer = range->writers[sector];
            Require(writer == 0 || writer == core + 1, site, "core ", core, " reads device memory that core ", writer - 1,
                    " writes in the same launch");
        }
    }
    void Write(uint32_t core, uint64_t address, uint64_t len, const Site& site) {
        std::lock_guard<std::mutex> lock(mutex_);
        auto [start, range] = Find(address, len, site, "writes");
        if (range->launch != launch_) {
            range->launch = launch_;
            range->writers.assign(range->len / kSectorBytes + 1, 0);
        }
        for (uint64_t sector = (address - start) / kSectorBytes; sector <= (address + len - 1 - start) / kSectorBytes; ++sector) {
            uint32_t& writer = range->writers[sector];
            Require(writer == 0 || writer == core + 1, site, "cores ", core, " and ", writer - 1,
                    " write into one sector of 32 bytes of device memory");
            writer = core + 1;
        }
    }

   private:
    struct Range {
        uint64_t len;
        uint64_t launch;
        std::vector<uint32_t> writers;
    };
    std::pair<uint64_t, Range*> Find(uint64_t address, uint64_t len, const Site& site, const char* what) {
        auto next = ranges_.upper_bound(address);
        if (next != ranges_.begin()) {
            auto& [start, range] = *std::prev(next);
            if (address - start <= range.len && len <= range.len - (address - start)) {
                return {start, &range};
            }
            if (address - start < range.len) {
                Fail(site, what, " ", len, " bytes at byte ", address - start, " of ", range.len, " of a device buffer");
            }
        }
        Fail(site, what, " ", len, " bytes of device memory that nobody allocated");
    }

    std::mutex mutex_;
    std::map<uint64_t, Range> ranges_;
    uint64_t launch_ = 0;
};

}  // namespace enec_model

#endif
