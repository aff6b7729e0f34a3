// Tensors: views of a core's memory and of device memory, with the names of the official API.
#ifndef ENEC_MODEL_TENSOR_H
#define ENEC_MODEL_TENSOR_H

#include <type_traits>

#include "core.h"
#include "half.h"

namespace AscendC {

enum class TPosition : uint8_t { VECIN, VECOUT, VECCALC };

template <typename T>
class LocalTensor {
   public:
    LocalTensor() = default;
    LocalTensor(uint32_t buffer, uint32_t generation, uint32_t offset, uint32_t bytes, TPosition position)
        : buffer_(buffer), generation_(generation), offset_(offset), bytes_(bytes), position_(position) {}

    LocalTensor operator[](const uint32_t element) const {
        using namespace enec_model;
        const uint64_t skip = static_cast<uint64_t>(element) * sizeof(T);
        Require(skip <= bytes_, Site::Here(), "offset of ", element, " elements into a tensor of ", bytes_ / sizeof(T));
        return LocalTensor(buffer_, generation_, offset_ + static_cast<uint32_t>(skip), bytes_ - static_cast<uint32_t>(skip), position_);
    }
    template <typename U>
    LocalTensor<U> ReinterpretCast() const {
        return LocalTensor<U>(buffer_, generation_, offset_, bytes_, position_);
    }
    uint32_t GetSize() const { return bytes_ / static_cast<uint32_t>(sizeof(T)); }

    T GetValue(const uint32_t index, const enec_model::Site& site = enec_model::Site::Here()) const {
        using namespace enec_model;
        Core& core = Core::Get();
        Check(static_cast<uint64_t>(index) * sizeof(T), sizeof(T), site);
        const uint32_t at = offset_ + index * static_cast<uint32_t>(sizeof(T));
        core.Tick(kScalar);
        core.Read(kScalar, at, sizeof(T), site);
        ++core.cost().scalar_reads;
        T value;
        std::memcpy(&value, core.arena() + at, sizeof(T));
        return value;
    }
    void SetValue(const uint32_t index, const T value, const enec_model::Site& site = enec_model::Site::Here()) const {
        using namespace enec_model;
        Core& core = Core::Get();
        Check(static_cast<uint64_t>(index) * sizeof(T), sizeof(T), site);
        const uint32_t at = offset_ + index * static_cast<uint32_t>(sizeof(T));
        core.Tick(kScalar);
        core.Write(kScalar, at, sizeof(T), site);
        std::memcpy(core.arena() + at, &value, sizeof(T));
    }

    // -- for the model

    uint32_t offset() const { return offset_; }
    uint32_t bytes() const { return bytes_; }
    uint32_t buffer() const { return buffer_; }
    uint32_t generation() const { return generation_; }
    TPosition position() const { return position_; }
    // Bytes `from` to `from + len` are the tensor's, and the tensor is still its holder's.
    void Check(uint64_t from, uint64_t len, const enec_model::Site& site) const {
        using namespace enec_model;
        Require(generation_ != 0, site, "tensor without memory");
        Require(Core::Get().buffer(buffer_).generation == generation_, site, "tensor used after FreeTensor");
        Require(from + len <= bytes_, site, "bytes ", from, " to ", from + len, " of a tensor of ", bytes_);
    }

   private:
    uint32_t buffer_ = 0;
    uint32_t generation_ = 0;
    uint32_t offset_ = 0;
    uint32_t bytes_ = 0;
    TPosition position_ = TPosition::VECCALC;
};

template <typename T>
class GlobalTensor {
   public:
    void SetGlobalBuffer(T* buffer, const uint64_t elements) {
        address_ = reinterpret_cast<uint64_t>(buffer);
        bytes_ = elements * sizeof(T);
    }
    GlobalTensor operator[](const uint64_t element) const {
        using namespace enec_model;
        Require(element * sizeof(T) <= bytes_, Site::Here(), "offset of ", element, " elements into a global tensor of ",
                bytes_ / sizeof(T));
        GlobalTensor result;
        result.address_ = address_ + element * sizeof(T);
        result.bytes_ = bytes_ - element * sizeof(T);
        return result;
    }

    // -- for the model

    uint64_t address() const { return address_; }
    uint64_t bytes() const { return bytes_; }

   private:
    uint64_t address_ = 0;
    uint64_t bytes_ = 0;
};

}  // namespace AscendC

#endif
