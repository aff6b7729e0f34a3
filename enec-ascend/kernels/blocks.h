// Job records, and what the stream says about a block before its planes are touched.
#ifndef ENEC_KERNELS_BLOCKS_H
#define ENEC_KERNELS_BLOCKS_H

#include "lanes.h"

namespace enec {

__aicore__ inline uint32_t ExponentBits(uint64_t dtype) { return dtype == kDtypeF16 ? 5 : 8; }
__aicore__ inline uint32_t ExtraRows(uint64_t dtype) { return dtype == kDtypeF16 ? 3 : 0; }
__aicore__ inline uint32_t BlockTiles(uint64_t tiles, uint64_t block) {
    const uint64_t left = tiles - block * kTiles;
    return static_cast<uint32_t>(left < kTiles ? left : kTiles);
}

template <typename T>
__aicore__ inline GlobalTensor<T> Global(uint64_t address, uint64_t elements) {
    GlobalTensor<T> tensor;
    tensor.SetGlobalBuffer(reinterpret_cast<__gm__ T*>(address), elements);
    return tensor;
}

// Copies `count` rows of one tile between device memory, where they are adjacent, and rows of a block.
__aicore__ inline void LoadTileRows(const Words& rows, uint32_t tile, const GlobalTensor<uint16_t>& source, uint32_t count) {
    DataCopyPad(rows[tile * kLanes], source, DataCopyExtParams(static_cast<uint16_t>(count), kLanes * 2, 0, kRowBlocks - kTileBlocks, 0),
                DataCopyPadExtParams<uint16_t>(false, 0, 0, 0));
}
__aicore__ inline void StoreTileRows(const GlobalTensor<uint16_t>& target, const Words& rows, uint32_t tile, uint32_t count) {
    DataCopyPad(target, rows[tile * kLanes], DataCopyExtParams(static_cast<uint16_t>(count), kLanes * 2, kRowBlocks - kTileBlocks, 0, 0));
}

constexpr uint32_t kMetaMask = 0;                  // mask of the block, 128 bytes
constexpr uint32_t kMetaEntries = 128;             // table entries of this block and the one before, 16 bytes; later
constexpr uint32_t kMetaBefore = 128;              // the `before` of LaneOffsets, 128 bytes
constexpr uint32_t kMetaBytes = 256;
constexpr uint32_t kMetaSlots = 3;

// A block of a stream, with its mask in the core's memory.
struct BlockInfo {
    Words meta;
    uint32_t tiles;
    uint32_t wide_base;
    uint32_t high_width;   // 0 if there is no segment to use
    uint32_t wide_lanes;
    uint64_t segment;      // bytes from the start of the variable section

    __aicore__ inline Words Mask() const { return meta; }
    __aicore__ inline Words Before() const { return meta[kMetaBefore / 2]; }
    // Words of one row of the segment.
    __aicore__ inline uint32_t SegmentRow() const { return (wide_lanes + 15) / 16 * 16; }
};

using MetaQueue = TQue<TPosition::VECIN, 1>;

// Finds jobs, and reads blocks' masks and table entries one block ahead.
class BlockReader {
   public:
    __aicore__ inline void Init(TPipe& pipe) {
        pipe_ = &pipe;
        pipe.InitBuffer(queue_, kMetaSlots, kMetaBytes);
    }

    // Reads record `index` of `jobs` into `job`, a structure of 16 fields of 64 bits.
    template <typename Job>
    __aicore__ inline void ReadJob(uint64_t jobs, uint64_t index, Job& job) {
        constexpr uint32_t kFields = sizeof(Job) / 8;
        auto slot = queue_.template AllocTensor<uint32_t>();
        DataCopyPad(slot, Global<uint32_t>(jobs + index * sizeof(Job), 2 * kFields), DataCopyExtParams(1, sizeof(Job), 0, 0, 0),
                    DataCopyPadExtParams<uint32_t>(false, 0, 0, 0));
        queue_.EnQue(slot);
        slot = queue_.template DeQue<uint32_t>();
        Sync<HardEvent::MTE2_S>(*pipe_);
        auto* fields = reinterpret_cast<uint64_t*>(&job);
        for (uint32_t i = 0; i < kFields; ++i) {
            const uint64_t low = slot.GetValue(2 * i);
            fields[i] = low | static_cast<uint64_t>(slot.GetValue(2 * i + 1)) << 32;
        }
        Sync<HardEvent::S_MTE2>(*pipe_);
        queue_.FreeTensor(slot);
    }

    // The last job that starts at `item` or before. Leaves its record in `job`.
    template <typename Job>
    __aicore__ inline uint64_t FindJob(uint64_t jobs, uint64_t count, uint64_t item, Job& job) {
        uint64_t low = 0;
        uint64_t high = count;
        while (high - low > 1) {
            const uint64_t middle = low + (high - low) / 2;
            ReadJob(jobs, middle, job);
            if (job.first_item <= item) {
                low = middle;
            } else {
                high = middle;
            }
        }
        ReadJob(jobs, low, job);
        return low;
    }

    // Starts to read what the stream says about a block; one at a time.
    template <typename Job>
    __aicore__ inline void Request(const Job& job, uint64_t block) {
        const uint32_t tiles = BlockTiles(job.tiles, block);
        auto slot = queue_.template AllocTensor<uint16_t>();
        const auto pad = DataCopyPadExtParams<uint16_t>(false, 0, 0, 0);
        const uint64_t first = block == 0 ? 0 : block - 1;
        const auto bytes = static_cast<uint32_t>((block + 1 - first) * 8);
        DataCopyPad(slot[kMetaEntries / 2], Global<uint16_t>(job.table + first * 8, bytes / 2), DataCopyExtParams(1, bytes, 0, 0, 0), pad);
        DataCopyPad(slot, Global<uint16_t>(job.mask + block * kTiles * kTileMaskBytes, tiles * kTileMaskBytes / 2),
                    DataCopyExtParams(1, tiles * kTileMaskBytes, 0, 0, 0), pad);
        queue_.EnQue(slot);
        arrived_ = static_cast<TEventID>(pipe_->FetchEventID(HardEvent::MTE2_S));
        SetFlag<HardEvent::MTE2_S>(arrived_);
    }

    // What was requested. A segment that contradicts mask or section is left out: streams are validated, but a file can change under a map.
    template <typename Job>
    __aicore__ inline void Take(const Job& job, uint64_t block, BlockInfo& info) {
        info.meta = queue_.template DeQue<uint16_t>();
        info.tiles = BlockTiles(job.tiles, block);
        WaitFlag<HardEvent::MTE2_S>(arrived_);
        const auto entries = info.meta[kMetaEntries / 2].template ReinterpretCast<uint32_t>();
        uint64_t start = job.first_segment;
        if (block > 0) {
            start = SegmentEnd(entries.GetValue(0), entries.GetValue(1));
        }
        const uint32_t own = block == 0 ? 0 : 2;
        const uint32_t entry = entries.GetValue(own);
        const uint64_t end = SegmentEnd(entry, entries.GetValue(own + 1));
        info.wide_base = entry & 0xFF & ((1U << ExponentBits(job.dtype)) - 1);
        info.wide_lanes = CountLanes(info);
        const uint32_t width = entry >> 8 & 0xFF;
        info.high_width = 0;
        info.segment = 0;
        if (width > job.common_width && width <= ExponentBits(job.dtype) && start >= job.first_segment && end >= start &&
            end - job.first_segment <= job.variable_len / 32) {
            const auto high = static_cast<uint32_t>(width - job.common_width);
            if (end - start == static_cast<uint64_t>(high) * (info.SegmentRow() / 16)) {
                info.segment = (start - job.first_segment) * 32;
                info.high_width = end > start ? high : 0;
            }
        }
    }
    __aicore__ inline void Free(const BlockInfo& info) { queue_.FreeTensor(info.meta); }

   private:
    static __aicore__ inline uint64_t SegmentEnd(uint32_t first, uint32_t second) {
        return static_cast<uint64_t>(first >> 16) << 32 | second;
    }

    // Counts wide lanes, and leaves what LaneOffsets needs where the table entries were.
    __aicore__ inline uint32_t CountLanes(BlockInfo& info) {
        const auto mask = info.meta.template ReinterpretCast<uint32_t>();
        const auto before = info.Before().template ReinterpretCast<uint32_t>();
        uint32_t count = 0;
        for (uint32_t pair = 0; pair < kLaneGroups / 2; ++pair) {
            const uint32_t bits = pair < info.tiles * kTileGroups / 2 ? mask.GetValue(pair) : 0;
            const uint32_t first = 15 + count;
            count += static_cast<uint32_t>(ScalarGetCountOfValue<1>(static_cast<uint64_t>(bits & 0xFFFF)));
            const uint32_t second = 15 + count;
            count += static_cast<uint32_t>(ScalarGetCountOfValue<1>(static_cast<uint64_t>(bits >> 16)));
            before.SetValue(pair, first | second << 16);
        }
        Sync<HardEvent::S_V>(*pipe_);
        Sync<HardEvent::S_MTE2>(*pipe_);
        return count;
    }

    TPipe* pipe_ = nullptr;
    MetaQueue queue_;
    TEventID arrived_ = 0;
};

}  // namespace enec

#endif
