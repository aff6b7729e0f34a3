// Decoding, one launch. While a block is computed, the next one's planes are on their way.
#ifndef ENEC_KERNELS_DECODE_H
#define ENEC_KERNELS_DECODE_H

#include "packing.h"
#include "work.h"

namespace enec {

constexpr uint32_t kPieceTilesOut32 = 2;

// What is read of a block, in this order; parts that it has not are left out.
constexpr uint32_t kPartSegment = 0;
constexpr uint32_t kPartLow = 1;
constexpr uint32_t kPartExtra16 = 2;
constexpr uint32_t kPartBytes = 3;
constexpr uint32_t kPartWords32 = 4;  // and following: lower words of F32 elements, two tiles each
constexpr uint32_t kParts = kPartWords32 + kTiles / kPieceTilesOut32;

class Decoder {
   public:
    __aicore__ inline void Init(TPipe& pipe, BlockReader& reader) {
        reader_ = &reader;
        pipe.InitBuffer(parts_, kPartBuffers, kPartBufferBytes);
        pipe.InitBuffer(results_, 2, RowsBytes(kRows));
        pipe.InitBuffer(values_buffer_, RowsBytes(kRows));
        pipe.InitBuffer(pairs_buffer_, RowsBytes(8));
        pipe.InitBuffer(bases_buffer_, kRowLanes * 2);
        pipe.InitBuffer(minus_one_buffer_, kRowLanes * 2);
        pipe.InitBuffer(masks_buffer_, kMaskBytes);
        values_ = values_buffer_.Get<uint16_t>();
        pairs_ = pairs_buffer_.Get<uint16_t>();
        bases_ = bases_buffer_.Get<uint16_t>();
        minus_one_ = minus_one_buffer_.Get<uint16_t>();
        masks_ = masks_buffer_.Get<uint16_t>();
        Fill(values_, 0, RowsWords(kRows));
        FillMinusOne(minus_one_);
        FillMasks(masks_);
    }

    __aicore__ inline void Run(const DecodeJob& job, uint64_t first, uint64_t end) {
        end_ = end;
        block_ = first;
        next_block_ = first;
        next_part_ = 0;
        waiting_ = 0;
        reader_->Request(job, first);
        for (; block_ < end; ++block_) {
            Pump(job);
            const BlockInfo& info = infos_[block_ % 2];
            Decode(job, info);
            reader_->Free(info);
        }
    }

   private:
    static constexpr uint32_t kPartBuffers = 4;
    // 8 rows of a segment, each with a block of zeros in front; everything else is shorter.
    static constexpr uint32_t kPartBufferBytes = 8 * (kRowLanes * 2 + 32);

    __aicore__ inline bool HasPart(const DecodeJob& job, const BlockInfo& info, uint32_t part) const {
        if (part >= kPartWords32) {
            return job.dtype == kDtypeF32 && (part - kPartWords32) * kPieceTilesOut32 < info.tiles;
        }
        return part == kPartBytes || (part == kPartLow && job.common_width > 0) || (part == kPartSegment && info.high_width > 0) ||
               (part == kPartExtra16 && job.dtype == kDtypeF16);
    }

    // Starts reading what comes next, as long as there is room, up to the end of the block behind the one in work.
    __aicore__ inline void Pump(const DecodeJob& job) {
        while (waiting_ < kPartBuffers && next_block_ < end_ && next_block_ <= block_ + 1) {
            BlockInfo& info = infos_[next_block_ % 2];
            if (next_part_ == 0) {
                reader_->Take(job, next_block_, info);
                if (next_block_ + 1 < end_) {
                    reader_->Request(job, next_block_ + 1);
                }
            }
            if (HasPart(job, info, next_part_)) {
                Load(job, info, next_block_, next_part_);
            }
            if (++next_part_ == kParts) {
                next_part_ = 0;
                ++next_block_;
            }
        }
    }

    __aicore__ inline void Load(const DecodeJob& job, const BlockInfo& info, uint64_t block, uint32_t part) {
        const Words buffer = parts_.AllocTensor<uint16_t>();
        const uint64_t tile = block * kTiles;
        if (part == kPartLow) {
            LoadPlane(buffer, job.low_plane, tile, info.tiles, static_cast<uint32_t>(job.common_width));
        } else if (part == kPartSegment) {
            const uint32_t row = info.SegmentRow();
            DataCopyPad(buffer, Global<uint16_t>(job.variable + info.segment, static_cast<uint64_t>(row) * info.high_width),
                        DataCopyExtParams(static_cast<uint16_t>(info.high_width), row * 2, 0, 0, 0),
                        DataCopyPadExtParams<uint16_t>(true, kBlockWords, 0, 0));
        } else if (part == kPartExtra16) {
            LoadPlane(buffer, job.extra_plane, tile, info.tiles, ExtraRows(job.dtype));
        } else if (part == kPartBytes) {
            LoadPlane(buffer, job.byte_plane, tile, info.tiles, 8);
        } else {
            const uint32_t first = (part - kPartWords32) * kPieceTilesOut32;
            const uint32_t words = PieceTiles(info, first) * kRows * kLanes;
            DataCopyPad(buffer, Global<uint16_t>(job.extra_plane + (tile + first) * kRows * kLanes * 2, words),
                        DataCopyExtParams(1, words * 2, 0, 0, 0), DataCopyPadExtParams<uint16_t>(false, 0, 0, 0));
        }
        parts_.EnQue(buffer);
        ++waiting_;
    }
    static __aicore__ inline uint32_t PieceTiles(const BlockInfo& info, uint32_t first) {
        const uint32_t left = info.tiles - first;
        return left < kPieceTilesOut32 ? left : kPieceTilesOut32;
    }
    static __aicore__ inline void LoadPlane(const Words& buffer, uint64_t address, uint64_t first, uint32_t tiles, uint32_t rows) {
        const uint64_t words = rows * kLanes;
        for (uint32_t tile = 0; tile < tiles; ++tile) {
            LoadTileRows(buffer, tile, Global<uint16_t>(address + (first + tile) * words * 2, words), rows);
        }
    }
    __aicore__ inline Words TakePart() { return parts_.DeQue<uint16_t>(); }
    __aicore__ inline void FreePart(const DecodeJob& job, const Words& part) {
        parts_.FreeTensor(part);
        --waiting_;
        Pump(job);
    }

    __aicore__ inline void Decode(const DecodeJob& job, const BlockInfo& info) {
        Words result = results_.AllocTensor<uint16_t>();
        Bases(job, info, result);
        Distances(job, info, result);
        SubtractFromRow(bases_, values_, info.tiles);
        // `values_` has exponents, in two's complement where a hostile stream makes them wrap.
        if (job.dtype == kDtypeF16) {
            Finish16(job, info, result);
        } else {
            FinishBytes(job, info, result);
        }
        if (job.dtype == kDtypeF32) {
            Store32(job, info, result);
        } else {
            results_.EnQue(result);
            Store(job, info);
        }
    }

    // The base of each lane, and the segment's words of each lane in rows 8 and following of `scratch`.
    __aicore__ inline void Bases(const DecodeJob& job, const BlockInfo& info, const Words& scratch) {
        const auto common = static_cast<uint32_t>(job.common_base);
        if (info.wide_lanes == 0) {
            Fill(bases_, static_cast<uint16_t>(common), kRowLanes);
            return;
        }
        const Words offsets = scratch;
        const Words flags = Row(scratch, 2);
        const Words sums = Row(scratch, 3);
        LaneFlags(flags, info.Mask(), minus_one_, sums, info.tiles);
        LaneBases(bases_, flags, common, info.wide_base, info.tiles);
        if (info.high_width == 0) {
            return;
        }
        LaneOffsets(offsets, flags, info.Before(), sums);
        const Words part = TakePart();
        for (uint32_t row = 0; row < info.high_width; ++row) {
            Gather(Row(scratch, 8 + row), part, offsets.ReinterpretCast<uint32_t>(), row * (32 + info.SegmentRow() * 2),
                   static_cast<uint32_t>(TileLanes(info.tiles)));
            Done();
        }
        FreePart(job, part);
    }

    // `values_`: low bits and, where a lane has any, high bits. `scratch`: as Bases left it.
    __aicore__ inline void Distances(const DecodeJob& job, const BlockInfo& info, const Words& scratch) {
        const auto low = static_cast<uint32_t>(job.common_width);
        if (info.high_width > 0) {
            Unpack(values_, Row(scratch, 8), pairs_, info.high_width, masks_, info.tiles);
            if (low > 0) {
                ShiftLeftAll(values_, values_, low);
            }
        } else if (low == 0) {
            Fill(values_, 0, RowsWords(kRows));
        }
        if (low == 0) {
            return;
        }
        const Words part = TakePart();
        const Words& target = info.high_width > 0 ? scratch : values_;
        Unpack(target, part, pairs_, low, masks_, info.tiles);
        FreePart(job, part);
        if (info.high_width > 0) {
            OrHalves(values_, values_, scratch, info.tiles);
        }
    }

    // BF16 words, or the upper words of F32: exponent above the byte, rotated right by 1.
    __aicore__ inline void FinishBytes(const DecodeJob& job, const BlockInfo& info, const Words& result) {
        const Words bytes = TakePart();
        AndRows({result, 1}, {bytes, 1}, LowBits(masks_, 8), 8, info.tiles);
        ShiftRightRows({Row(result, 8), 1}, {bytes, 1}, 8, 8, info.tiles);
        FreePart(job, bytes);
        ShiftLeftAll(values_, values_, 8);
        OrHalves(values_, values_, result, info.tiles);
        Turn(result, 1);
    }

    // F16: exponent, 3 extra bits, byte, rotated right by 6.
    __aicore__ inline void Finish16(const DecodeJob& job, const BlockInfo& info, const Words& result) {
        AndHalves(values_, values_, LowBits(masks_, 5), info.tiles);
        const Words extra = TakePart();
        Unpack(result, extra, pairs_, 3, masks_, info.tiles);
        FreePart(job, extra);
        ShiftLeftHalves(result, result, 5, info.tiles);
        OrHalves(values_, values_, result, info.tiles);
        const Words bytes = TakePart();
        ShiftLeftRows({result, 1}, {bytes, 1}, 8, 8, info.tiles);
        AndRows({Row(result, 8), 1}, {bytes, 1}, UpperByte(masks_), 8, info.tiles);
        FreePart(job, bytes);
        OrHalves(values_, values_, result, info.tiles);
        Turn(result, 6);
    }

    // `result`: `values_` rotated right.
    __aicore__ inline void Turn(const Words& result, uint32_t bits) {
        ShiftRightAll(result, values_, bits);
        ShiftLeftAll(values_, values_, 16 - bits);
        OrAll(result, result, values_);
    }

    // Whether the job wants a tile of the block in work.
    __aicore__ inline bool Wanted(const DecodeJob& job, uint64_t tile) const { return tile >= job.first_tile && tile < job.end_tile; }

    __aicore__ inline void Store(const DecodeJob& job, const BlockInfo& info) {
        constexpr uint64_t kTileWords = kRows * kLanes;
        const Words result = results_.DeQue<uint16_t>();
        for (uint32_t t = 0; t < info.tiles; ++t) {
            const uint64_t tile = block_ * kTiles + t;
            if (Wanted(job, tile)) {
                StoreTileRows(Global<uint16_t>(job.target + (tile - job.first_tile) * kTileWords * 2, kTileWords), result, t, kRows);
            }
        }
        results_.FreeTensor(result);
    }

    // `result` has the upper words and becomes free for the first elements.
    __aicore__ inline void Store32(const DecodeJob& job, const BlockInfo& info, Words& result) {
        constexpr uint32_t kTileWords = 2 * kRows * kLanes;
        OrAll(values_, result, result);
        for (uint32_t first = 0; first < info.tiles; first += kPieceTilesOut32) {
            const uint32_t tiles = PieceTiles(info, first);
            if (first > 0) {
                result = results_.AllocTensor<uint16_t>();
            }
            const Words lower = TakePart();
            JoinWords32(result, result[kPieceTilesOut32 * kTileWords], values_, first, lower, tiles);
            FreePart(job, lower);
            results_.EnQue(result);
            const Words stored = results_.DeQue<uint16_t>();
            for (uint32_t t = 0; t < tiles; ++t) {
                const uint64_t tile = block_ * kTiles + first + t;
                if (Wanted(job, tile)) {
                    DataCopyPad(Global<uint16_t>(job.target + (tile - job.first_tile) * kTileWords * 2, kTileWords), stored[t * kTileWords],
                                DataCopyExtParams(1, kTileWords * 2, 0, 0, 0));
                }
            }
            results_.FreeTensor(stored);
        }
    }

    BlockReader* reader_ = nullptr;
    TQue<TPosition::VECIN, kPartBuffers> parts_;
    TQue<TPosition::VECOUT, 1> results_;
    TBuf<TPosition::VECCALC> values_buffer_;
    TBuf<TPosition::VECCALC> pairs_buffer_;
    TBuf<TPosition::VECCALC> bases_buffer_;
    TBuf<TPosition::VECCALC> minus_one_buffer_;
    TBuf<TPosition::VECCALC> masks_buffer_;
    Words values_;
    Words pairs_;
    Words bases_;
    Words minus_one_;
    Words masks_;
    BlockInfo infos_[2];
    uint64_t end_ = 0;
    uint64_t block_ = 0;
    uint64_t next_block_ = 0;
    uint32_t next_part_ = 0;
    uint32_t waiting_ = 0;
};

}  // namespace enec

#endif
