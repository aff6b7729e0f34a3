// First launch of encoding: which lanes are wide, and the window of each block's wide lanes.
#ifndef ENEC_KERNELS_ANALYSE_H
#define ENEC_KERNELS_ANALYSE_H

#include "elements.h"

namespace enec {

class Analyser {
   public:
    __aicore__ inline void Init(TPipe& pipe) {
        pipe_ = &pipe;
        elements_.Init(pipe);
        pipe.InitBuffer(results_, 2, kMaskBytesOut + kSummaryBytes);
        pipe.InitBuffer(exponents_buffer_, RowsBytes(kRows));
        pipe.InitBuffer(scratch_buffer_, RowsBytes(kRows));
        exponents_ = exponents_buffer_.Get<uint16_t>();
        scratch_ = scratch_buffer_.Get<uint16_t>();
        Fill(exponents_, 0, RowsWords(kRows));
        Fill(scratch_, 0, RowsWords(kRows));
    }

    __aicore__ inline void Run(const EncodeJob& job, uint64_t first, uint64_t end) {
        elements_.Start(job, first, end);
        for (uint64_t block = first; block < end; ++block) {
            const uint32_t tiles = BlockTiles(job.tiles, block);
            Exponents(job, tiles);
            Extremes();
            const Words result = results_.AllocTensor<uint16_t>();
            Windows(job, tiles, result);
            results_.EnQue(result);
            Store(job, block, tiles, results_.DeQue<uint16_t>());
        }
    }

   private:
    static constexpr uint32_t kMaskBytesOut = kTiles * kTileMaskBytes;
    static constexpr uint32_t kSummaryBytes = sizeof(BlockSummary);
    static constexpr int16_t kLargest = 255;

    // One exponent in each word.
    __aicore__ inline void Exponents(const EncodeJob& job, uint32_t tiles) {
        if (job.dtype == kDtypeF32) {
            for (uint32_t tile = 0; tile < tiles; tile += kPieceTiles32) {
                const uint32_t count = tiles - tile < kPieceTiles32 ? tiles - tile : kPieceTiles32;
                const Words piece = elements_.Take();
                SplitWords32(piece, scratch_, exponents_, tile, nullptr, count);
                elements_.Free(piece);
            }
            ShiftLeftAll(exponents_, exponents_, 1);
        } else {
            const Words piece = elements_.Take();
            ShiftLeftHalves(exponents_, piece, 1, tiles);
            elements_.Free(piece);
        }
        ShiftRightAll(exponents_, exponents_, 16 - ExponentBits(job.dtype));
    }

    // Row 0 of the scratch rows: each lane's largest exponent; row 8: its smallest.
    __aicore__ inline void Extremes() {
        const auto largest = Signed(scratch_);
        const auto smallest = Signed(Row(scratch_, 8));
        auto low = Signed(exponents_);
        auto smallest_low = low;
        for (uint32_t rows = 8; rows > 0; rows /= 2) {
            const auto count = static_cast<int32_t>(RowsWords(rows));
            Max(largest, low, low[rows * kRowWords], count);
            Done();
            Min(smallest, smallest_low, smallest_low[rows * kRowWords], count);
            Done();
            low = largest;
            smallest_low = smallest;
        }
    }

    __aicore__ inline void Windows(const EncodeJob& job, uint32_t tiles, const Words& result) {
        const int32_t lanes = TileLanes(tiles);
        const auto base = static_cast<int32_t>(job.common_base);
        const int32_t lowest = base - (1 << job.common_width) + 1;
        const auto largest = Signed(scratch_);
        const auto smallest = Signed(Row(scratch_, 8));
        const auto flags = Signed(Row(scratch_, 1));
        const auto below = Signed(Row(scratch_, 2));
        const auto most = Signed(Row(scratch_, 3));
        const auto least = Signed(Row(scratch_, 4));
        const auto halves = Row(scratch_, 5).ReinterpretCast<half>();

        // -1 where `base - largest` or `smallest - lowest` is negative.
        Muls(flags, largest, static_cast<int16_t>(-1), lanes);
        Done();
        Adds(flags, flags, static_cast<int16_t>(base), lanes);
        Done();
        ShiftRight(flags, flags, static_cast<int16_t>(15), lanes);
        Done();
        Adds(below, smallest, static_cast<int16_t>(-lowest), lanes);
        Done();
        ShiftRight(below, below, static_cast<int16_t>(15), lanes);
        Done();
        Or(flags, flags, below, lanes);
        Done();
        Cast(halves, flags, RoundMode::CAST_NONE, static_cast<uint32_t>(lanes));
        Done();
        const auto bits = result.ReinterpretCast<uint8_t>();
        IsNegative(bits, halves, static_cast<uint32_t>(lanes));
        Done();

        // Largest exponent of wide lanes, and largest of 255 - exponent; lanes that are not wide count as 0.
        if (tiles < kTiles) {
            Fill(Row(scratch_, 3), 0, kRowLanes);
            Fill(Row(scratch_, 4), 0, kRowLanes);
        }
        And(most, largest, flags, lanes);
        Done();
        Muls(least, smallest, static_cast<int16_t>(-1), lanes);
        Done();
        Adds(least, least, kLargest, lanes);
        Done();
        And(least, least, flags, lanes);
        Done();
        for (uint32_t count = kRowLanes / 2; count >= kBlockWords; count /= 2) {
            Max(most, most, most[count], static_cast<int32_t>(count));
            Done();
            Max(least, least, least[count], static_cast<int32_t>(count));
            Done();
        }
        Sync<HardEvent::V_S>(*pipe_);
        Summarise(job, tiles, result, most, least);
    }

    __aicore__ inline void Summarise(const EncodeJob& job, uint32_t tiles, const Words& result, const LocalTensor<int16_t>& most,
                                     const LocalTensor<int16_t>& least) {
        const auto words = result.ReinterpretCast<uint32_t>();
        uint32_t wide = 0;
        for (uint32_t i = 0; i < tiles * kTileMaskBytes / 4; ++i) {
            wide += static_cast<uint32_t>(ScalarGetCountOfValue<1>(static_cast<uint64_t>(words.GetValue(i))));
        }
        int32_t largest = 0;
        int32_t complement = 0;
        for (uint32_t i = 0; i < kBlockWords; ++i) {
            const int32_t a = most.GetValue(i);
            const int32_t b = least.GetValue(i);
            largest = a > largest ? a : largest;
            complement = b > complement ? b : complement;
        }
        Sync<HardEvent::S_V>(*pipe_);
        auto width = static_cast<uint32_t>(job.common_width);
        if (wide > 0) {
            const auto span = static_cast<uint32_t>(largest - (kLargest - complement));
            while (width < 8 && span >> width != 0) {
                ++width;
            }
        }
        const auto summary = result[kMaskBytesOut / 2].ReinterpretCast<uint32_t>();
        summary.SetValue(0, wide > 0 ? static_cast<uint32_t>(largest) : 0);
        summary.SetValue(1, width);
        summary.SetValue(2, wide);
        for (uint32_t i = 3; i < kSummaryBytes / 4; ++i) {
            summary.SetValue(i, 0);
        }
        Sync<HardEvent::S_MTE3>(*pipe_);
    }

    __aicore__ inline void Store(const EncodeJob& job, uint64_t block, uint32_t tiles, const Words& result) {
        const uint32_t bytes = tiles * kTileMaskBytes;
        DataCopyPad(Global<uint16_t>(job.mask + block * kTiles * kTileMaskBytes, bytes / 2), result, DataCopyExtParams(1, bytes, 0, 0, 0));
        DataCopyPad(Global<uint16_t>(job.summary + block * kSummaryBytes, kSummaryBytes / 2), result[kMaskBytesOut / 2],
                    DataCopyExtParams(1, kSummaryBytes, 0, 0, 0));
        results_.FreeTensor(result);
    }

    TPipe* pipe_ = nullptr;
    ElementReader elements_;
    TQue<TPosition::VECOUT, 1> results_;
    TBuf<TPosition::VECCALC> exponents_buffer_;
    TBuf<TPosition::VECCALC> scratch_buffer_;
    Words exponents_;
    Words scratch_;
};

}  // namespace enec

#endif
