// Vector instructions of the subset (docs/ascend-subset.md). Every one checks types, alignment, counts, bounds, overlap and order.
#ifndef ENEC_MODEL_VECTOR_H
#define ENEC_MODEL_VECTOR_H

#include "queue.h"

namespace AscendC {

struct UnaryRepeatParams {
    UnaryRepeatParams() = default;
    UnaryRepeatParams(const uint16_t dstBlk, const uint16_t srcBlk, const uint8_t dstRep, const uint8_t srcRep)
        : dstBlkStride(dstBlk), srcBlkStride(srcBlk), dstRepStride(dstRep), srcRepStride(srcRep) {}
    uint16_t dstBlkStride = 1;
    uint16_t srcBlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t srcRepStride = 8;
};

struct BinaryRepeatParams {
    BinaryRepeatParams() = default;
    BinaryRepeatParams(const uint8_t dstBlk, const uint8_t src0Blk, const uint8_t src1Blk, const uint8_t dstRep, const uint8_t src0Rep,
                       const uint8_t src1Rep)
        : dstBlkStride(dstBlk), src0BlkStride(src0Blk), src1BlkStride(src1Blk), dstRepStride(dstRep), src0RepStride(src0Rep),
          src1RepStride(src1Rep) {}
    uint8_t dstBlkStride = 1;
    uint8_t src0BlkStride = 1;
    uint8_t src1BlkStride = 1;
    uint8_t dstRepStride = 8;
    uint8_t src0RepStride = 8;
    uint8_t src1RepStride = 8;
};

enum class CMPMODE : uint8_t { LT, GT, EQ, LE, GE, NE };
enum class SELMODE : uint8_t { VSEL_CMPMASK_SPR, VSEL_TENSOR_SCALAR_MODE, VSEL_TENSOR_TENSOR_MODE };
enum class RoundMode : uint8_t { CAST_NONE, CAST_RINT, CAST_FLOOR, CAST_CEIL, CAST_ROUND, CAST_TRUNC };

struct GatherMaskParams {
    GatherMaskParams(const uint8_t src0Blk, const uint16_t repeat, const uint16_t src0Rep, const uint8_t src1Rep)
        : src0BlockStride(src0Blk), repeatTimes(repeat), src0RepeatStride(src0Rep), src1RepeatStride(src1Rep) {}
    uint8_t src0BlockStride;
    uint16_t repeatTimes;
    uint16_t src0RepeatStride;
    uint8_t src1RepeatStride;
};

struct TransDataTo5HDParams {
    bool dstHighHalf = false;
    bool srcHighHalf = false;
    uint8_t repeatTimes = 1;
    uint16_t dstRepStride = 0;
    uint16_t srcRepStride = 0;
};

constexpr int32_t NCHW_CONV_ADDR_LIST_SIZE = 16;

namespace model {

using enec_model::Core;
using enec_model::Fail;
using enec_model::kBlockBytes;
using enec_model::kRepeatBytes;
using enec_model::Require;
using enec_model::Site;
constexpr uint32_t kRepeatBlocks = kRepeatBytes / kBlockBytes;

// Where an operand's blocks lie: block `b` of repeat `r` is `r * repeat + b * block` blocks behind the start.
struct Operand {
    uint32_t offset;
    uint32_t bytes;
    uint32_t block;
    uint32_t repeat;
    uint32_t At(uint32_t r, uint32_t b) const { return offset + (r * repeat + b * block) * kBlockBytes; }
};

// How much an instruction does: `repeats` repeats, each of `bytes` bytes but the last, which has `last`.
struct Shape {
    uint32_t repeats;
    uint32_t bytes;
    uint32_t last;
    uint32_t Bytes(uint32_t r) const { return r + 1 == repeats ? last : bytes; }
};

template <typename T>
Operand At(const LocalTensor<T>& tensor, uint32_t block, uint32_t repeat, const Site& site) {
    tensor.Check(0, 1, site);
    Require(tensor.offset() % kBlockBytes == 0, site, "operand at byte ", tensor.offset(), ", not a multiple of 32");
    return Operand{tensor.offset(), tensor.bytes(), block, repeat};
}

template <typename T>
Shape Whole(uint64_t count, const Site& site) {
    Require(count > 0, site, "count of 0");
    const uint64_t bytes = count * sizeof(T);
    Require(bytes <= enec_model::kArenaBytes, site, "count of ", count);
    const auto repeats = static_cast<uint32_t>((bytes + kRepeatBytes - 1) / kRepeatBytes);
    return Shape{repeats, kRepeatBytes, static_cast<uint32_t>(bytes - (repeats - 1) * kRepeatBytes)};
}

template <typename T>
Shape Repeats(uint64_t mask, uint32_t repeats, const Site& site) {
    Require(mask >= 1 && mask <= kRepeatBytes / sizeof(T), site, "mask of ", mask, " elements");
    Require(repeats >= 1, site, "repeat of 0");
    const auto bytes = static_cast<uint32_t>(mask * sizeof(T));
    return Shape{repeats, bytes, bytes};
}

inline void Count(const char* name, uint64_t cycles) {
    auto& cost = Core::Get().cost();
    enec_model::Tally& tally = cost.by_name[name];
    ++tally.instructions;
    tally.cycles += enec_model::kHeadCycles + cycles;
    ++cost.instructions;
    cost.vector_cycles += enec_model::kHeadCycles + cycles;
}

// Checks all accesses of an instruction whose blocks correspond one to one.
inline void Touch(const char* name, const Shape& shape, const Operand& dst, const Operand* sources, uint32_t count, const Site& site) {
    using namespace enec_model;
    Core& core = Core::Get();
    core.Tick(kVector);
    auto& stamp = core.stamp();
    const uint64_t id = core.NextStamp();
    auto each = [&](const Operand& operand, auto&& visit) {
        for (uint32_t r = 0; r < shape.repeats; ++r) {
            uint32_t left = shape.Bytes(r);
            for (uint32_t b = 0; left > 0; ++b) {
                const uint32_t len = left < kBlockBytes ? left : kBlockBytes;
                const uint32_t at = operand.At(r, b);
                Require(at + len <= operand.offset + operand.bytes, site, "bytes ", at - operand.offset, " to ",
                        at - operand.offset + len, " of a tensor of ", operand.bytes);
                visit(at, len, r << 8 | b);
                left -= len;
            }
        }
    };
    Require(dst.block != 0 || shape.bytes <= kBlockBytes, site, "block stride of 0 on a destination");
    each(dst, [&](uint32_t at, uint32_t, uint32_t position) {
        uint64_t& mark = stamp[at / kBlockBytes];
        Require(mark >> 24 != id, site, "destination written twice by one instruction");
        mark = id << 24 | position;
    });
    for (uint32_t i = 0; i < count; ++i) {
        each(sources[i], [&](uint32_t at, uint32_t len, uint32_t position) {
            const uint64_t mark = stamp[at / kBlockBytes];
            Require(mark >> 24 != id || (mark & 0xFFFFFF) == position, site,
                    "source and destination overlap without being the same");
            core.Read(kVector, at, len, site);
        });
    }
    each(dst, [&](uint32_t at, uint32_t len, uint32_t) { core.Write(kVector, at, len, site); });
    Count(name, shape.repeats);
}

// An element-by-element instruction of `kSources` sources; all elements have the same width.
template <typename D, typename S, uint32_t kSources, typename Function>
void Elementwise(const char* name, const Shape& shape, const Operand& dst, const Operand (&sources)[kSources], const Site& site, Function function) {
    using namespace enec_model;
    static_assert(sizeof(D) == sizeof(S), "operands of one width");
    Touch(name, shape, dst, sources, kSources, site);
    Core& core = Core::Get();
    uint8_t* arena = core.arena();
    constexpr uint32_t kPerBlock = kBlockBytes / sizeof(D);
    const bool snapshot = core.options().reads == Reads::kSnapshot;
    static thread_local std::vector<uint8_t> results;
    results.resize(static_cast<size_t>(snapshot ? shape.repeats : 1) * kRepeatBytes);
    auto compute = [&](uint32_t r, uint8_t* out) {
        const uint32_t elements = shape.Bytes(r) / static_cast<uint32_t>(sizeof(D));
        for (uint32_t first = 0; first < elements; first += kPerBlock) {
            const uint32_t n = elements - first < kPerBlock ? elements - first : kPerBlock;
            S in[kSources][kPerBlock];
            D block[kPerBlock];
            for (uint32_t i = 0; i < kSources; ++i) {
                std::memcpy(in[i], arena + sources[i].At(r, first / kPerBlock), n * sizeof(S));
            }
            for (uint32_t e = 0; e < n; ++e) {
                if constexpr (kSources == 1) {
                    block[e] = function(in[0][e]);
                } else {
                    block[e] = function(in[0][e], in[1][e]);
                }
            }
            std::memcpy(out + first * sizeof(D), block, n * sizeof(D));
        }
    };
    auto store = [&](uint32_t r, const uint8_t* out) {
        uint32_t left = shape.Bytes(r);
        for (uint32_t b = 0; left > 0; ++b) {
            const uint32_t len = left < kBlockBytes ? left : kBlockBytes;
            std::memcpy(arena + dst.At(r, b), out + b * kBlockBytes, len);
            left -= len;
        }
    };
    if (snapshot) {
        for (uint32_t r = 0; r < shape.repeats; ++r) {
            compute(r, results.data() + static_cast<size_t>(r) * kRepeatBytes);
        }
    }
    for (uint32_t r = 0; r < shape.repeats; ++r) {
        uint8_t* out = results.data() + (snapshot ? static_cast<size_t>(r) * kRepeatBytes : 0);
        if (!snapshot) {
            compute(r, out);
        }
        store(r, out);
    }
}

template <typename D, typename S, typename Function>
void Unary(const char* name, const LocalTensor<D>& dst, const LocalTensor<S>& src, const Shape& shape, const UnaryRepeatParams& strides, const Site& site,
           Function function) {
    const Operand sources[1] = {At(src, strides.srcBlkStride, strides.srcRepStride, site)};
    Elementwise<D, S>(name, shape, At(dst, strides.dstBlkStride, strides.dstRepStride, site), sources, site, function);
}

template <typename T, typename Function>
void Binary(const char* name, const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const Shape& shape,
            const BinaryRepeatParams& strides, const Site& site, Function function) {
    const Operand sources[2] = {At(src0, strides.src0BlkStride, strides.src0RepStride, site),
                                At(src1, strides.src1BlkStride, strides.src1RepStride, site)};
    Elementwise<T, T>(name, shape, At(dst, strides.dstBlkStride, strides.dstRepStride, site), sources, site, function);
}

template <typename T>
constexpr bool kIsWord = std::is_same_v<T, uint16_t> || std::is_same_v<T, int16_t>;
template <typename T>
constexpr bool kIsShiftable = kIsWord<T> || std::is_same_v<T, uint32_t> || std::is_same_v<T, int32_t>;

inline int16_t Int16(int64_t value, const Site& site) {
    Require(value >= INT16_MIN && value <= INT16_MAX, site, "int16 overflow: ", value);
    return static_cast<int16_t>(value);
}
template <typename T>
void CheckShift(T shift, const Site& site) {
    Require(shift >= 0 && static_cast<uint32_t>(shift) < 8 * sizeof(T), site, "shift by ", static_cast<int64_t>(shift));
}

}  // namespace model

// -- shifts

template <typename T>
void ShiftLeft(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int32_t& count,
               const model::Site& site = model::Site::Here()) {
    static_assert(std::is_unsigned_v<T> && model::kIsShiftable<T>, "ShiftLeft of uint16 or uint32: signed types keep the sign");
    model::CheckShift(scalarValue, site);
    model::Unary("ShiftLeft", dst, src, model::Whole<T>(static_cast<uint64_t>(count), site), {}, site,
                 [=](T value) { return static_cast<T>(value << scalarValue); });
}
template <typename T>
void ShiftLeft(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask, const uint8_t repeatTime,
               const UnaryRepeatParams& repeatParams, const model::Site& site = model::Site::Here()) {
    static_assert(std::is_unsigned_v<T> && model::kIsShiftable<T>, "ShiftLeft of uint16 or uint32: signed types keep the sign");
    model::CheckShift(scalarValue, site);
    model::Unary("ShiftLeft", dst, src, model::Repeats<T>(mask, repeatTime, site), repeatParams, site,
                 [=](T value) { return static_cast<T>(value << scalarValue); });
}
template <typename T>
void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int32_t& count,
                const model::Site& site = model::Site::Here()) {
    static_assert(model::kIsShiftable<T>, "ShiftRight of 16- and 32-bit integers");
    model::CheckShift(scalarValue, site);
    model::Unary("ShiftRight", dst, src, model::Whole<T>(static_cast<uint64_t>(count), site), {}, site,
                 [=](T value) { return static_cast<T>(value >> scalarValue); });
}
template <typename T>
void ShiftRight(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, uint64_t mask, const uint8_t repeatTime,
                const UnaryRepeatParams& repeatParams, const model::Site& site = model::Site::Here()) {
    static_assert(model::kIsShiftable<T>, "ShiftRight of 16- and 32-bit integers");
    model::CheckShift(scalarValue, site);
    model::Unary("ShiftRight", dst, src, model::Repeats<T>(mask, repeatTime, site), repeatParams, site,
                 [=](T value) { return static_cast<T>(value >> scalarValue); });
}

// -- two operands

#define ENEC_MODEL_BINARY(Name, TypeRule, Message, Expression)                                                                       \
    template <typename T>                                                                                                            \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, const int32_t& count,               \
              const model::Site& site = model::Site::Here()) {                                                                       \
        static_assert(TypeRule, Message);                                                                                            \
        model::Binary(#Name, dst, src0, src1, model::Whole<T>(static_cast<uint64_t>(count), site), {}, site,                                \
                      [&site](T a, T b) { return Expression; });                                                                     \
    }                                                                                                                                \
    template <typename T>                                                                                                            \
    void Name(const LocalTensor<T>& dst, const LocalTensor<T>& src0, const LocalTensor<T>& src1, uint64_t mask,                      \
              const uint8_t repeatTime, const BinaryRepeatParams& repeatParams, const model::Site& site = model::Site::Here()) {     \
        static_assert(TypeRule, Message);                                                                                            \
        model::Binary(#Name, dst, src0, src1, model::Repeats<T>(mask, repeatTime, site), repeatParams, site,                                \
                      [&site](T a, T b) { return Expression; });                                                                     \
    }

ENEC_MODEL_BINARY(And, model::kIsWord<T>, "And of int16 and uint16", ((void)site, static_cast<T>(a & b)))
ENEC_MODEL_BINARY(Or, model::kIsWord<T>, "Or of int16 and uint16", ((void)site, static_cast<T>(a | b)))
ENEC_MODEL_BINARY(Add, (std::is_same_v<T, int16_t>), "the subset adds int16", model::Int16(int64_t{a} + b, site))
ENEC_MODEL_BINARY(Sub, (std::is_same_v<T, int16_t>), "the subset subtracts int16", model::Int16(int64_t{a} - b, site))
ENEC_MODEL_BINARY(Max, (std::is_same_v<T, int16_t>), "the subset compares int16", ((void)site, a > b ? a : b))
ENEC_MODEL_BINARY(Min, (std::is_same_v<T, int16_t>), "the subset compares int16", ((void)site, a < b ? a : b))
#undef ENEC_MODEL_BINARY

// -- a tensor and a number

template <typename T>
void Adds(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int32_t& count,
          const model::Site& site = model::Site::Here()) {
    static_assert(std::is_same_v<T, int16_t>, "the subset adds int16");
    model::Unary("Adds", dst, src, model::Whole<T>(static_cast<uint64_t>(count), site), {}, site,
                 [&](T value) { return model::Int16(int64_t{value} + scalarValue, site); });
}
template <typename T>
void Muls(const LocalTensor<T>& dst, const LocalTensor<T>& src, const T& scalarValue, const int32_t& count,
          const model::Site& site = model::Site::Here()) {
    static_assert(std::is_same_v<T, int16_t>, "the subset multiplies int16");
    model::Unary("Muls", dst, src, model::Whole<T>(static_cast<uint64_t>(count), site), {}, site,
                 [&](T value) { return model::Int16(int64_t{value} * scalarValue, site); });
}
template <typename T>
void Duplicate(const LocalTensor<T>& dst, const T& scalarValue, const int32_t& count, const model::Site& site = model::Site::Here()) {
    static_assert(sizeof(T) == 2 || sizeof(T) == 4, "Duplicate of 16- and 32-bit types");
    const model::Shape shape = model::Whole<T>(static_cast<uint64_t>(count), site);
    const model::Operand to = model::At(dst, 1, 8, site);
    model::Touch("Duplicate", shape, to, nullptr, 0, site);
    for (uint32_t i = 0; i < static_cast<uint32_t>(count); ++i) {
        std::memcpy(model::Core::Get().arena() + to.offset + i * sizeof(T), &scalarValue, sizeof(T));
    }
}

}  // namespace AscendC

#include "halves.h"
#include "movement.h"

#endif
