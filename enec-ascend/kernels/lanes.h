// What a block's mask says about its lanes: a word for each, the base to subtract from, and the place of its words in the segment.
#ifndef ENEC_KERNELS_LANES_H
#define ENEC_KERNELS_LANES_H

#include "words32.h"

namespace enec {

constexpr uint32_t kLaneGroups = kRowLanes / kBlockWords;  // of 16 lanes: one block of words
constexpr uint32_t kTileMaskBytes = kLanes / 8;
constexpr uint32_t kTileGroups = kLanes / kBlockWords;

// `flags`: 0xFFFF for a wide lane, 0 for a common one. `minus_one` has a half for each lane.
__aicore__ inline void LaneFlags(const Words& flags, const Words& mask, const Words& minus_one, const Words& scratch, uint32_t tiles) {
    const auto chosen = scratch.ReinterpretCast<half>();
    const auto lanes = static_cast<uint32_t>(TileLanes(tiles));
    Select(chosen, mask.ReinterpretCast<uint8_t>(), minus_one.ReinterpretCast<half>(), static_cast<half>(0.0F),
           SELMODE::VSEL_TENSOR_SCALAR_MODE, lanes);
    Done();
    Cast(Signed(flags), chosen, RoundMode::CAST_RINT, lanes);
    Done();
    if (tiles < kTiles) {
        Fill(flags[lanes], 0, kRowLanes - lanes);
    }
}
__aicore__ inline void FillMinusOne(const Words& minus_one) {
    Duplicate(minus_one.ReinterpretCast<half>(), static_cast<half>(-1.0F), static_cast<int32_t>(kRowLanes));
    Done();
}

// The base of each lane: `common` or `wide`.
__aicore__ inline void LaneBases(const Words& bases, const Words& flags, uint32_t common, uint32_t wide, uint32_t tiles) {
    Muls(Signed(bases), Signed(flags), static_cast<int16_t>(static_cast<int32_t>(common) - static_cast<int32_t>(wide)), TileLanes(tiles));
    Done();
    Adds(Signed(bases), Signed(bases), static_cast<int16_t>(common), TileLanes(tiles));
    Done();
}

// Memory for LaneOffsets: three areas of rows of 64 words, one for each place within a group of 16 lanes, with rows of zeros in front.
constexpr uint32_t kGroupRow = kLaneGroups;  // words
constexpr uint32_t kZeroRows = 8;
constexpr uint32_t kScanWords = (2 * (kZeroRows + kRows) + kRows) * kGroupRow;

// Byte offsets for a Gather of the segment's words, 32 bits each: for a wide lane 32 + 2 rank, for a common one 0. `before` has, for each group of 16
// lanes, 15 + the number of wide lanes in all groups before.
//
// Lanes are transposed, so that places within a group become rows; then 4 additions make the sums over the places before, each of rows with
// rows 1, 2, 4 and 8 above. Every sum is at most 16 and every offset fits 16 bits. A second transposition goes back and puts a zero word behind
// each.
__aicore__ inline void LaneOffsets(const Words& offsets, const Words& flags, const Words& before, const Words& scratch) {
    const Words b = scratch[kZeroRows * kGroupRow];
    const Words a = scratch[(2 * kZeroRows + kRows) * kGroupRow];
    const Words places = scratch[2 * (kZeroRows + kRows) * kGroupRow];
    constexpr auto kCount = static_cast<int32_t>(kRows * kGroupRow);
    Fill(scratch, 0, 2 * (kZeroRows + kRows) * kGroupRow);

    BlockList rows;
    for (uint32_t i = 0; i < 16; ++i) {
        rows.at[i] = places[i * kGroupRow];
    }
    Transpose(rows, Adjacent(flags), kGroupRow / kBlockWords, 1, 16);

    // Flags are -1: sums are negative counts. `a` is still zero when the first step reads its last row as the row above `places`.
    Add(Signed(b), Signed(places), Signed(scratch[(2 * (kZeroRows + kRows) - 1) * kGroupRow]), kCount);
    Done();
    Add(Signed(a), Signed(b), Signed(scratch[(kZeroRows - 2) * kGroupRow]), kCount);
    Done();
    Add(Signed(b), Signed(a), Signed(scratch[(2 * kZeroRows + kRows - 4) * kGroupRow]), kCount);
    Done();
    Add(Signed(a), Signed(b), Signed(scratch), kCount);
    Done();

    Sub(Signed(b), Signed(before), Signed(a), static_cast<uint64_t>(kGroupRow), static_cast<uint8_t>(kRows),
        BinaryRepeatParams(1, 1, 1, kGroupRow / kBlockWords, 0, kGroupRow / kBlockWords));
    Done();
    And(b, b, places, kCount);
    Done();
    ShiftLeft(b, b, static_cast<uint16_t>(1), kCount);
    Done();

    const Words zeros = scratch;
    for (uint32_t half_group = 0; half_group < 2; ++half_group) {
        BlockList words;
        BlockList out;
        for (uint32_t i = 0; i < 16; ++i) {
            words.at[i] = i % 2 == 0 ? b[(half_group * 8 + i / 2) * kGroupRow] : zeros;
            out.at[i] = Block(offsets, 2 * i + half_group);
        }
        Transpose(out, words, kGroupRow / kBlockWords, 32, 1);
    }
}

}  // namespace enec

#endif
