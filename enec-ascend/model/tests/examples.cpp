// Worked examples of the official pages (asc-devkit 9.1.0, docs/zh/api), as facts about inputs and results. They tie the model to what the vendor says; the
// page of each is in docs/ascend-subset.md. Where a page's example has another element type, its pattern is used with the subset's.
#include "harness.h"

using namespace enec_model;

namespace {

Checks checks;

// Runs `body` as a kernel with a scratch buffer, in both ways to read sources.
template <typename Body>
void Example(const char* name, Body body) {
    for (const Reads reads : {Reads::kSnapshot, Reads::kSequential}) {
        Machine machine;
        Options options;
        options.reads = reads;
        std::string error;
        std::string why;
        auto kernel = [&] {
            TPipe pipe;
            TBuf<TPosition::VECCALC> buffer;
            pipe.InitBuffer(buffer, 64 * 1024);
            why = body(pipe, buffer.Get<uint16_t>());
        };
        const bool ran = RunCores(machine, 1, options, kernel, nullptr, &error);
        checks.Expect(ran && why.empty(), std::string(name) + (reads == Reads::kSnapshot ? "" : ", repeat by repeat"), error + why);
    }
}

void VectorToScalar(TPipe& pipe) {
    const TEventID id = pipe.FetchEventID(HardEvent::V_S);
    SetFlag<HardEvent::V_S>(id);
    WaitFlag<HardEvent::V_S>(id);
}
void ScalarToVector(TPipe& pipe) {
    const TEventID id = pipe.FetchEventID(HardEvent::S_V);
    SetFlag<HardEvent::S_V>(id);
    WaitFlag<HardEvent::S_V>(id);
}

template <typename T, typename Function>
void Put(const LocalTensor<T>& tensor, uint32_t count, Function value) {
    for (uint32_t i = 0; i < count; ++i) {
        tensor.SetValue(i, static_cast<T>(value(i)));
    }
}
template <typename T, typename Function>
std::string Differs(const LocalTensor<T>& tensor, uint32_t count, Function value) {
    for (uint32_t i = 0; i < count; ++i) {
        const auto expected = static_cast<T>(value(i));
        const T found = tensor.GetValue(i);
        if (found != expected) {
            return "element " + std::to_string(i) + " is " + std::to_string(found) + ", not " + std::to_string(expected);
        }
    }
    return "";
}

constexpr uint32_t kCount = 512;

// src0 = 1, 2, ... 512; src1 = 513, 512, ... 2 or 513, 514, ... 1024.
template <typename T, typename Call, typename Function>
void TwoOperands(const char* name, bool falling, Call call, Function expected) {
    Example(name, [&](TPipe& pipe, LocalTensor<uint16_t> memory) {
        const auto src0 = memory.ReinterpretCast<T>();
        const auto src1 = memory[1024].ReinterpretCast<T>();
        const auto dst = memory[2048].ReinterpretCast<T>();
        Put(src0, kCount, [](uint32_t i) { return i + 1; });
        Put(src1, kCount, [&](uint32_t i) { return falling ? 513 - i : 513 + i; });
        ScalarToVector(pipe);
        call(dst, src0, src1);
        VectorToScalar(pipe);
        return Differs(dst, kCount, expected);
    });
}
template <typename T, typename Call, typename Function>
void OneOperand(const char* name, Call call, Function expected) {
    TwoOperands<T>(name, true, [&](auto dst, auto src, auto) { call(dst, src); }, expected);
}

const BinaryRepeatParams kPlain(1, 1, 1, 8, 8, 8);

void Arithmetic() {
    using I = int16_t;
    using U = uint16_t;
    const auto count = static_cast<int32_t>(kCount);
    TwoOperands<U>("And of 1.. and 513..: 1 0 3 .. 0", true, [=](auto d, auto a, auto b) { And(d, a, b, count); },
                   [](uint32_t i) { return (i + 1) & (513 - i); });
    TwoOperands<U>("Or of 1.. and 513..: 513 514 511 .. 514", true, [=](auto d, auto a, auto b) { Or(d, a, b, count); },
                   [](uint32_t i) { return i == 0 ? 513 : i == 1 ? 514 : i == 2 ? 511 : i == 511 ? 514 : (i + 1) | (513 - i); });
    TwoOperands<U>("Or in 4 repeats of 128", true, [=](auto d, auto a, auto b) { Or(d, a, b, uint64_t{128}, uint8_t{4}, kPlain); },
                   [](uint32_t i) { return (i + 1) | (513 - i); });
    TwoOperands<I>("Add: 514 516 518 .. 1536", false, [=](auto d, auto a, auto b) { Add(d, a, b, count); },
                   [](uint32_t i) { return 514 + 2 * i; });
    TwoOperands<I>("Sub: -512 -512 .. -512", false, [=](auto d, auto a, auto b) { Sub(d, a, b, count); }, [](uint32_t) { return -512; });
    TwoOperands<I>("Max: 513 512 511 .. 512", true, [=](auto d, auto a, auto b) { Max(d, a, b, count); },
                   [](uint32_t i) { return i + 1 > 513 - i ? i + 1 : 513 - i; });
    TwoOperands<I>("Min: 1 2 3 .. 2", true, [=](auto d, auto a, auto b) { Min(d, a, b, count); },
                   [](uint32_t i) { return i + 1 < 513 - i ? i + 1 : 513 - i; });
    OneOperand<I>("Adds of 2: 3 4 5 .. 514", [=](auto d, auto a) { Adds(d, a, I{2}, count); }, [](uint32_t i) { return i + 3; });
    OneOperand<I>("Muls by 2: 2 4 6 .. 1024", [=](auto d, auto a) { Muls(d, a, I{2}, count); }, [](uint32_t i) { return 2 * i + 2; });
    OneOperand<U>("ShiftLeft by 2: 4 8 12 .. 2048", [=](auto d, auto a) { ShiftLeft(d, a, U{2}, count); },
                  [](uint32_t i) { return 4 * i + 4; });
    OneOperand<I>("ShiftRight by 2: 0 0 0 1 1 1 1 .. 128", [=](auto d, auto a) { ShiftRight(d, a, I{2}, count); },
                  [](uint32_t i) { return (i + 1) / 4; });
    OneOperand<U>("Duplicate of 18", [=](auto d, auto) { Duplicate(d, U{18}, count); }, [](uint32_t) { return 18; });
    Example("ShiftRight of a signed type keeps the sign, of an unsigned one does not", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        Put(memory, 16, [](uint32_t i) { return 0x8000 + i; });
        ScalarToVector(pipe);
        ShiftRight(memory[64].ReinterpretCast<int16_t>(), memory.ReinterpretCast<int16_t>(), int16_t{15}, 16);
        ShiftRight(memory[128], memory, uint16_t{15}, 16);
        VectorToScalar(pipe);
        return Differs(memory[64], 16, [](uint32_t) { return 0xFFFF; }) + Differs(memory[128], 16, [](uint32_t) { return 1; });
    });
}

void Strides() {
    Example("A source's block stride of 0 uses its first block for all 8", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        Put(memory, 256, [](uint32_t i) { return i; });
        ScalarToVector(pipe);
        Or(memory[1024], memory, memory, uint64_t{128}, uint8_t{2}, BinaryRepeatParams(1, 0, 0, 8, 8, 8));
        VectorToScalar(pipe);
        return Differs(memory[1024], 256, [](uint32_t i) { return i / 128 * 128 + i % 16; });
    });
    Example("A source's repeat stride of 0 reads the first repeat again", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        Put(memory, 128, [](uint32_t i) { return i; });
        ScalarToVector(pipe);
        ShiftLeft(memory[1024], memory, uint16_t{1}, uint64_t{128}, uint8_t{3}, UnaryRepeatParams(1, 1, 8, 0));
        VectorToScalar(pipe);
        return Differs(memory[1024], 384, [](uint32_t i) { return i % 128 * 2; });
    });
    Example("Strides of 2 blocks leave every second block alone; a mask of 48 does 3 blocks", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        Put(memory, 512, [](uint32_t i) { return i; });
        Put(memory[1024], 512, [](uint32_t) { return 7; });
        ScalarToVector(pipe);
        ShiftLeft(memory[1024], memory, uint16_t{0}, uint64_t{48}, uint8_t{1}, UnaryRepeatParams(2, 1, 8, 8));
        VectorToScalar(pipe);
        return Differs(memory[1024], 512, [](uint32_t i) { return i / 32 < 3 && i % 32 < 16 ? i / 32 * 16 + i % 16 : 7; });
    });
}

void Halves() {
    Example("Cast int16 to half and back", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        const auto numbers = memory.ReinterpretCast<int16_t>();
        Put(numbers, 64, [](uint32_t i) { return i == 0 ? -2048 : i == 1 ? 2048 : static_cast<int32_t>(i) * 31 - 900; });
        ScalarToVector(pipe);
        Cast(memory[1024].ReinterpretCast<half>(), numbers, RoundMode::CAST_NONE, 64);
        PipeBarrier<PIPE_V>();
        Cast(memory[2048].ReinterpretCast<int16_t>(), memory[1024].ReinterpretCast<half>(), RoundMode::CAST_RINT, 64);
        VectorToScalar(pipe);
        const std::string bits = memory[1024].GetValue(1) == 0x6800 ? "" : "2048 is not 6800";
        return bits + Differs(memory[2048].ReinterpretCast<int16_t>(), 64,
                              [](uint32_t i) { return i == 0 ? -2048 : i == 1 ? 2048 : static_cast<int32_t>(i) * 31 - 900; });
    });
    Example("Compares: element 43 alone below the number makes byte 5 be 8", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        const auto values = memory.ReinterpretCast<half>();
        for (uint32_t i = 0; i < 128; ++i) {
            values.SetValue(i, static_cast<half>(i == 43 ? -86.0F : 9.0F));
        }
        ScalarToVector(pipe);
        const auto bits = memory[1024].ReinterpretCast<uint8_t>();
        Compares(bits, values, static_cast<half>(0.0F), CMPMODE::LT, 128);
        VectorToScalar(pipe);
        return Differs(bits, 16, [](uint32_t i) { return i == 5 ? 8 : 0; });
    });
    Example("Select: mask byte 60 keeps elements 2 to 5, byte 32 element 13", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        const auto values = memory.ReinterpretCast<half>();
        const auto mask = memory[512].ReinterpretCast<uint8_t>();
        for (uint32_t i = 0; i < 16; ++i) {
            values.SetValue(i, static_cast<half>(static_cast<float>(i) - 80.0F));
        }
        Put(mask, 2, [](uint32_t i) { return i == 0 ? 60 : 32; });
        ScalarToVector(pipe);
        Select(memory[1024].ReinterpretCast<half>(), mask, values, static_cast<half>(0.0F), SELMODE::VSEL_TENSOR_SCALAR_MODE, 16);
        PipeBarrier<PIPE_V>();
        const auto numbers = memory[2048].ReinterpretCast<int16_t>();
        Cast(numbers, memory[1024].ReinterpretCast<half>(), RoundMode::CAST_RINT, 16);
        VectorToScalar(pipe);
        return Differs(numbers, 16,
                       [](uint32_t i) { return (i >= 2 && i <= 5) || i == 13 ? static_cast<int32_t>(i) - 80 : 0; });
    });
}

void Movement() {
    Example("GatherMask by 1001..: every first and fourth of four, 70 elements, 35 kept", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        Put(memory, 128, [](uint32_t i) { return i + 1; });
        Put(memory[512], 8, [](uint32_t) { return 0x9999; });
        ScalarToVector(pipe);
        uint64_t kept = 0;
        GatherMask(memory[1024], memory, memory[512], true, 70, GatherMaskParams(1, 1, 8, 0), kept);
        VectorToScalar(pipe);
        const std::string count = kept == 35 ? "" : "kept " + std::to_string(kept);
        return count + Differs(memory[1024], 35, [](uint32_t i) { return i / 2 * 4 + (i % 2 == 0 ? 1 : 4); });
    });
    Example("GatherMask by 1010..: 2 4 6 .. 256, 128 kept", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        Put(memory, 256, [](uint32_t i) { return i + 1; });
        Put(memory[512], 16, [](uint32_t) { return 0xAAAA; });
        ScalarToVector(pipe);
        uint64_t kept = 0;
        GatherMask(memory[1024], memory, memory[512], true, 256, GatherMaskParams(1, 1, 8, 0), kept);
        VectorToScalar(pipe);
        const std::string count = kept == 128 ? "" : "kept " + std::to_string(kept);
        return count + Differs(memory[1024], 128, [](uint32_t i) { return 2 * i + 2; });
    });
    Example("Gather by 254 252 .. 0 of 0 1 .. 127: 127 126 .. 0", [](TPipe& pipe, LocalTensor<uint16_t> memory) {
        const auto offsets = memory[512].ReinterpretCast<uint32_t>();
        Put(memory, 128, [](uint32_t i) { return i; });
        Put(offsets, 128, [](uint32_t i) { return 254 - 2 * i; });
        ScalarToVector(pipe);
        Gather(memory[1024], memory, offsets, 0, 128);
        VectorToScalar(pipe);
        return Differs(memory[1024], 128, [](uint32_t i) { return 127 - i; });
    });
    Example("TransDataTo5HD: element s of block d is element d of block s; the second repeat adds the strides",
            [](TPipe& pipe, LocalTensor<uint16_t> memory) {
                Put(memory, 512, [](uint32_t i) { return i; });
                ScalarToVector(pipe);
                LocalTensor<uint16_t> from[16];
                LocalTensor<uint16_t> to[16];
                for (uint32_t i = 0; i < 16; ++i) {
                    from[i] = memory[16 * i];
                    to[i] = memory[1024 + 16 * i];
                }
                TransDataTo5HDParams params;
                params.repeatTimes = 2;
                params.dstRepStride = 16;
                params.srcRepStride = 16;
                TransDataTo5HD(to, from, params);
                VectorToScalar(pipe);
                return Differs(memory[1024], 512, [](uint32_t i) { return i / 256 * 256 + i % 16 * 16 + i % 256 / 16; });
            });
}

void DeviceCopies() {
    for (const enec_model::Copies copies : {enec_model::Copies::kEager, enec_model::Copies::kLazy}) {
        Machine machine;
        Memory source(machine, 4096);
        Memory target(machine, 4096);
        for (uint32_t i = 0; i < 2048; ++i) {
            source.as<uint16_t>()[i] = static_cast<uint16_t>(i);
        }
        Options options;
        options.copies = copies;
        std::string error;
    
        auto kernel = [&] {
            TPipe pipe;
            TQue<TPosition::VECIN, 1> in;
            TQue<TPosition::VECOUT, 1> out;
            pipe.InitBuffer(in, 1, 1024);
            pipe.InitBuffer(out, 1, 1024);
            auto tensor = in.AllocTensor<uint16_t>();
            // Two blocks of 64 bytes, 128 bytes apart at the source; each with 32 bytes of 9 on its left; one block of 32 bytes between them.
            DataCopyPad(tensor, Global<uint16_t>(source, 4096), DataCopyExtParams(2, 64, 128, 1, 0), DataCopyPadExtParams<uint16_t>(true, 16, 0, 9));
            in.EnQue(tensor);
            tensor = in.DeQue<uint16_t>();
            auto result = out.AllocTensor<uint16_t>();
            ShiftLeft(result, tensor, uint16_t{0}, 48);
            ShiftLeft(result[48], tensor[64], uint16_t{0}, 48);
            out.EnQue(result);
            result = out.DeQue<uint16_t>();
            // Back: three blocks of 32 bytes with one block left out behind each, 32 bytes apart at the target.
            DataCopyPad(Global<uint16_t>(target, 4096), result, DataCopyExtParams(3, 32, 1, 32, 0));
            out.FreeTensor(result);
            in.FreeTensor(tensor);
        };
        const bool ran = RunCores(machine, 1, options, kernel, nullptr, &error);
        const uint16_t* words = target.as<uint16_t>();
        const bool right = words[0] == 9 && words[15] == 9 && words[16] == 0 && words[32] == 16 && words[47] == 31 && words[64] == 96;
        checks.Expect(ran && right, copies == enec_model::Copies::kEager ? "DataCopyPad with padding and strides" : "DataCopyPad, as late as possible",
                      error);
    }
}

}  // namespace

int main() {
    Arithmetic();
    Strides();
    Halves();
    Movement();
    DeviceCopies();
    return checks.Result();
}
