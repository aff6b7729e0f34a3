// Entry points (abi.h). Vector cores only.
#include "analyse.h"
#include "decode.h"
#include "encode.h"

extern "C" __global__ __aicore__ void enec_analyse_v1(GM_ADDR jobs, uint64_t count, uint64_t items) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    const enec::Share share = enec::OwnShare(items);
    if (share.item == share.end) {
        return;
    }
    AscendC::TPipe pipe;
    enec::BlockReader reader;
    enec::Analyser worker;
    reader.Init(pipe);
    worker.Init(pipe);
    enec::ForOwnBlocks<enec::EncodeJob>(reader, worker, reinterpret_cast<uint64_t>(jobs), count, share);
}

extern "C" __global__ __aicore__ void enec_encode_v1(GM_ADDR jobs, uint64_t count, uint64_t items) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    const enec::Share share = enec::OwnShare(items);
    if (share.item == share.end) {
        return;
    }
    AscendC::TPipe pipe;
    enec::BlockReader reader;
    enec::Encoder worker;
    reader.Init(pipe);
    worker.Init(pipe, reader);
    enec::ForOwnBlocks<enec::EncodeJob>(reader, worker, reinterpret_cast<uint64_t>(jobs), count, share);
}

extern "C" __global__ __aicore__ void enec_decode_v1(GM_ADDR jobs, uint64_t count, uint64_t items) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    const enec::Share share = enec::OwnShare(items);
    if (share.item == share.end) {
        return;
    }
    AscendC::TPipe pipe;
    enec::BlockReader reader;
    enec::Decoder worker;
    reader.Init(pipe);
    worker.Init(pipe, reader);
    enec::ForOwnBlocks<enec::DecodeJob>(reader, worker, reinterpret_cast<uint64_t>(jobs), count, share);
}
