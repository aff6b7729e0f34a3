// Kernels with one fault each. The model must refuse every one for the reason given: without that its silence about our own kernels would mean nothing.
// A sound kernel of the same shape runs first.
#include "harness.h"

using namespace enec_model;

namespace {

constexpr uint32_t kBytes = 4096;
constexpr uint32_t kWords = kBytes / 2;

using In = TQue<TPosition::VECIN, 1>;
using Out = TQue<TPosition::VECOUT, 1>;
using Words = LocalTensor<uint16_t>;

struct Device {
    explicit Device(Machine& machine) : source(machine, kBytes), target(machine, kBytes) {}
    Memory source;
    Memory target;
    GlobalTensor<uint16_t> Source() const { return Global<uint16_t>(source, kBytes); }
    GlobalTensor<uint16_t> Target() const { return Global<uint16_t>(target, kBytes); }
};

const DataCopyPadExtParams<uint16_t> kNoPadding(false, 0, 0, 0);
DataCopyExtParams Bytes(uint32_t bytes) { return DataCopyExtParams(1, bytes, 0, 0, 0); }

template <HardEvent event>
void Sync(TPipe& pipe) {
    const TEventID id = pipe.FetchEventID(event);
    SetFlag<event>(id);
    WaitFlag<event>(id);
}

// A core's memory for vector instructions, all of it written.
struct Scratch {
    explicit Scratch(TPipe& pipe, uint32_t bytes = 16384) {
        pipe.InitBuffer(buffer, bytes);
        words = buffer.Get<uint16_t>();
        Duplicate(words, uint16_t{1}, static_cast<int32_t>(bytes / 2));
        PipeBarrier<PIPE_V>();
    }
    TBuf<TPosition::VECCALC> buffer;
    Words words;
};

Checks checks;
Options options;

// Runs `kernel` on `cores` cores; `reason` is what the fault must say, empty for none.
template <typename Kernel>
void Run(const char* name, const char* reason, Kernel kernel, uint32_t cores = 1) {
    Machine machine;
    const Device device(machine);
    std::string error;
    const bool ran = RunCores(machine, cores, options, [&] { kernel(device); }, nullptr, &error);
    const std::string wanted = reason;
    if (wanted.empty()) {
        checks.Expect(ran, name, error);
    } else {
        checks.Expect(!ran && error.find(wanted) != std::string::npos, name, ran ? "was not refused" : "refused with `" + error + "`");
    }
}

// A kernel of one vector instruction on scratch memory.
template <typename Body>
void Vector(const char* name, const char* reason, Body body) {
    Run(name, reason, [&](const Device&) {
        TPipe pipe;
        const Scratch scratch(pipe);
        body(pipe, scratch.words);
    });
}

// Copies in, doubles, copies out. The flags leave one thing out each.
struct Omit {
    bool enque_in = false;
    bool enque_out = false;
    bool free_in = false;
    bool barrier = false;
};
void Double(const Device& device, const Omit& omit) {
    TPipe pipe;
    In in;
    Out out;
    pipe.InitBuffer(in, 2, kBytes);
    pipe.InitBuffer(out, 2, kBytes);
    Words words = in.AllocTensor<uint16_t>();
    DataCopyPad(words, device.Source(), Bytes(kBytes), kNoPadding);
    if (!omit.enque_in) {
        in.EnQue(words);
        words = in.DeQue<uint16_t>();
    }
    Words result = out.AllocTensor<uint16_t>();
    ShiftLeft(result, words, uint16_t{1}, static_cast<int32_t>(kWords));
    if (!omit.barrier) {
        PipeBarrier<PIPE_V>();
    }
    Or(result, result, words, static_cast<int32_t>(kWords));
    if (!omit.enque_out) {
        out.EnQue(result);
        result = out.DeQue<uint16_t>();
    }
    DataCopyPad(device.Target(), result, Bytes(kBytes));
    out.FreeTensor(result);
    if (!omit.free_in) {
        in.FreeTensor(words);
    }
}

void Synchronisation() {
    Run("sound: copy in, compute, copy out", "", [](const Device& device) { Double(device, {}); });
    Omit omit;
    omit.enque_in = true;
    Run("vector reads before the copy has arrived", "without waiting for it", [=](const Device& device) { Double(device, omit); });
    omit = Omit();
    omit.enque_out = true;
    Run("copy out before the vector unit has written", "without waiting for it", [=](const Device& device) { Double(device, omit); });
    omit = Omit();
    omit.barrier = true;
    Run("vector reads its own result without a barrier", "without a barrier", [=](const Device& device) { Double(device, omit); });
    options.auto_sync = true;
    Run("sound with automatic synchronisation: the same", "", [=](const Device& device) { Double(device, omit); });
    options.auto_sync = false;
    Vector("scalar reads before the vector unit has written", "without waiting for it", [](TPipe&, const Words& words) { words.GetValue(0); });
    Vector("sound: scalar reads after a flag", "", [](TPipe& pipe, const Words& words) {
        Sync<HardEvent::V_S>(pipe);
        words.GetValue(0);
    });
    Vector("vector reads what the scalar unit has written, without a flag", "without waiting for it", [](TPipe& pipe, const Words& words) {
        Sync<HardEvent::V_S>(pipe);
        words.SetValue(0, 5);
        ShiftLeft(words[1024], words, uint16_t{1}, 16);
    });
    Vector("vector overwrites what the scalar unit reads, without a flag", "without waiting for it", [](TPipe& pipe, const Words& words) {
        Sync<HardEvent::V_S>(pipe);
        words.GetValue(0);
        Duplicate(words, uint16_t{2}, 16);
    });
    Run("copy in over what the vector unit still reads", "without waiting for it", [](const Device& device) {
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 1, kBytes);
        const Scratch scratch(pipe);
        Words words = in.AllocTensor<uint16_t>();
        DataCopyPad(words, device.Source(), Bytes(64), kNoPadding);
        in.EnQue(words);
        words = in.DeQue<uint16_t>();
        ShiftLeft(scratch.words, words, uint16_t{1}, 32);
        DataCopyPad(words, device.Source(), Bytes(64), kNoPadding);
        in.FreeTensor(words);
    });
    Run("vector overwrites what is being copied out", "without waiting for it", [](const Device& device) {
        TPipe pipe;
        Out out;
        pipe.InitBuffer(out, 1, kBytes);
        Words words = out.AllocTensor<uint16_t>();
        Duplicate(words, uint16_t{1}, 32);
        PipeBarrier<PIPE_V>();
        out.EnQue(words);
        words = out.DeQue<uint16_t>();
        DataCopyPad(device.Target(), words, Bytes(64));
        Duplicate(words, uint16_t{2}, 32);
        out.FreeTensor(words);
    });
}

void Flags() {
    Vector("flag set twice", "set twice without a wait", [](TPipe&, const Words&) {
        SetFlag<HardEvent::V_S>(0);
        SetFlag<HardEvent::V_S>(0);
    });
    Vector("wait for a flag that is not set", "would hang", [](TPipe&, const Words&) { WaitFlag<HardEvent::V_S>(0); });
    Vector("wait for another pair's flag", "would hang", [](TPipe&, const Words&) {
        SetFlag<HardEvent::V_S>(0);
        WaitFlag<HardEvent::V_MTE3>(0);
    });
    Vector("reserved event", "reserved", [](TPipe&, const Words&) { SetFlag<HardEvent::V_S>(6); });
    Vector("flag left set", "that nobody waited for", [](TPipe&, const Words&) { SetFlag<HardEvent::V_S>(0); });
}

void Queues() {
    Omit omit;
    omit.free_in = true;
    Run("tensor not freed", "not freed", [=](const Device& device) { Double(device, omit); });
    Run("AllocTensor without a free buffer", "no buffer free", [](const Device&) {
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 1, 64);
        in.AllocTensor<uint16_t>();
        in.AllocTensor<uint16_t>();
    });
    Run("EnQue beyond the depth", "beyond the queue's depth", [](const Device&) {
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 2, 64);
        in.EnQue(in.AllocTensor<uint16_t>());
        in.EnQue(in.AllocTensor<uint16_t>());
    });
    Run("DeQue from an empty queue", "empty queue", [](const Device&) {
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 1, 64);
        in.DeQue<uint16_t>();
    });
    Run("more than 8 tensors of one position", "more than 8 tensors", [](const Device&) {
        TPipe pipe;
        TQue<TPosition::VECIN, 8> first;
        TQue<TPosition::VECIN, 8> second;
        pipe.InitBuffer(first, 5, 64);
        pipe.InitBuffer(second, 5, 64);
        for (int i = 0; i < 5; ++i) {
            first.AllocTensor<uint16_t>();
            second.AllocTensor<uint16_t>();
        }
    });
    Run("FreeTensor of another queue's tensor", "another queue", [](const Device&) {
        TPipe pipe;
        In first;
        In second;
        pipe.InitBuffer(first, 1, 64);
        pipe.InitBuffer(second, 1, 64);
        second.FreeTensor(first.AllocTensor<uint16_t>());
    });
    Run("FreeTensor twice", "is not allocated", [](const Device&) {
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 1, 64);
        const Words words = in.AllocTensor<uint16_t>();
        in.FreeTensor(words);
        in.FreeTensor(words);
    });
    Run("tensor used after FreeTensor", "after FreeTensor", [](const Device&) {
        TPipe pipe;
        Out out;
        pipe.InitBuffer(out, 1, 64);
        const Words words = out.AllocTensor<uint16_t>();
        out.FreeTensor(words);
        Duplicate(words, uint16_t{1}, 16);
    });
    Run("what a buffer held before it was freed", "nobody has written", [](const Device&) {
        TPipe pipe;
        Out out;
        pipe.InitBuffer(out, 1, 64);
        Words words = out.AllocTensor<uint16_t>();
        Duplicate(words, uint16_t{1}, 32);
        PipeBarrier<PIPE_V>();
        out.FreeTensor(words);
        words = out.AllocTensor<uint16_t>();
        ShiftLeft(words, words, uint16_t{1}, 32);
        out.FreeTensor(words);
    });
    Run("sound: 188,160 bytes of buffers", "", [](const Device&) {
        TPipe pipe;
        const Scratch scratch(pipe, 188160);
    });
    Run("188,161 bytes of buffers", "buffers need", [](const Device&) {
        TPipe pipe;
        TBuf<TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, 188161);
    });
    Run("65 buffers", "more than 64 buffers", [](const Device&) {
        TPipe pipe;
        TBuf<TPosition::VECCALC> buffer;
        for (int i = 0; i < 65; ++i) {
            pipe.InitBuffer(buffer, 32);
        }
    });
}

void Operands() {
    Vector("misaligned operand", "not a multiple of 32", [](TPipe&, const Words& words) { ShiftLeft(words[1024], words[8], uint16_t{1}, 16); });
    Vector("overlap within a repeat", "overlap", [](TPipe&, const Words& words) { ShiftLeft(words[16], words, uint16_t{1}, 64); });
    Vector("overlap across repeats", "overlap",
           [](TPipe&, const Words& words) { Add(words[128].ReinterpretCast<int16_t>(), words.ReinterpretCast<int16_t>(), words[128].ReinterpretCast<int16_t>(), 512); });
    Vector("sound: in place", "", [](TPipe&, const Words& words) { ShiftLeft(words, words, uint16_t{1}, 512); });
    Vector("destination written twice", "written twice",
           [](TPipe&, const Words& words) { ShiftLeft(words[1024], words, uint16_t{1}, uint64_t{128}, uint8_t{2}, UnaryRepeatParams(1, 1, 0, 8)); });
    Vector("block stride of 0 at the destination", "block stride of 0",
           [](TPipe&, const Words& words) { ShiftLeft(words[1024], words, uint16_t{1}, uint64_t{128}, uint8_t{1}, UnaryRepeatParams(0, 1, 8, 8)); });
    Vector("beyond the tensor", "of a tensor of", [](TPipe&, const Words& words) { ShiftLeft(words[8192 - 16], words, uint16_t{1}, 32); });
    Vector("tensor offset beyond its end", "into a tensor of", [](TPipe&, const Words& words) { words[8193].GetSize(); });
    Run("memory that nobody has written", "nobody has written", [](const Device&) {
        TPipe pipe;
        TBuf<TPosition::VECCALC> buffer;
        pipe.InitBuffer(buffer, 1024);
        ShiftLeft(buffer.Get<uint16_t>()[256], buffer.Get<uint16_t>(), uint16_t{1}, 16);
    });
    Vector("count of 0", "count of 0", [](TPipe&, const Words& words) { ShiftLeft(words, words, uint16_t{1}, 0); });
    Vector("repeat of 0", "repeat of 0",
           [](TPipe&, const Words& words) { ShiftLeft(words, words, uint16_t{1}, uint64_t{128}, uint8_t{0}, UnaryRepeatParams()); });
    Vector("mask of 129 elements", "mask of 129",
           [](TPipe&, const Words& words) { ShiftLeft(words, words, uint16_t{1}, uint64_t{129}, uint8_t{1}, UnaryRepeatParams()); });
    Vector("shift by the full width", "shift by 16", [](TPipe&, const Words& words) { ShiftLeft(words, words, uint16_t{16}, 16); });
}

void Values() {
    Vector("int16 overflow", "int16 overflow", [](TPipe&, const Words& words) {
        Duplicate(words, uint16_t{0x7FFF}, 16);
        PipeBarrier<PIPE_V>();
        Adds(words.ReinterpretCast<int16_t>(), words.ReinterpretCast<int16_t>(), int16_t{1}, 16);
    });
    Vector("small integers taken for halves", "subnormal", [](TPipe&, const Words& words) {
        Compares(words[1024].ReinterpretCast<uint8_t>(), words.ReinterpretCast<half>(), static_cast<half>(0.0F), CMPMODE::GT, 128);
    });
    Vector("comparison that is no multiple of 256 bytes", "multiple of 256 bytes", [](TPipe&, const Words& words) {
        Compares(words[1024].ReinterpretCast<uint8_t>(), words.ReinterpretCast<half>(), static_cast<half>(0.0F), CMPMODE::GT, 64);
    });
    Vector("Cast of what a half cannot hold", "not exact", [](TPipe&, const Words& words) {
        Duplicate(words, uint16_t{2049}, 16);
        PipeBarrier<PIPE_V>();
        Cast(words[1024].ReinterpretCast<half>(), words.ReinterpretCast<int16_t>(), RoundMode::CAST_NONE, 16);
    });
    Vector("Select with subnormal halves", "subnormal", [](TPipe&, const Words& words) {
        Select(words[1024].ReinterpretCast<half>(), words[2048].ReinterpretCast<uint8_t>(), words.ReinterpretCast<half>(), static_cast<half>(0.0F),
               SELMODE::VSEL_TENSOR_SCALAR_MODE, 128);
    });
}

void Movement() {
    Vector("GatherMask in place", "overlap", [](TPipe&, const Words& words) {
        uint64_t kept = 0;
        GatherMask(words, words, words[1024], true, 64, GatherMaskParams(1, 1, 8, 0), kept);
    });
    Vector("GatherMask with two repeats", "outside the subset", [](TPipe&, const Words& words) {
        uint64_t kept = 0;
        GatherMask(words[2048], words, words[1024], true, 64, GatherMaskParams(1, 2, 8, 0), kept);
    });
    Vector("Gather beyond its source", "of a tensor of", [](TPipe&, const Words& words) {
        Duplicate(words[512].ReinterpretCast<uint32_t>(), uint32_t{16384}, 16);
        PipeBarrier<PIPE_V>();
        Gather(words[1024], words, words[512].ReinterpretCast<uint32_t>(), 0, 16);
    });
    Vector("Gather by an odd offset", "offset of 3", [](TPipe&, const Words& words) {
        Duplicate(words[512].ReinterpretCast<uint32_t>(), uint32_t{3}, 16);
        PipeBarrier<PIPE_V>();
        Gather(words[1024], words, words[512].ReinterpretCast<uint32_t>(), 0, 16);
    });
    Vector("Gather onto its own offsets", "overlap",
           [](TPipe&, const Words& words) {
               Duplicate(words[512].ReinterpretCast<uint32_t>(), uint32_t{4096}, 16);
               PipeBarrier<PIPE_V>();
               Gather(words[512], words, words[512].ReinterpretCast<uint32_t>(), 0, 16);
           });
    Vector("TransDataTo5HD of one repeat with strides", "move its start", [](TPipe&, const Words& words) {
        LocalTensor<uint16_t> from[16];
        LocalTensor<uint16_t> to[16];
        for (uint32_t i = 0; i < 16; ++i) {
            from[i] = words[16 * i];
            to[i] = words[1024 + 16 * i];
        }
        TransDataTo5HDParams params;
        params.srcRepStride = 16;
        TransDataTo5HD(to, from, params);
    });
}

void DeviceMemory() {
    // The words of a copy out of a buffer that holds what it should.
    const auto store = [](const GlobalTensor<uint16_t>& target, const DataCopyExtParams& params) {
        TPipe pipe;
        Out out;
        pipe.InitBuffer(out, 1, 1024);
        Words words = out.AllocTensor<uint16_t>();
        Duplicate(words, uint16_t{1}, 512);
        out.EnQue(words);
        words = out.DeQue<uint16_t>();
        DataCopyPad(target, words, params);
        out.FreeTensor(words);
    };
    Run("sound: each core its own 64 bytes", "", [&](const Device& device) { store(device.Target()[static_cast<uint64_t>(GetBlockIdx()) * 32], Bytes(64)); }, 4);
    Run("two cores write one sector", "one sector", [&](const Device& device) { store(device.Target()[static_cast<uint64_t>(GetBlockIdx()) * 8], Bytes(16)); }, 2);
    Run("a core reads what another writes", "in the same launch", [&](const Device& device) {
        if (GetBlockIdx() == 0) {
            store(device.Target(), Bytes(64));
            return;
        }
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 1, 64);
        const Words words = in.AllocTensor<uint16_t>();
        DataCopyPad(words, device.Target(), Bytes(64), kNoPadding);
        in.FreeTensor(words);
    }, 2);
    Run("copy of 0 bytes", "block length of 0", [&](const Device& device) { store(device.Target(), Bytes(0)); });
    Run("half an element", "no multiple of the element", [&](const Device& device) { store(device.Target(), Bytes(33)); });
    Run("4,096 blocks in one copy", "block count of 4096", [&](const Device& device) { store(device.Target(), DataCopyExtParams(4096, 2, 0, 0, 0)); });
    Run("misaligned device address", "device address", [&](const Device& device) { store(device.Target()[4], Bytes(64)); });
    Run("beyond the global tensor", "global tensor", [&](const Device& device) { store(device.Target()[kWords - 16], Bytes(64)); });
    Run("beyond the device buffer", "of a device buffer", [&](const Device& device) {
        GlobalTensor<uint16_t> large;
        large.SetGlobalBuffer(device.target.as<uint16_t>(), 2 * kWords);
        store(large[kWords - 16], Bytes(64));
    });
    Run("memory that nobody allocated", "nobody allocated", [&](const Device&) {
        static uint16_t own[64];
        GlobalTensor<uint16_t> tensor;
        tensor.SetGlobalBuffer(reinterpret_cast<uint16_t*>(reinterpret_cast<uint64_t>(own) / 32 * 32), 32);
        store(tensor, Bytes(64));
    });
    Run("what lies behind the bytes of a copy in", "nobody has written", [](const Device& device) {
        TPipe pipe;
        In in;
        pipe.InitBuffer(in, 1, 64);
        const Scratch scratch(pipe);
        Words words = in.AllocTensor<uint16_t>();
        DataCopyPad(words, device.Source(), Bytes(48), kNoPadding);
        in.EnQue(words);
        words = in.DeQue<uint16_t>();
        ShiftLeft(scratch.words, words, uint16_t{1}, 32);
        in.FreeTensor(words);
    });
    Run("copy into memory of a calculation", "no VECIN or VECOUT", [](const Device& device) {
        TPipe pipe;
        const Scratch scratch(pipe);
        Sync<HardEvent::V_MTE2>(pipe);
        DataCopyPad(scratch.words, device.Source(), Bytes(64), kNoPadding);
    });
}

}  // namespace

int main() {
    Synchronisation();
    Flags();
    Queues();
    Operands();
    Values();
    Movement();
    DeviceMemory();
    return checks.Result();
}
