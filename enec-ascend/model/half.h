// The 16-bit floating-point type as the kernels may use it: exact small integers, nothing else.
#ifndef ENEC_MODEL_HALF_H
#define ENEC_MODEL_HALF_H

#include <cstdint>

#include "fault.h"

namespace enec_model {

class half {
   public:
    half() = default;
    // Integers of at most 2,048 only, which is all that the kernels need.
    explicit constexpr half(float value) : bits_(FromInteger(static_cast<int32_t>(value))) {}
    static constexpr half FromBits(uint16_t bits) {
        half result(0.0F);
        result.bits_ = bits;
        return result;
    }
    static constexpr half Integer(int32_t value) { return FromBits(FromInteger(value)); }
    constexpr uint16_t bits() const { return bits_; }
    bool IsSubnormal() const { return (bits_ & 0x7C00) == 0 && (bits_ & 0x03FF) != 0; }
    bool IsNan() const { return (bits_ & 0x7C00) == 0x7C00 && (bits_ & 0x03FF) != 0; }
    // Order of two numbers, neither of them NaN.
    int32_t Rank() const { return (bits_ & 0x8000) != 0 ? -static_cast<int32_t>(bits_ & 0x7FFF) : static_cast<int32_t>(bits_); }

    // The integer that it is; refused if it is none or above 2,048.
    int32_t ToInteger(const Site& site) const {
        const int32_t exponent = static_cast<int32_t>(bits_ >> 10 & 31) - 15;
        if ((bits_ & 0x7FFF) == 0) {
            return 0;
        }
        Require(exponent >= 0 && exponent <= 11, site, "half of bits ", bits_, " is no integer of at most 2048");
        const int32_t mantissa = (bits_ & 0x03FF) | 0x0400;
        const int32_t value = exponent >= 10 ? mantissa << (exponent - 10) : mantissa >> (10 - exponent);
        Require(exponent >= 10 || (mantissa & ((1 << (10 - exponent)) - 1)) == 0, site, "half of bits ", bits_, " is no integer");
        Require(value <= 2048, site, "half of bits ", bits_, " is above 2048");
        return (bits_ & 0x8000) != 0 ? -value : value;
    }

   private:
    static constexpr uint16_t FromInteger(int32_t value) {
        uint32_t magnitude = static_cast<uint32_t>(value < 0 ? -value : value);
        const uint32_t sign = value < 0 ? 0x8000U : 0U;
        if (magnitude == 0) {
            return static_cast<uint16_t>(sign);
        }
        uint32_t exponent = 25;
        for (; magnitude < 0x0400; magnitude <<= 1) {
            --exponent;
        }
        for (; magnitude > 0x07FF; magnitude >>= 1) {
            ++exponent;
        }
        return static_cast<uint16_t>(sign | exponent << 10 | (magnitude & 0x03FF));
    }
    uint16_t bits_ = 0;
};

}  // namespace enec_model

using half = enec_model::half;

#endif
