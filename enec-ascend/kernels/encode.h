// Second launch of encoding: the planes and the segments.
#ifndef ENEC_KERNELS_ENCODE_H
#define ENEC_KERNELS_ENCODE_H

#include "elements.h"
#include "packing.h"

namespace enec {

class Encoder {
   public:
    __aicore__ inline void Init(TPipe& pipe, BlockReader& reader) {
        reader_ = &reader;
        elements_.Init(pipe);
        pipe.InitBuffer(planes_, 2, RowsBytes(8));
        pipe.InitBuffer(values_buffer_, RowsBytes(kRows));
        pipe.InitBuffer(scratch_buffer_, RowsBytes(kRows));
        pipe.InitBuffer(pairs_buffer_, RowsBytes(8));
        pipe.InitBuffer(bases_buffer_, kRowLanes * 2);
        pipe.InitBuffer(masks_buffer_, kMaskBytes);
        pipe.InitBuffer(ends_buffer_, 15 * 32);
        values_ = values_buffer_.Get<uint16_t>();
        scratch_ = scratch_buffer_.Get<uint16_t>();
        pairs_ = pairs_buffer_.Get<uint16_t>();
        bases_ = bases_buffer_.Get<uint16_t>();
        masks_ = masks_buffer_.Get<uint16_t>();
        ends_ = ends_buffer_.Get<uint16_t>();
        Fill(values_, 0, RowsWords(kRows));
        Fill(scratch_, 0, RowsWords(kRows));
        FillMasks(masks_);
        // Block k of `ends_` keeps the first k + 1 words of a block.
        Fill(ends_, 0, 15 * kBlockWords);
        for (uint32_t words = 1; words < kBlockWords; ++words) {
            Fill(Block(ends_, words - 1), 0xFFFF, words);
        }
    }

    __aicore__ inline void Run(const EncodeJob& job, uint64_t first, uint64_t end) {
        elements_.Start(job, first, end);
        reader_->Request(job, first);
        for (uint64_t block = first; block < end; ++block) {
            BlockInfo info;
            reader_->Take(job, block, info);
            if (block + 1 < end) {
                reader_->Request(job, block + 1);
            }
            const Words piece = Rotated(job, block, info.tiles);
            BytePlane(job, block, info.tiles);
            if (job.dtype == kDtypeF16) {
                ExtraPlane16(job, block, info.tiles, piece);
            }
            Distances(job, info);
            if (info.high_width > 0) {
                Segment(job, info, piece);
            }
            if (job.common_width > 0) {
                LowPlane(job, block, info.tiles);
            }
            elements_.Free(piece);
            reader_->Free(info);
        }
    }

   private:
    // `values_`: elements rotated left, the exponent's lowest bit at bit 8 (BF16, F32), or at bit 0 (F16). Returns the last piece of the elements, whose
    // memory is free to use.
    __aicore__ inline Words Rotated(const EncodeJob& job, uint64_t block, uint32_t tiles) {
        Words piece;
        if (job.dtype == kDtypeF32) {
            for (uint32_t tile = 0; tile < tiles; tile += kPieceTiles32) {
                const uint32_t count = tiles - tile < kPieceTiles32 ? tiles - tile : kPieceTiles32;
                if (tile > 0) {
                    elements_.Free(piece);
                }
                piece = elements_.Take();
                const Words lower = planes_.AllocTensor<uint16_t>();
                SplitWords32(piece, scratch_, values_, tile, &lower, count);
                planes_.EnQue(lower);
                const Words plane = planes_.DeQue<uint16_t>();
                const uint64_t words = static_cast<uint64_t>(count) * kRows * kLanes;
                DataCopyPad(Global<uint16_t>(job.extra_plane + (block * kTiles + tile) * kRows * kLanes * 2, words), plane,
                            DataCopyExtParams(1, static_cast<uint32_t>(words * 2), 0, 0, 0));
                planes_.FreeTensor(plane);
            }
            ShiftRightAll(scratch_, values_, 15);
            ShiftLeftAll(values_, values_, 1);
        } else {
            piece = elements_.Take();
            const uint32_t turn = job.dtype == kDtypeF16 ? 6 : 1;
            ShiftRightHalves(scratch_, piece, 16 - turn, tiles);
            ShiftLeftHalves(values_, piece, turn, tiles);
        }
        OrAll(values_, values_, scratch_);
        return piece;
    }

    // The byte beside the exponent: word t has that of row t below and that of row t + 8 above. Then `values_` has what remains: the exponent, and F16's
    // extra bits above it.
    __aicore__ inline void BytePlane(const EncodeJob& job, uint64_t block, uint32_t tiles) {
        const Words plane = planes_.AllocTensor<uint16_t>();
        const Words upper = Row(values_, 8);
        if (job.dtype == kDtypeF16) {
            ShiftRightRows({plane, 1}, {values_, 1}, 8, 8, tiles);
            AndRows({scratch_, 1}, {upper, 1}, UpperByte(masks_), 8, tiles);
        } else {
            AndRows({plane, 1}, {values_, 1}, LowBits(masks_, 8), 8, tiles);
            ShiftLeftRows({scratch_, 1}, {upper, 1}, 8, 8, tiles);
        }
        OrRows({plane, 1}, {plane, 1}, {scratch_, 1}, 8, tiles);
        StorePlane(job.byte_plane, block, tiles, plane, 8);
        if (job.dtype != kDtypeF16) {
            ShiftRightAll(values_, values_, 8);
        }
    }

    __aicore__ inline void ExtraPlane16(const EncodeJob& job, uint64_t block, uint32_t tiles, const Words& piece) {
        // `piece` is free: its rows take the extra bits.
        ShiftRightHalves(piece, values_, 5, tiles);
        for (uint32_t row = 0; row < kRows; row += 8) {
            AndRows({Row(piece, row), 1}, {Row(piece, row), 1}, LowBits(masks_, 3), 8, tiles);
        }
        const Words plane = planes_.AllocTensor<uint16_t>();
        Pack(plane, piece, pairs_, 3, tiles);
        StorePlane(job.extra_plane, block, tiles, plane, 3);
        AndHalves(values_, values_, LowBits(masks_, 5), tiles);
    }

    // `values_`: base - exponent.
    __aicore__ inline void Distances(const EncodeJob& job, const BlockInfo& info) {
        const auto common = static_cast<uint32_t>(job.common_base);
        if (info.wide_lanes > 0) {
            FillMinusOne(pairs_);
            LaneFlags(Row(pairs_, 2), info.Mask(), pairs_, Row(pairs_, 4), info.tiles);
            LaneBases(bases_, Row(pairs_, 2), common, info.wide_base, info.tiles);
        } else {
            Fill(bases_, static_cast<uint16_t>(common), kRowLanes);
        }
        SubtractFromRow(bases_, values_, info.tiles);
    }

    // The high bits of wide lanes: packed in all lanes, then the wide ones kept.
    __aicore__ inline void Segment(const EncodeJob& job, const BlockInfo& info, const Words& piece) {
        const auto low = static_cast<uint32_t>(job.common_width);
        ShiftRightAll(scratch_, values_, low);
        Pack(piece, scratch_, pairs_, info.high_width, info.tiles);
        const Words segment = planes_.AllocTensor<uint16_t>();
        const uint32_t row_words = info.SegmentRow();
        for (uint32_t row = 0; row < info.high_width; ++row) {
            uint64_t kept = 0;
            GatherMask(segment[row * row_words], Row(piece, row), info.Mask(), true, static_cast<uint32_t>(TileLanes(info.tiles)),
                       GatherMaskParams(1, 1, 8, 0), kept);
            Done();
        }
        const uint32_t last = info.wide_lanes % kBlockWords;
        if (last != 0) {
            ClearRowEnds(segment, row_words, info.high_width, last);
        }
        planes_.EnQue(segment);
        const Words stored = planes_.DeQue<uint16_t>();
        const uint32_t words = row_words * info.high_width;
        DataCopyPad(Global<uint16_t>(job.variable + info.segment, words), stored, DataCopyExtParams(1, words * 2, 0, 0, 0));
        planes_.FreeTensor(stored);
    }

    // What lies behind the last wide lane of a row is unspecified; it becomes zero.
    __aicore__ inline void ClearRowEnds(const Words& segment, uint32_t row_words, uint32_t rows, uint32_t kept) {
        const auto stride = static_cast<uint8_t>(row_words / kBlockWords);
        const Words ends = segment[row_words - kBlockWords];
        And(ends, ends, Block(ends_, kept - 1), static_cast<uint64_t>(kBlockWords), static_cast<uint8_t>(rows),
            BinaryRepeatParams(1, 1, 1, stride, stride, 0));
        Done();
    }

    __aicore__ inline void LowPlane(const EncodeJob& job, uint64_t block, uint32_t tiles) {
        const auto width = static_cast<uint32_t>(job.common_width);
        AndHalves(values_, values_, LowBits(masks_, width), tiles);
        const Words plane = planes_.AllocTensor<uint16_t>();
        Pack(plane, values_, pairs_, width, tiles);
        StorePlane(job.low_plane, block, tiles, plane, width);
    }

    __aicore__ inline void StorePlane(uint64_t address, uint64_t block, uint32_t tiles, const Words& plane, uint32_t rows) {
        planes_.EnQue(plane);
        const Words stored = planes_.DeQue<uint16_t>();
        const uint64_t tile_words = rows * kLanes;
        for (uint32_t tile = 0; tile < tiles; ++tile) {
            StoreTileRows(Global<uint16_t>(address + (block * kTiles + tile) * tile_words * 2, tile_words), stored, tile, rows);
        }
        planes_.FreeTensor(stored);
    }

    BlockReader* reader_ = nullptr;
    ElementReader elements_;
    TQue<TPosition::VECOUT, 1> planes_;
    TBuf<TPosition::VECCALC> values_buffer_;
    TBuf<TPosition::VECCALC> scratch_buffer_;
    TBuf<TPosition::VECCALC> pairs_buffer_;
    TBuf<TPosition::VECCALC> bases_buffer_;
    TBuf<TPosition::VECCALC> masks_buffer_;
    TBuf<TPosition::VECCALC> ends_buffer_;
    Words values_;
    Words scratch_;
    Words pairs_;
    Words bases_;
    Words masks_;
    Words ends_;
};

}  // namespace enec

#endif
