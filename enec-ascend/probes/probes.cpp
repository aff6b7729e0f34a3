// Kernels that find out what a device does where the documentation is silent, or how long it takes (docs/ascend.md). The kernels of this crate
// rely on none of the answers. Every entry point takes the address of its output and two numbers.
#include "../kernels/platform.h"

namespace {

using namespace AscendC;

constexpr uint32_t kWords = 8192;
constexpr uint32_t kOutputWords = 1024;

// Copies the first words of a core's output to device memory.
__aicore__ inline void Store(TQue<TPosition::VECOUT, 1>& queue, GM_ADDR out, uint32_t words) {
    auto done = queue.DeQue<uint16_t>();
    GlobalTensor<uint16_t> target;
    target.SetGlobalBuffer(reinterpret_cast<__gm__ uint16_t*>(out), words);
    DataCopyPad(target, done, DataCopyExtParams(1, words * 2, 0, 0, 0));
    queue.FreeTensor(done);
}

// The next of a series of numbers that has no order to speak of.
__aicore__ inline uint32_t Next(uint32_t state) { return state * 1664525U + 1013904223U; }

}  // namespace

// Time of one instruction: `repetitions` of the kind that `kind` names.
extern "C" __global__ __aicore__ void enec_probe_cost(GM_ADDR out, uint64_t kind, uint64_t repetitions) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TBuf<TPosition::VECCALC> first_buffer;
    TBuf<TPosition::VECCALC> second_buffer;
    TBuf<TPosition::VECCALC> offset_buffer;
    TQue<TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(first_buffer, kWords * 2);
    pipe.InitBuffer(second_buffer, kWords * 2);
    pipe.InitBuffer(offset_buffer, kWords);
    pipe.InitBuffer(queue, 1, kOutputWords * 2);
    auto first = first_buffer.Get<int16_t>();
    auto second = second_buffer.Get<int16_t>();
    auto offsets = offset_buffer.Get<uint32_t>();
    Duplicate(first, static_cast<int16_t>(1), static_cast<int32_t>(kWords));
    Duplicate(second, static_cast<int16_t>(0), static_cast<int32_t>(kWords));
    uint32_t state = 1;
    for (uint32_t i = 0; i < kWords / 4; ++i) {
        state = Next(state);
        // In order for kind 4, anywhere for kind 5.
        offsets.SetValue(i, kind == 5 ? (state >> 8) % kWords * 2 : i * 2);
    }
    enec::Sync<HardEvent::S_V>(pipe);
    PipeBarrier<PIPE_V>();
    for (uint64_t i = 0; i < repetitions; ++i) {
        if (kind == 1) {
            Adds(second, first, static_cast<int16_t>(1), 128);
        } else if (kind == 2) {
            Adds(second, first, static_cast<int16_t>(1), static_cast<int32_t>(kWords));
        } else if (kind == 3) {
            Adds(second, first, static_cast<int16_t>(1), 128);
            PipeBarrier<PIPE_V>();
        } else if (kind == 4 || kind == 5) {
            Gather(second.ReinterpretCast<uint16_t>(), first.ReinterpretCast<uint16_t>(), offsets, 0U, kWords / 4);
        } else if (kind == 6) {
            uint64_t kept = 0;
            GatherMask(second.ReinterpretCast<uint16_t>(), first.ReinterpretCast<uint16_t>(), first.ReinterpretCast<uint16_t>(), true, kWords / 4,
                       GatherMaskParams{1, 1, 1, 0}, kept);
        }
    }
    auto result = queue.AllocTensor<uint16_t>();
    Duplicate(result, static_cast<uint16_t>(1), static_cast<int32_t>(kOutputWords));
    queue.EnQue(result);
    Store(queue, out, kOutputWords);
}

// Comparison of a negative subnormal half with zero: bits of ones if subnormals count, of zeros if they are taken for zero.
extern "C" __global__ __aicore__ void enec_probe_subnormals(GM_ADDR out, uint64_t, uint64_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    TQue<TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(buffer, 256);
    pipe.InitBuffer(queue, 1, kOutputWords * 2);
    auto values = buffer.Get<uint16_t>();
    Duplicate(values, static_cast<uint16_t>(0x8001), 128);
    auto result = queue.AllocTensor<uint16_t>();
    Duplicate(result, static_cast<uint16_t>(0), static_cast<int32_t>(kOutputWords));
    PipeBarrier<PIPE_V>();
    enec::IsNegative(result.ReinterpretCast<uint8_t>(), values.ReinterpretCast<half>(), 128);
    queue.EnQue(result);
    Store(queue, out, kOutputWords);
}

// An addition whose destination is its source, one repeat further: 2 everywhere if all sources are read first, else 2, 3, 4 and so on.
extern "C" __global__ __aicore__ void enec_probe_overlap(GM_ADDR out, uint64_t, uint64_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    TQue<TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(buffer, kOutputWords * 2);
    pipe.InitBuffer(queue, 1, kOutputWords * 2);
    auto ones = buffer.Get<int16_t>();
    Duplicate(ones, static_cast<int16_t>(1), static_cast<int32_t>(kOutputWords));
    auto result = queue.AllocTensor<uint16_t>();
    auto sums = result.ReinterpretCast<int16_t>();
    Duplicate(sums, static_cast<int16_t>(1), static_cast<int32_t>(kOutputWords));
    PipeBarrier<PIPE_V>();
    Add(sums[128], sums, ones, 896);
    queue.EnQue(result);
    Store(queue, out, kOutputWords);
}

// Shifts by the whole width of a word: words 0 to 127 to the right, the next 128 to the left.
extern "C" __global__ __aicore__ void enec_probe_shift(GM_ADDR out, uint64_t, uint64_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    TQue<TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(buffer, 256);
    pipe.InitBuffer(queue, 1, kOutputWords * 2);
    auto values = buffer.Get<uint16_t>();
    Duplicate(values, static_cast<uint16_t>(0x8001), 128);
    auto result = queue.AllocTensor<uint16_t>();
    Duplicate(result, static_cast<uint16_t>(0x5555), static_cast<int32_t>(kOutputWords));
    PipeBarrier<PIPE_V>();
    ShiftRight(result, values, static_cast<uint16_t>(16), 128);
    ShiftLeft(result[128], values, static_cast<uint16_t>(16), 128);
    queue.EnQue(result);
    Store(queue, out, kOutputWords);
}

// Every core writes 16 bytes, two cores to a sector of 32: its number, counted from 1, in every word.
extern "C" __global__ __aicore__ void enec_probe_sectors(GM_ADDR out, uint64_t, uint64_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TQue<TPosition::VECOUT, 1> queue;
    pipe.InitBuffer(queue, 1, 32);
    auto result = queue.AllocTensor<uint16_t>();
    Duplicate(result, static_cast<uint16_t>(GetBlockIdx() + 1), 16);
    queue.EnQue(result);
    Store(queue, out + GetBlockIdx() * 16, 8);
}

// A core's memory up to what is reserved for the selections that this crate does not use: 1 in every word.
extern "C" __global__ __aicore__ void enec_probe_memory(GM_ADDR out, uint64_t bytes, uint64_t) {
    KERNEL_TASK_TYPE_DEFAULT(KERNEL_TYPE_AIV_ONLY);
    TPipe pipe;
    TBuf<TPosition::VECCALC> buffer;
    TQue<TPosition::VECOUT, 1> queue;
    const auto rest = static_cast<uint32_t>(bytes) - kOutputWords * 2;
    pipe.InitBuffer(buffer, rest);
    pipe.InitBuffer(queue, 1, kOutputWords * 2);
    auto values = buffer.Get<int16_t>();
    Duplicate(values, static_cast<int16_t>(0), static_cast<int32_t>(rest / 2));
    auto result = queue.AllocTensor<uint16_t>();
    PipeBarrier<PIPE_V>();
    Adds(result.ReinterpretCast<int16_t>(), values[rest / 2 - kOutputWords], static_cast<int16_t>(1), static_cast<int32_t>(kOutputWords));
    queue.EnQue(result);
    Store(queue, out, kOutputWords);
}
