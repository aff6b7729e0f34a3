// Vector instructions on halves that are small integers: Cast, Compares, Select.
#ifndef ENEC_MODEL_HALVES_H
#define ENEC_MODEL_HALVES_H

#include "vector.h"

namespace AscendC {

namespace model {
inline void CheckHalf(half value, const Site& site) {
    Require(!value.IsSubnormal() && !value.IsNan(), site, "half of bits ", value.bits(), " is subnormal or no number");
}
}  // namespace model

template <typename T, typename U>
void Cast(const LocalTensor<T>& dst, const LocalTensor<U>& src, const RoundMode& roundMode, const uint32_t count,
          const model::Site& site = model::Site::Here()) {
    constexpr bool kToHalf = std::is_same_v<T, half> && std::is_same_v<U, int16_t>;
    static_assert(kToHalf || (std::is_same_v<T, int16_t> && std::is_same_v<U, half>), "the subset casts int16 to half and back");
    model::Require(roundMode == (kToHalf ? RoundMode::CAST_NONE : RoundMode::CAST_RINT), site, "round mode outside the subset");
    model::Unary("Cast", dst, src, model::Whole<T>(count, site), {}, site, [&](U value) {
        if constexpr (kToHalf) {
            model::Require(value >= -2048 && value <= 2048, site, "int16 ", value, " is not exact as a half");
            return half::Integer(value);
        } else {
            return static_cast<int16_t>(value.ToInteger(site));
        }
    });
}

// Element i of the result is bit i % 8 of byte i / 8.
template <typename T, typename U>
void Compares(const LocalTensor<U>& dst, const LocalTensor<T>& src0, const T src1Scalar, CMPMODE cmpMode, uint32_t count,
              const model::Site& site = model::Site::Here()) {
    using namespace enec_model;
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, uint8_t>, "the subset compares halves into bytes of bits");
    Require(count > 0 && count * sizeof(T) % kRepeatBytes == 0, site, "count of ", count, ": not a multiple of 256 bytes");
    const model::Operand from = model::At(src0, 1, 8, site);
    const model::Operand to = model::At(dst, 1, 8, site);
    src0.Check(0, count * sizeof(T), site);
    dst.Check(0, count / 8, site);
    Require(to.offset + count / 8 <= from.offset || from.offset + count * sizeof(T) <= to.offset, site,
            "source and destination overlap");
    model::CheckHalf(src1Scalar, site);
    Core& core = Core::Get();
    core.Tick(kVector);
    core.Read(kVector, from.offset, count * static_cast<uint32_t>(sizeof(T)), site);
    core.Write(kVector, to.offset, count / 8, site);
    std::memset(core.arena() + to.offset, 0, count / 8);
    for (uint32_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, core.arena() + from.offset + i * sizeof(T), sizeof(T));
        model::CheckHalf(value, site);
        const int32_t a = value.Rank();
        const int32_t b = src1Scalar.Rank();
        const bool holds = cmpMode == CMPMODE::LT   ? a < b
                           : cmpMode == CMPMODE::GT ? a > b
                           : cmpMode == CMPMODE::EQ ? a == b
                           : cmpMode == CMPMODE::LE ? a <= b
                           : cmpMode == CMPMODE::GE ? a >= b
                                                    : a != b;
        core.arena()[to.offset + i / 8] |= static_cast<uint8_t>((holds ? 1U : 0U) << i % 8);
    }
    model::Count("Compares", (count * sizeof(T) + kRepeatBytes - 1) / kRepeatBytes);
}

// Bit 1 takes `src0`, bit 0 the number.
template <typename T, typename U>
void Select(const LocalTensor<T>& dst, const LocalTensor<U>& selMask, const LocalTensor<T>& src0, const T src1, SELMODE selMode,
            uint32_t count, const model::Site& site = model::Site::Here()) {
    using namespace enec_model;
    static_assert(std::is_same_v<T, half> && std::is_same_v<U, uint8_t>, "the subset selects halves by bytes of bits");
    Require(selMode == SELMODE::VSEL_TENSOR_SCALAR_MODE, site, "selection mode outside the subset");
    Require(count > 0 && count % 8 == 0, site, "count of ", count);
    const model::Operand mask = model::At(selMask, 1, 8, site);
    selMask.Check(0, count / 8, site);
    dst.Check(0, count * sizeof(T), site);
    Require(mask.offset + count / 8 <= dst.offset() || dst.offset() + count * sizeof(T) <= mask.offset, site,
            "mask and destination overlap");
    model::CheckHalf(src1, site);
    const model::Operand source[1] = {model::At(src0, 1, 8, site)};
    const model::Operand to = model::At(dst, 1, 8, site);
    Core& core = Core::Get();
    model::Touch("Select", model::Whole<T>(count, site), to, source, 1, site);
    core.Read(kVector, mask.offset, count / 8, site);
    for (uint32_t i = 0; i < count; ++i) {
        T value;
        std::memcpy(&value, core.arena() + source[0].offset + i * sizeof(T), sizeof(T));
        model::CheckHalf(value, site);
        const bool taken = (core.arena()[mask.offset + i / 8] >> i % 8 & 1) != 0;
        std::memcpy(core.arena() + to.offset + i * sizeof(T), taken ? &value : &src1, sizeof(T));
    }
}

}  // namespace AscendC

#endif
