// A block in a core's memory, and instructions on its rows.
//
// Row `r` of all 8 tiles lies together: 1,024 lanes, 64 blocks of 32 bytes, and one block of padding behind. An instruction goes over rows with
// its 8 blocks per repeat and over lanes with its repeats, so it reaches any 8 rows at one distance; the padding makes that distance odd, so that
// the 8 blocks lie in different banks. Where rows are adjacent and their padding has been written, plain counts serve as well.
//
// Every instruction is followed by a barrier of the vector pipe, so that nothing rests on the compiler to insert it.
#ifndef ENEC_KERNELS_ROWS_H
#define ENEC_KERNELS_ROWS_H

#include "platform.h"

namespace enec {

constexpr uint32_t kLanes = 128;
constexpr uint32_t kRows = 16;
constexpr uint32_t kTiles = 8;
constexpr uint32_t kBlockWords = 16;                          // words in 32 bytes
constexpr uint32_t kTileBlocks = kLanes / kBlockWords;        // blocks of one row of one tile
constexpr uint32_t kRowLanes = kTiles * kLanes;               // lanes of one row of all tiles
constexpr uint32_t kRowBlocks = kTiles * kTileBlocks + 1;     // the last is padding
constexpr uint32_t kRowWords = kRowBlocks * kBlockWords;
constexpr uint32_t kRepeatLanes = 128;

// Words of `rows` rows without the padding behind the last.
__aicore__ constexpr uint32_t RowsWords(uint32_t rows) { return (rows - 1) * kRowWords + kRowLanes; }
__aicore__ constexpr uint32_t RowsBytes(uint32_t rows) { return RowsWords(rows) * 2; }
__aicore__ inline Words Row(const Words& rows, uint32_t row) { return rows[row * kRowWords]; }
__aicore__ inline LocalTensor<int16_t> Signed(const Words& words) { return words.ReinterpretCast<int16_t>(); }

__aicore__ inline void Done() { PipeBarrier<PIPE_V>(); }

// Some rows of a block: `count` of them, at most 8, `step` rows apart, in their first `tiles` tiles.
struct RowSet {
    Words first;
    uint32_t step;
};

__aicore__ inline uint8_t Stride(const RowSet& rows) { return static_cast<uint8_t>(rows.step * kRowBlocks); }
__aicore__ inline uint64_t RowMask(uint32_t count) { return count * kBlockWords; }
__aicore__ inline uint8_t LaneRepeats(uint32_t tiles) { return static_cast<uint8_t>(tiles * kTileBlocks); }
__aicore__ inline int32_t TileLanes(uint32_t tiles) { return static_cast<int32_t>(tiles * kLanes); }

__aicore__ inline void ShiftLeftRows(const RowSet& dst, const RowSet& src, uint32_t shift, uint32_t count, uint32_t tiles) {
    const auto amount = static_cast<uint16_t>(shift);
    if (count <= 2) {
        for (uint32_t row = 0; row < count; ++row) {
            ShiftLeft(Row(dst.first, row * dst.step), Row(src.first, row * src.step), amount, TileLanes(tiles));
        }
    } else {
        ShiftLeft(dst.first, src.first, amount, RowMask(count), LaneRepeats(tiles), UnaryRepeatParams(Stride(dst), Stride(src), 1, 1));
    }
    Done();
}

__aicore__ inline void ShiftRightRows(const RowSet& dst, const RowSet& src, uint32_t shift, uint32_t count, uint32_t tiles) {
    const auto amount = static_cast<uint16_t>(shift);
    if (count <= 2) {
        for (uint32_t row = 0; row < count; ++row) {
            ShiftRight(Row(dst.first, row * dst.step), Row(src.first, row * src.step), amount, TileLanes(tiles));
        }
    } else {
        ShiftRight(dst.first, src.first, amount, RowMask(count), LaneRepeats(tiles), UnaryRepeatParams(Stride(dst), Stride(src), 1, 1));
    }
    Done();
}

__aicore__ inline void OrRows(const RowSet& dst, const RowSet& a, const RowSet& b, uint32_t count, uint32_t tiles) {
    if (count <= 2) {
        for (uint32_t row = 0; row < count; ++row) {
            Or(Row(dst.first, row * dst.step), Row(a.first, row * a.step), Row(b.first, row * b.step), TileLanes(tiles));
        }
    } else {
        Or(dst.first, a.first, b.first, RowMask(count), LaneRepeats(tiles), BinaryRepeatParams(Stride(dst), Stride(a), Stride(b), 1, 1, 1));
    }
    Done();
}

// `mask` is one block that holds the same word 16 times.
__aicore__ inline void AndRows(const RowSet& dst, const RowSet& src, const Words& mask, uint32_t count, uint32_t tiles) {
    if (count <= 2) {
        for (uint32_t row = 0; row < count; ++row) {
            And(Row(dst.first, row * dst.step), Row(src.first, row * src.step), mask, static_cast<uint64_t>(kRepeatLanes),
                static_cast<uint8_t>(tiles), BinaryRepeatParams(1, 1, 0, kTileBlocks, kTileBlocks, 0));
        }
    } else {
        And(dst.first, src.first, mask, RowMask(count), LaneRepeats(tiles), BinaryRepeatParams(Stride(dst), Stride(src), 0, 1, 1, 0));
    }
    Done();
}

// The same on all 16 rows, which are adjacent. These read the padding, which whoever owns the memory has written once.
__aicore__ inline void ShiftLeftAll(const Words& dst, const Words& src, uint32_t shift) {
    ShiftLeft(dst, src, static_cast<uint16_t>(shift), static_cast<int32_t>(RowsWords(kRows)));
    Done();
}
__aicore__ inline void ShiftRightAll(const Words& dst, const Words& src, uint32_t shift) {
    ShiftRight(dst, src, static_cast<uint16_t>(shift), static_cast<int32_t>(RowsWords(kRows)));
    Done();
}
__aicore__ inline void OrAll(const Words& dst, const Words& a, const Words& b) {
    Or(dst, a, b, static_cast<int32_t>(RowsWords(kRows)));
    Done();
}

// The same on all 16 rows in two instructions that leave the padding alone.
__aicore__ inline void ShiftLeftHalves(const Words& dst, const Words& src, uint32_t shift, uint32_t tiles) {
    for (uint32_t row = 0; row < kRows; row += 8) {
        ShiftLeftRows({Row(dst, row), 1}, {Row(src, row), 1}, shift, 8, tiles);
    }
}
__aicore__ inline void ShiftRightHalves(const Words& dst, const Words& src, uint32_t shift, uint32_t tiles) {
    for (uint32_t row = 0; row < kRows; row += 8) {
        ShiftRightRows({Row(dst, row), 1}, {Row(src, row), 1}, shift, 8, tiles);
    }
}
__aicore__ inline void OrHalves(const Words& dst, const Words& a, const Words& b, uint32_t tiles) {
    for (uint32_t row = 0; row < kRows; row += 8) {
        OrRows({Row(dst, row), 1}, {Row(a, row), 1}, {Row(b, row), 1}, 8, tiles);
    }
}
__aicore__ inline void AndHalves(const Words& dst, const Words& src, const Words& mask, uint32_t tiles) {
    for (uint32_t row = 0; row < kRows; row += 8) {
        AndRows({Row(dst, row), 1}, {Row(src, row), 1}, mask, 8, tiles);
    }
}
// `values` = `base` - `values`, with one row of bases for all 16.
__aicore__ inline void SubtractFromRow(const Words& base, const Words& values, uint32_t tiles) {
    for (uint32_t row = 0; row < kRows; row += 8) {
        const auto rows = Signed(Row(values, row));
        Sub(rows, Signed(base), rows, RowMask(8), LaneRepeats(tiles), BinaryRepeatParams(kRowBlocks, 0, kRowBlocks, 1, 1, 1));
        Done();
    }
}
__aicore__ inline void Fill(const Words& words, uint16_t value, uint32_t count) {
    Duplicate(words, value, static_cast<int32_t>(count));
    Done();
}

// Blocks of one word each: masks of the widths that packing needs, and one for the upper byte.
constexpr uint32_t kMaskBytes = 12 * 32;
__aicore__ inline Words LowBits(const Words& masks, uint32_t width) {
    return masks[(width <= 8 ? width - 1 : width / 2 + 3) * kBlockWords];
}
__aicore__ inline Words UpperByte(const Words& masks) { return masks[11 * kBlockWords]; }
__aicore__ inline void FillMasks(const Words& masks) {
    for (uint32_t width = 1; width <= 14; width += width < 8 ? 1 : 2) {
        Fill(LowBits(masks, width), static_cast<uint16_t>((1U << width) - 1), kBlockWords);
    }
    Fill(UpperByte(masks), 0xFF00, kBlockWords);
}

}  // namespace enec

#endif
