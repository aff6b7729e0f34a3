// Bit packing of a block: 16 values of `width` bits in each lane, to and from `width` words (docs/format.md, "Bit packing").
//
// Values are joined two by two, and the pairs again, as long as the result fits a word: 8 rows, 4, 2, 1, each step one instruction for the shift
// and one for the join. What comes out are groups of bits in order; where their width does not divide 16, words are put together from
// neighbouring groups, row by row. Unpacking goes the same way back.
#ifndef ENEC_KERNELS_PACKING_H
#define ENEC_KERNELS_PACKING_H

#include "rows.h"

namespace enec {

// dst[k] = src[2 k] | src[2 k + 1] << bits, for `count` pairs.
__aicore__ inline void JoinPairs(const Words& dst, const Words& src, uint32_t bits, uint32_t count, uint32_t tiles) {
    ShiftLeftRows({dst, 1}, {Row(src, 1), 2}, bits, count, tiles);
    OrRows({dst, 1}, {src, 2}, {dst, 1}, count, tiles);
}

// dst[2 k] = low `bits` of src[k], dst[2 k + 1] = what lies above; src has 2 bits of them.
__aicore__ inline void SplitPairs(const Words& dst, const Words& src, uint32_t bits, uint32_t count, const Words& masks, uint32_t tiles) {
    AndRows({dst, 2}, {src, 1}, LowBits(masks, bits), count, tiles);
    ShiftRightRows({Row(dst, 1), 2}, {src, 1}, bits, count, tiles);
}

// Words from groups of `bits` bits.
__aicore__ inline void Concatenate(const Words& dst, const Words& groups, uint32_t bits, uint32_t words, const Words& scratch,
                                   uint32_t tiles) {
    for (uint32_t word = 0; word < words; ++word) {
        const uint32_t start = word * 16;
        const Words out = Row(dst, word);
        uint32_t group = start / bits;
        if (group * bits < start) {
            ShiftRightRows({out, 1}, {Row(groups, group), 1}, start - group * bits, 1, tiles);
        } else {
            ShiftLeftRows({out, 1}, {Row(groups, group), 1}, 0, 1, tiles);
        }
        for (++group; group * bits < start + 16; ++group) {
            ShiftLeftRows({scratch, 1}, {Row(groups, group), 1}, group * bits - start, 1, tiles);
            OrRows({out, 1}, {out, 1}, {scratch, 1}, 1, tiles);
        }
    }
}

// 8 groups of `bits` bits, an even number, from words.
__aicore__ inline void Separate(const Words& dst, const Words& words, uint32_t bits, const Words& masks, const Words& scratch, uint32_t tiles) {
    for (uint32_t group = 0; group < 8; ++group) {
        const uint32_t word = group * bits / 16;
        const uint32_t offset = group * bits % 16;
        const Words out = Row(dst, group);
        ShiftRightRows({out, 1}, {Row(words, word), 1}, offset, 1, tiles);
        if (offset + bits > 16) {
            ShiftLeftRows({scratch, 1}, {Row(words, word + 1), 1}, 16 - offset, 1, tiles);
            OrRows({out, 1}, {out, 1}, {scratch, 1}, 1, tiles);
        }
    }
    AndRows({dst, 1}, {dst, 1}, LowBits(masks, bits), 8, tiles);
}

// `values`, 16 rows, are lost; `pairs` is memory for 8 rows. The result is `width` rows, 1 to 8.
__aicore__ inline void Pack(const Words& dst, const Words& values, const Words& pairs, uint32_t width, uint32_t tiles) {
    JoinPairs(width == 8 ? dst : pairs, values, width, 8, tiles);
    if (width == 8) {
        return;
    }
    if (width > 4) {
        Concatenate(dst, pairs, 2 * width, width, Row(values, 15), tiles);
        return;
    }
    JoinPairs(width == 4 ? dst : values, pairs, 2 * width, 4, tiles);
    if (width == 4) {
        return;
    }
    if (width == 3) {
        Concatenate(dst, values, 12, 3, Row(values, 15), tiles);
        return;
    }
    JoinPairs(width == 2 ? dst : pairs, values, 4 * width, 2, tiles);
    if (width == 1) {
        JoinPairs(dst, pairs, 8, 1, tiles);
    }
}

// Rows of `values` from `width` rows of words, 1 to 8, which lie elsewhere.
__aicore__ inline void Unpack(const Words& values, const Words& words, const Words& pairs, uint32_t width, const Words& masks, uint32_t tiles) {
    if (width == 8) {
        SplitPairs(values, words, 8, 8, masks, tiles);
        return;
    }
    if (width == 4) {
        SplitPairs(pairs, words, 8, 4, masks, tiles);
    } else if (width == 2) {
        SplitPairs(values, words, 8, 2, masks, tiles);
        SplitPairs(pairs, values, 4, 4, masks, tiles);
    } else {
        Separate(pairs, words, 2 * width, masks, values, tiles);
    }
    SplitPairs(values, pairs, width, 8, masks, tiles);
}

}  // namespace enec

#endif
