// Copies between device memory and a core (DataCopyPad, both directions).
#ifndef ENEC_MODEL_COPY_H
#define ENEC_MODEL_COPY_H

#include "queue.h"

namespace AscendC {

struct DataCopyExtParams {
    DataCopyExtParams(const uint16_t count, const uint32_t len, const uint32_t src, const uint32_t dst, const uint32_t reserved)
        : blockCount(count), blockLen(len), srcStride(src), dstStride(dst), rsv(reserved) {}
    uint16_t blockCount;
    uint32_t blockLen;   // bytes
    uint32_t srcStride;  // from a block's end to the next one's start: bytes in device memory, 32-byte blocks in a core's
    uint32_t dstStride;
    uint32_t rsv;
};

template <typename T>
struct DataCopyPadExtParams {
    DataCopyPadExtParams(const bool pad, const uint8_t left, const uint8_t right, const T value)
        : isPad(pad), leftPadding(left), rightPadding(right), paddingValue(value) {}
    bool isPad;
    uint8_t leftPadding;   // elements
    uint8_t rightPadding;  // elements
    T paddingValue;
};

namespace model {
inline void CheckCopy(const DataCopyExtParams& params, uint64_t address, size_t element, const enec_model::Site& site) {
    using namespace enec_model;
    Require(params.blockCount >= 1 && params.blockCount <= 4095, site, "block count of ", params.blockCount);
    Require(params.blockLen >= 1 && params.blockLen <= 2097151, site, "block length of ", params.blockLen);
    Require(params.blockLen % element == 0, site, "block length of ", params.blockLen, " is no multiple of the element");
    const bool small = params.blockCount == 1 && params.blockLen <= kBlockBytes;
    Require(address % (small ? 8 : kSectorBytes) == 0, site, "device address that is no multiple of ", small ? 8 : kSectorBytes);
}
inline uint32_t RoundUp(uint32_t bytes) { return (bytes + enec_model::kBlockBytes - 1) / enec_model::kBlockBytes * enec_model::kBlockBytes; }
}  // namespace model

// Device memory to a core. A block takes its padding and then up to a multiple of 32 bytes, the last of which are unspecified.
template <typename T>
void DataCopyPad(const LocalTensor<T>& dst, const GlobalTensor<T>& src, const DataCopyExtParams& params, const DataCopyPadExtParams<T>& pad,
                 const enec_model::Site& site = enec_model::Site::Here()) {
    using namespace enec_model;
    model::CheckCopy(params, src.address(), sizeof(T), site);
    Require(dst.position() == TPosition::VECIN || dst.position() == TPosition::VECOUT, site, "copy into a tensor that is no VECIN or VECOUT");
    Require(dst.offset() % kBlockBytes == 0, site, "destination at byte ", dst.offset(), ", not a multiple of 32");
    const auto left = static_cast<uint32_t>(pad.leftPadding * sizeof(T));
    const auto right = static_cast<uint32_t>(pad.rightPadding * sizeof(T));
    Require(left <= kBlockBytes && right <= kBlockBytes, site, "padding of more than 32 bytes");
    Require(pad.isPad || (left == 0 && right == 0), site, "padding without a value is unspecified");
    const uint32_t valid = left + params.blockLen + right;
    const uint32_t step = model::RoundUp(valid);
    Core& core = Core::Get();
    core.Tick(kMte2);
    for (uint32_t i = 0; i < params.blockCount; ++i) {
        const uint64_t skip = uint64_t{i} * (step + params.dstStride * kBlockBytes);
        const uint64_t from = uint64_t{i} * (params.blockLen + uint64_t{params.srcStride});
        dst.Check(skip, step, site);
        Require(from + params.blockLen <= src.bytes(), site, "bytes ", from, " to ", from + params.blockLen, " of a global tensor of ",
                src.bytes());
        core.machine().Read(core.index(), src.address() + from, params.blockLen, site);
        const uint32_t to = dst.offset() + static_cast<uint32_t>(skip);
        core.Write(kMte2, to, step, site);
        core.Scramble(to, step);
        core.Write(kMte2, to, valid, site);
    }
    ++core.cost().copies;
    core.cost().bytes_in += uint64_t{params.blockCount} * params.blockLen;
    uint8_t* to = core.arena() + dst.offset();
    const uint8_t* from = reinterpret_cast<const uint8_t*>(src.address());
    core.Copy(kMte2, [=] {
        for (uint32_t i = 0; i < params.blockCount; ++i) {
            uint8_t* block = to + uint64_t{i} * (step + params.dstStride * kBlockBytes);
            for (uint32_t at = 0; at < valid; at += static_cast<uint32_t>(sizeof(T))) {
                if (at < left || at >= left + params.blockLen) {
                    std::memcpy(block + at, &pad.paddingValue, sizeof(T));
                }
            }
            std::memcpy(block + left, from + uint64_t{i} * (params.blockLen + uint64_t{params.srcStride}), params.blockLen);
        }
    });
}

// A core to device memory.
template <typename T>
void DataCopyPad(const GlobalTensor<T>& dst, const LocalTensor<T>& src, const DataCopyExtParams& params,
                 const enec_model::Site& site = enec_model::Site::Here()) {
    using namespace enec_model;
    model::CheckCopy(params, dst.address(), sizeof(T), site);
    Require(src.position() == TPosition::VECIN || src.position() == TPosition::VECOUT, site, "copy from a tensor that is no VECIN or VECOUT");
    Require(src.offset() % kBlockBytes == 0, site, "source at byte ", src.offset(), ", not a multiple of 32");
    const uint32_t step = model::RoundUp(params.blockLen);
    Core& core = Core::Get();
    core.Tick(kMte3);
    for (uint32_t i = 0; i < params.blockCount; ++i) {
        const uint64_t skip = uint64_t{i} * (step + params.srcStride * kBlockBytes);
        const uint64_t to = uint64_t{i} * (params.blockLen + uint64_t{params.dstStride});
        src.Check(skip, params.blockLen, site);
        Require(to + params.blockLen <= dst.bytes(), site, "bytes ", to, " to ", to + params.blockLen, " of a global tensor of ",
                dst.bytes());
        core.Read(kMte3, src.offset() + static_cast<uint32_t>(skip), params.blockLen, site);
        core.machine().Write(core.index(), dst.address() + to, params.blockLen, site);
    }
    ++core.cost().copies;
    core.cost().bytes_out += uint64_t{params.blockCount} * params.blockLen;
    const uint8_t* from = core.arena() + src.offset();
    uint8_t* to = reinterpret_cast<uint8_t*>(dst.address());
    core.Copy(kMte3, [=] {
        for (uint32_t i = 0; i < params.blockCount; ++i) {
            std::memcpy(to + uint64_t{i} * (params.blockLen + uint64_t{params.dstStride}),
                        from + uint64_t{i} * (step + params.srcStride * kBlockBytes), params.blockLen);
        }
    });
}

}  // namespace AscendC

#endif
