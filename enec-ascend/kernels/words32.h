// F32 elements of a block as their upper and lower 16-bit words, and back, by transposing.
//
// Two rows of a tile are 32 blocks of 8 elements. Transposing the 16 even blocks gives 16 blocks, one for each word of a block: block 2 e has the
// lower words of element e, block 2 e + 1 the upper; the same for the odd blocks. Transposing the upper words of both gives 16 blocks of
// upper words in lane order, and the lower words likewise.
#ifndef ENEC_KERNELS_WORDS32_H
#define ENEC_KERNELS_WORDS32_H

#include "rows.h"

namespace enec {

constexpr uint32_t kRowPairs = kRows / 2;
constexpr uint32_t kPairBlocks32 = 32;  // blocks of two rows of a tile of F32 elements
constexpr uint32_t kPairBlocks16 = 16;  // and of one word of each

__aicore__ inline Words Block(const Words& words, uint32_t block) { return words[block * kBlockWords]; }

// The 16 addresses of a transposition.
struct BlockList {
    Words at[NCHW_CONV_ADDR_LIST_SIZE];
};

__aicore__ inline void Transpose(const BlockList& dst, const BlockList& src, uint32_t repeats, uint32_t dst_stride, uint32_t src_stride) {
    TransDataTo5HDParams params;
    params.repeatTimes = static_cast<uint8_t>(repeats);
    params.dstRepStride = static_cast<uint16_t>(repeats == 1 ? 0 : dst_stride);
    params.srcRepStride = static_cast<uint16_t>(repeats == 1 ? 0 : src_stride);
    TransDataTo5HD(dst.at, src.at, params);
    Done();
}

// Every second block from `first` on.
__aicore__ inline BlockList EverySecond(const Words& words, uint32_t first) {
    BlockList list;
    for (uint32_t i = 0; i < 16; ++i) {
        list.at[i] = Block(words, 2 * i + first);
    }
    return list;
}
__aicore__ inline BlockList Adjacent(const Words& words) {
    BlockList list;
    for (uint32_t i = 0; i < 16; ++i) {
        list.at[i] = Block(words, i);
    }
    return list;
}
// Upper (1) or lower (0) words of what was transposed: first the even blocks' elements, then the odd blocks'.
__aicore__ inline BlockList HalfWords(const Words& even, const Words& odd, uint32_t upper) {
    BlockList list;
    for (uint32_t i = 0; i < 8; ++i) {
        list.at[i] = Block(even, 2 * i + upper);
        list.at[i + 8] = Block(odd, 2 * i + upper);
    }
    return list;
}
// The blocks of rows 0 and 1 in one tile.
__aicore__ inline BlockList TwoRows(const Words& rows, uint32_t tile) {
    BlockList list;
    for (uint32_t i = 0; i < 8; ++i) {
        list.at[i] = Block(rows, tile * kTileBlocks + i);
        list.at[i + 8] = Block(rows, kRowBlocks + tile * kTileBlocks + i);
    }
    return list;
}

// `elements`: `tiles` tiles as they lie in device memory. `scratch`: 1,024 words for each row pair of each tile. Upper words go to tiles `first` and
// following of `upper`; lower words to `lower`, if wanted, as they lie in the extra plane.
__aicore__ inline void SplitWords32(const Words& elements, const Words& scratch, const Words& upper, uint32_t first, const Words* lower,
                                    uint32_t tiles) {
    const uint32_t pairs = tiles * kRowPairs;
    const Words even = scratch;
    const Words odd = Block(scratch, pairs * kPairBlocks16);
    Transpose(Adjacent(even), EverySecond(elements, 0), pairs, kPairBlocks16, kPairBlocks32);
    Transpose(Adjacent(odd), EverySecond(elements, 1), pairs, kPairBlocks16, kPairBlocks32);
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        const uint32_t skip = tile * kRowPairs * kPairBlocks16;
        Transpose(TwoRows(upper, first + tile), HalfWords(Block(even, skip), Block(odd, skip), 1), kRowPairs, 2 * kRowBlocks, kPairBlocks16);
    }
    if (lower != nullptr) {
        Transpose(Adjacent(*lower), HalfWords(even, odd, 0), pairs, kPairBlocks16, kPairBlocks16);
    }
}

__aicore__ inline void JoinWords32(const Words& elements, const Words& scratch, const Words& upper, uint32_t first, const Words& lower,
                                   uint32_t tiles) {
    const uint32_t pairs = tiles * kRowPairs;
    const Words even = scratch;
    const Words odd = Block(scratch, pairs * kPairBlocks16);
    for (uint32_t tile = 0; tile < tiles; ++tile) {
        const uint32_t skip = tile * kRowPairs * kPairBlocks16;
        Transpose(HalfWords(Block(even, skip), Block(odd, skip), 1), TwoRows(upper, first + tile), kRowPairs, kPairBlocks16, 2 * kRowBlocks);
    }
    Transpose(HalfWords(even, odd, 0), Adjacent(lower), pairs, kPairBlocks16, kPairBlocks16);
    Transpose(EverySecond(elements, 0), Adjacent(even), pairs, kPairBlocks32, kPairBlocks16);
    Transpose(EverySecond(elements, 1), Adjacent(odd), pairs, kPairBlocks32, kPairBlocks16);
}

}  // namespace enec

#endif
