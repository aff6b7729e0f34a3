// The elements of blocks, read one piece ahead: a block of 16-bit elements is one piece, one of F32 elements two.
#ifndef ENEC_KERNELS_ELEMENTS_H
#define ENEC_KERNELS_ELEMENTS_H

#include "work.h"

namespace enec {

constexpr uint32_t kPieceTiles32 = 4;

class ElementReader {
   public:
    __aicore__ inline void Init(TPipe& pipe) { pipe.InitBuffer(queue_, 2, RowsBytes(kRows)); }

    __aicore__ inline void Start(const EncodeJob& job, uint64_t first, uint64_t end) {
        wide_ = job.dtype == kDtypeF32;
        source_ = job.source;
        tile_ = first * kTiles;
        const uint64_t blocks_end = end * kTiles;
        end_ = blocks_end < job.tiles ? blocks_end : job.tiles;
        waiting_ = 0;
        Pump();
        Pump();
    }
    __aicore__ inline Words Take() { return queue_.DeQue<uint16_t>(); }
    __aicore__ inline void Free(const Words& piece) {
        queue_.FreeTensor(piece);
        --waiting_;
        Pump();
    }

   private:
    __aicore__ inline void Pump() {
        if (tile_ == end_ || waiting_ == 2) {
            return;
        }
        const uint64_t most = wide_ ? kPieceTiles32 : kTiles;
        const uint64_t left = end_ - tile_;
        const auto tiles = static_cast<uint32_t>(left < most ? left : most);
        const Words piece = queue_.AllocTensor<uint16_t>();
        if (wide_) {
            constexpr uint32_t kTileWords = 2 * kRows * kLanes;
            DataCopyPad(piece, Global<uint16_t>(source_ + tile_ * kTileWords * 2, static_cast<uint64_t>(tiles) * kTileWords),
                        DataCopyExtParams(1, tiles * kTileWords * 2, 0, 0, 0), DataCopyPadExtParams<uint16_t>(false, 0, 0, 0));
        } else {
            constexpr uint32_t kTileWords = kRows * kLanes;
            for (uint32_t tile = 0; tile < tiles; ++tile) {
                LoadTileRows(piece, tile, Global<uint16_t>(source_ + (tile_ + tile) * kTileWords * 2, kTileWords), kRows);
            }
        }
        queue_.EnQue(piece);
        tile_ += tiles;
        ++waiting_;
    }

    TQue<TPosition::VECIN, 2> queue_;
    bool wide_ = false;
    uint64_t source_ = 0;
    uint64_t tile_ = 0;
    uint64_t end_ = 0;
    uint32_t waiting_ = 0;
};

}  // namespace enec

#endif
