// How a launch's items are shared out, and the loop over a core's own.
#ifndef ENEC_KERNELS_WORK_H
#define ENEC_KERNELS_WORK_H

#include "blocks.h"

namespace enec {

__aicore__ inline uint64_t FirstBlock(const EncodeJob&) { return 0; }
__aicore__ inline uint64_t EndBlock(const EncodeJob& job) { return (job.tiles + kTiles - 1) / kTiles; }
__aicore__ inline uint64_t FirstBlock(const DecodeJob& job) { return job.first_tile / kTiles; }
__aicore__ inline uint64_t EndBlock(const DecodeJob& job) { return (job.end_tile + kTiles - 1) / kTiles; }

// The items of this core.
struct Share {
    uint64_t item;
    uint64_t end;
};
__aicore__ inline Share OwnShare(uint64_t items) {
    const auto core = static_cast<uint64_t>(GetBlockIdx());
    const auto cores = static_cast<uint64_t>(GetBlockNum());
    return Share{items * core / cores, items * (core + 1) / cores};
}

// Calls `worker.Run(job, first, end)` for each job of which this core has blocks, at least one.
template <typename Job, typename Worker>
__aicore__ inline void ForOwnBlocks(BlockReader& reader, Worker& worker, uint64_t jobs, uint64_t count, const Share& share) {
    uint64_t item = share.item;
    const uint64_t end = share.end;
    Job job;
    uint64_t index = reader.FindJob(jobs, count, item, job);
    while (true) {
        const uint64_t first = FirstBlock(job) + (item - job.first_item);
        const uint64_t own_end = FirstBlock(job) + (end - job.first_item);
        const uint64_t job_end = EndBlock(job);
        const uint64_t last = own_end < job_end ? own_end : job_end;
        worker.Run(job, first, last);
        item += last - first;
        ++index;
        if (item == end || index == count) {
            return;
        }
        reader.ReadJob(jobs, index, job);
    }
}

}  // namespace enec

#endif
