// Instructions that move elements within a core's memory: GatherMask, Gather, TransDataTo5HD. Sources and destinations are disjoint.
#ifndef ENEC_MODEL_MOVEMENT_H
#define ENEC_MODEL_MOVEMENT_H

#include "vector.h"

namespace AscendC {

namespace model {
inline void Disjoint(uint32_t a, uint32_t a_len, uint32_t b, uint32_t b_len, const Site& site) {
    Require(a + a_len <= b || b + b_len <= a, site, "source and destination overlap");
}
}  // namespace model

// Keeps the elements whose pattern bit is 1: bit i % 16 of word i / 16 for element i. `rsvdCnt` is their number. What lies behind them, up to the
// end of their last block, is unspecified.
template <typename T, typename U>
void GatherMask(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<U>& src1Pattern, const bool reduceMode,
                const uint32_t mask, const GatherMaskParams& params, uint64_t& rsvdCnt, const model::Site& site = model::Site::Here()) {
    using namespace enec_model;
    static_assert(model::kIsWord<T> && std::is_same_v<U, uint16_t>, "the subset gathers 16-bit elements by patterns of uint16");
    Require(reduceMode && params.repeatTimes == 1 && params.src0BlockStride == 1, site, "GatherMask form outside the subset");
    Require(mask > 0, site, "mask of 0 elements");
    const model::Operand to = model::At(dst, 1, 8, site);
    const model::Operand from = model::At(src0, 1, 8, site);
    const model::Operand pattern = model::At(src1Pattern, 1, 8, site);
    const uint32_t pattern_bytes = (mask + 15) / 16 * 2;
    src0.Check(0, uint64_t{mask} * sizeof(T), site);
    src1Pattern.Check(0, pattern_bytes, site);
    Core& core = Core::Get();
    core.Tick(kVector);
    core.Read(kVector, from.offset, mask * static_cast<uint32_t>(sizeof(T)), site);
    core.Read(kVector, pattern.offset, pattern_bytes, site);
    uint32_t kept = 0;
    for (uint32_t i = 0; i < mask; ++i) {
        kept += core.arena()[pattern.offset + i / 8] >> i % 8 & 1;
    }
    rsvdCnt = kept;
    core.WaitFor(kScalar, core.clock(kVector));
    model::Count("GatherMask", (mask + 63) / 64);
    if (kept == 0) {
        return;
    }
    const uint32_t blocks = (kept * static_cast<uint32_t>(sizeof(T)) + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
    dst.Check(0, blocks, site);
    model::Disjoint(from.offset, mask * static_cast<uint32_t>(sizeof(T)), to.offset, blocks, site);
    model::Disjoint(pattern.offset, pattern_bytes, to.offset, blocks, site);
    core.Scramble(to.offset, blocks);
    core.Write(kVector, to.offset, blocks, site);
    uint32_t next = to.offset;
    for (uint32_t i = 0; i < mask; ++i) {
        if ((core.arena()[pattern.offset + i / 8] >> i % 8 & 1) != 0) {
            std::memcpy(core.arena() + next, core.arena() + from.offset + i * sizeof(T), sizeof(T));
            next += static_cast<uint32_t>(sizeof(T));
        }
    }
}

// Element i is the one at `srcBaseAddr + srcOffset[i]` bytes of `src`. The device checks no bound; the model does.
template <typename T>
void Gather(const LocalTensor<T>& dst, const LocalTensor<T>& src, const LocalTensor<uint32_t>& srcOffset, const uint32_t srcBaseAddr,
            const uint32_t count, const model::Site& site = model::Site::Here()) {
    using namespace enec_model;
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Gather of 16- and 32-bit elements");
    Require(count > 0, site, "count of 0");
    const model::Operand to = model::At(dst, 1, 8, site);
    const model::Operand from = model::At(src, 1, 8, site);
    const model::Operand offsets = model::At(srcOffset, 1, 8, site);
    const auto bytes = static_cast<uint32_t>(count * sizeof(T));
    dst.Check(0, bytes, site);
    srcOffset.Check(0, uint64_t{count} * 4, site);
    Require(srcBaseAddr % sizeof(T) == 0, site, "base of ", srcBaseAddr, " bytes");
    model::Disjoint(offsets.offset, count * 4, to.offset, bytes, site);
    Core& core = Core::Get();
    core.Tick(kVector);
    core.Read(kVector, offsets.offset, count * 4, site);
    core.Write(kVector, to.offset, bytes, site);
    for (uint32_t i = 0; i < count; ++i) {
        uint32_t offset;
        std::memcpy(&offset, core.arena() + offsets.offset + i * 4, 4);
        Require(offset % sizeof(T) == 0, site, "offset of ", offset, " bytes");
        src.Check(uint64_t{srcBaseAddr} + offset, sizeof(T), site);
        const uint32_t at = from.offset + srcBaseAddr + offset;
        model::Disjoint(at, sizeof(T), to.offset, bytes, site);
        core.Read(kVector, at, sizeof(T), site);
        std::memcpy(core.arena() + to.offset + i * sizeof(T), core.arena() + at, sizeof(T));
    }
    model::Count("Gather", (count + 4) / 5);
}

// Element s of destination block d is element d of source block s, 16 blocks each, in every repeat. With one repeat the strides are added
// already in that one, so the subset wants them to be 0 then.
template <typename T>
void TransDataTo5HD(const LocalTensor<T> (&dstList)[NCHW_CONV_ADDR_LIST_SIZE], const LocalTensor<T> (&srcList)[NCHW_CONV_ADDR_LIST_SIZE],
                    const TransDataTo5HDParams& params, const model::Site& site = model::Site::Here()) {
    using namespace enec_model;
    static_assert(std::is_same_v<T, uint16_t>, "the subset transposes uint16");
    Require(params.repeatTimes > 0, site, "repeat of 0");
    Require(params.repeatTimes > 1 || (params.dstRepStride == 0 && params.srcRepStride == 0), site,
            "strides other than 0 with one repeat move its start");
    Core& core = Core::Get();
    core.Tick(kVector);
    auto& stamp = core.stamp();
    const uint64_t id = core.NextStamp();
    auto address = [&](const LocalTensor<T>& tensor, uint32_t stride, uint32_t r) {
        const uint32_t skip = r * stride * kBlockBytes;
        tensor.Check(skip, kBlockBytes, site);
        Require(tensor.offset() % kBlockBytes == 0, site, "block at byte ", tensor.offset(), ", not a multiple of 32");
        return tensor.offset() + skip;
    };
    for (uint32_t r = 0; r < params.repeatTimes; ++r) {
        for (const auto& tensor : dstList) {
            uint64_t& mark = stamp[address(tensor, params.dstRepStride, r) / kBlockBytes];
            Require(mark != id << 24, site, "destination written twice by one instruction");
            mark = id << 24;
        }
    }
    for (uint32_t r = 0; r < params.repeatTimes; ++r) {
        for (const auto& tensor : srcList) {
            const uint32_t at = address(tensor, params.srcRepStride, r);
            Require(stamp[at / kBlockBytes] != id << 24, site, "source and destination overlap");
            core.Read(kVector, at, kBlockBytes, site);
        }
    }
    for (uint32_t r = 0; r < params.repeatTimes; ++r) {
        for (uint32_t d = 0; d < 16; ++d) {
            const uint32_t to = address(dstList[d], params.dstRepStride, r);
            core.Write(kVector, to, kBlockBytes, site);
            for (uint32_t s = 0; s < 16; ++s) {
                std::memcpy(core.arena() + to + s * 2, core.arena() + address(srcList[s], params.srcRepStride, r) + d * 2, 2);
            }
        }
    }
    model::Count("TransDataTo5HD", uint64_t{params.repeatTimes} * 2);
}

}  // namespace AscendC

#endif
