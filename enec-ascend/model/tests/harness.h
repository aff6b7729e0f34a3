// What the tests of the model share: kernels as functions, run on one core or several, with one line printed for each check.
#ifndef ENEC_MODEL_TESTS_HARNESS_H
#define ENEC_MODEL_TESTS_HARNESS_H

#include <cstdio>

#include "ascendc.h"
#include "machine.h"

namespace enec_model {

using namespace AscendC;

// Device memory of a test.
class Memory {
   public:
    Memory(Machine& machine, size_t bytes) : machine_(machine), bytes_(bytes + kSectorBytes, 0) {
        start_ = (reinterpret_cast<uint64_t>(bytes_.data()) + kSectorBytes - 1) / kSectorBytes * kSectorBytes;
        machine_.Register(start_, bytes);
    }
    Memory(const Memory&) = delete;
    Memory& operator=(const Memory&) = delete;
    ~Memory() { machine_.Unregister(start_); }
    uint64_t address() const { return start_; }
    template <typename T>
    T* as() const {
        return reinterpret_cast<T*>(start_);
    }

   private:
    Machine& machine_;
    std::vector<uint8_t> bytes_;
    uint64_t start_;
};

// Counts checks that failed.
class Checks {
   public:
    void Expect(bool holds, const std::string& name, const std::string& why) {
        std::printf("%s %s%s%s\n", holds ? "ok    " : "FAILED", name.c_str(), holds || why.empty() ? "" : ": ", holds ? "" : why.c_str());
        failed_ += holds ? 0 : 1;
    }
    int Result() const {
        std::printf("%d failed\n", failed_);
        return failed_ == 0 ? 0 : 1;
    }

   private:
    int failed_ = 0;
};

template <typename T>
GlobalTensor<T> Global(const Memory& memory, uint64_t bytes) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(memory.as<T>(), bytes / sizeof(T));
    return tensor;
}

}  // namespace enec_model

#endif
