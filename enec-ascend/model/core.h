// One vector core: its memory with an account of every 32-byte block, and a vector clock for each of its four pipes.
//
// The model runs instructions in program order, but it accepts a program only if every order that the device may choose gives the same:
// two accesses to a block, one of them a write, must be ordered by a flag, a queue or a barrier.
#ifndef ENEC_MODEL_CORE_H
#define ENEC_MODEL_CORE_H

#include <array>
#include <cstdint>
#include <cstring>
#include <functional>
#include <vector>

#include "fault.h"
#include "launch.h"
#include "memory.h"

namespace enec_model {

constexpr uint32_t kBlockBytes = 32;
constexpr uint32_t kRepeatBytes = 256;
// 196,608 bytes, less 256 that the toolkit keeps and 8,192 that Select uses.
constexpr uint32_t kArenaBytes = 188160;
constexpr uint32_t kArenaBlocks = kArenaBytes / kBlockBytes;
constexpr uint32_t kMaxBuffers = 64;
constexpr uint32_t kMaxOutstanding = 8;
constexpr uint32_t kEventIds = 6;  // of 8, two are reserved
constexpr uint32_t kHeadCycles = 24;

enum Pipe : uint8_t { kScalar, kVector, kMte2, kMte3, kPipes };
inline const char* PipeName(Pipe pipe) {
    constexpr const char* names[] = {"S", "V", "MTE2", "MTE3"};
    return names[pipe];
}

using Clock = std::array<uint64_t, kPipes>;
inline void Join(Clock& into, const Clock& other) {
    for (uint32_t p = 0; p < kPipes; ++p) {
        into[p] = into[p] > other[p] ? into[p] : other[p];
    }
}

// A piece of the arena that TPipe handed out.
struct Buffer {
    uint32_t offset = 0;
    uint32_t len = 0;
    uint32_t generation = 0;  // odd while a kernel may use it
    bool queued = false;      // belongs to a queue
    uint8_t position = 0;     // which TPosition its queue has
    Clock ready{};            // what whoever takes it next has to have waited for
};

class Core {
   public:
    Core(uint32_t index, uint32_t count, const Options& options, Machine& machine)
        : index_(index), count_(count), options_(options), machine_(machine) {}

    static Core*& Current() {
        static thread_local Core* current = nullptr;
        return current;
    }
    static Core& Get() { return *Current(); }

    uint32_t index() const { return index_; }
    uint32_t count() const { return count_; }
    const Options& options() const { return options_; }
    Machine& machine() { return machine_; }
    uint8_t* arena() { return arena_.data(); }
    Cost& cost() { return cost_; }

    // -- buffers

    uint32_t NewBuffer(uint32_t len, const Site& site) {
        const uint32_t rounded = (len + kBlockBytes - 1) / kBlockBytes * kBlockBytes;
        Require(len > 0, site, "InitBuffer of 0 bytes");
        if (arena_.empty()) {  // many cores of a large launch have nothing to do
            arena_.assign(kArenaBytes, options_.poison);
            written_.assign(kArenaBytes, 0);
            access_.resize(kArenaBlocks);
            stamp_.assign(kArenaBlocks, 0);
        }
        Require(buffers_.size() < kMaxBuffers, site, "more than 64 buffers");
        Require(rounded <= kArenaBytes - used_, site, "buffers need ", used_ + rounded, " bytes, there are ", kArenaBytes);
        Buffer buffer;
        buffer.offset = used_;
        buffer.len = rounded;
        used_ += rounded;
        buffers_.push_back(buffer);
        return static_cast<uint32_t>(buffers_.size() - 1);
    }
    Buffer& buffer(uint32_t id) { return buffers_[id]; }
    // Tensors of one TPosition that are allocated, over all queues.
    uint32_t& outstanding(uint8_t position) { return outstanding_[position]; }
    void Poison(const Buffer& buffer) {
        std::memset(arena_.data() + buffer.offset, options_.poison, buffer.len);
        std::memset(written_.data() + buffer.offset, 0, buffer.len);
    }

    // -- time

    Clock& clock(Pipe pipe) { return clocks_[pipe]; }
    // The next instruction on a pipe.
    uint64_t Tick(Pipe pipe) { return ++clocks_[pipe][pipe]; }
    // `pipe` goes on only when what `other` describes is over.
    void WaitFor(Pipe pipe, const Clock& other) {
        Join(clocks_[pipe], other);
        RunCopies(kMte2, other[kMte2]);
        RunCopies(kMte3, other[kMte3]);
    }
    void Barrier(Pipe pipe) {
        if (pipe == kVector) {
            vector_done_ = clocks_[kVector][kVector];
            ++cost_.barriers;
        }
    }
    void BarrierAll() {
        Clock all{};
        for (const Clock& one : clocks_) {
            Join(all, one);
        }
        for (uint32_t p = 0; p < kPipes; ++p) {
            WaitFor(static_cast<Pipe>(p), all);
        }
        Barrier(kVector);
    }

    // -- flags

    void SetFlag(Pipe from, Pipe to, uint32_t id, const Site& site) {
        Require(id < kEventIds, site, "event id ", id, " is reserved or does not exist");
        Flag& flag = flags_[from][to][id];
        Require(!flag.set, site, "event id ", id, " set twice without a wait");
        flag.set = true;
        flag.clock = clocks_[from];
    }
    void WaitFlag(Pipe from, Pipe to, uint32_t id, const Site& site) {
        Require(id < kEventIds, site, "event id ", id, " is reserved or does not exist");
        Flag& flag = flags_[from][to][id];
        Require(flag.set, site, "wait for event id ", id, " that nobody set: the core would hang");
        flag.set = false;
        WaitFor(to, flag.clock);
    }
    // -- accesses

    void Read(Pipe pipe, uint32_t offset, uint32_t len, const Site& site) {
        const uint8_t* bytes = written_.data() + offset;
        if (const void* unwritten = std::memchr(bytes, 0, len)) {
            const auto at = static_cast<const uint8_t*>(unwritten) - bytes;
            Fail(site, "reads byte ", offset + static_cast<uint32_t>(at), " of the core's memory, which nobody has written");
        }
        for (uint32_t block = offset / kBlockBytes; block <= (offset + len - 1) / kBlockBytes; ++block) {
            Access& access = access_[block];
            After(pipe, access.writer, access.write_time, site, "reads", "written", block);
            access.read_time[pipe] = clocks_[pipe][pipe];
        }
    }
    void Write(Pipe pipe, uint32_t offset, uint32_t len, const Site& site) {
        std::memset(written_.data() + offset, 1, len);
        for (uint32_t block = offset / kBlockBytes; block <= (offset + len - 1) / kBlockBytes; ++block) {
            Access& access = access_[block];
            After(pipe, access.writer, access.write_time, site, "writes", "written", block);
            for (uint32_t reader = 0; reader < kPipes; ++reader) {
                After(pipe, static_cast<Pipe>(reader), access.read_time[reader], site, "writes", "read", block);
            }
            access.writer = pipe;
            access.write_time = clocks_[pipe][pipe];
        }
    }
    // What a kernel may not rely on: bytes that an instruction leaves in any state.
    void Scramble(uint32_t offset, uint32_t len) {
        std::memset(arena_.data() + offset, options_.poison, len);
        std::memset(written_.data() + offset, 0, len);
    }
    std::vector<uint64_t>& stamp() { return stamp_; }
    uint64_t NextStamp() { return ++stamp_count_; }

    // -- copies

    void Copy(Pipe pipe, std::function<void()> move) {
        if (options_.copies == Copies::kEager) {
            move();
        } else {
            pending_[pipe - kMte2].push_back({clocks_[pipe][pipe], std::move(move)});
        }
    }

    void End(const Site& site) {
        BarrierAll();
        for (const Buffer& buffer : buffers_) {
            Require(!buffer.queued || buffer.generation % 2 == 0, site, "kernel ends with a tensor of a queue not freed");
        }
        for (auto& from : flags_) {
            for (auto& to : from) {
                for (Flag& flag : to) {
                    Require(!flag.set, site, "kernel ends with a flag set that nobody waited for");
                }
            }
        }
    }

   private:
    struct Access {
        Pipe writer = kScalar;
        uint64_t write_time = 0;
        Clock read_time{};
    };
    struct Flag {
        bool set = false;
        Clock clock{};
    };
    struct PendingCopy {
        uint64_t time;
        std::function<void()> move;
    };

    void After(Pipe pipe, Pipe other, uint64_t time, const Site& site, const char* now, const char* before, uint32_t block) {
        if (time == 0) {
            return;
        }
        if (other != pipe) {
            Require(clocks_[pipe][other] >= time, site, PipeName(pipe), " ", now, " bytes from ", block * kBlockBytes, " that ",
                    PipeName(other), " has ", before, ", without waiting for it");
        } else if (pipe == kVector && !options_.auto_sync && time != clocks_[pipe][pipe]) {
            Require(time <= vector_done_, site, "V ", now, " bytes from ", block * kBlockBytes, " that it has ", before,
                    " itself, without a barrier");
        }
    }
    void RunCopies(Pipe pipe, uint64_t until) {
        auto& pending = pending_[pipe - kMte2];
        size_t done = 0;
        while (done < pending.size() && pending[done].time <= until) {
            pending[done++].move();
        }
        pending.erase(pending.begin(), pending.begin() + static_cast<std::ptrdiff_t>(done));
    }

    uint32_t index_;
    uint32_t count_;
    Options options_;
    Machine& machine_;
    std::vector<uint8_t> arena_;
    std::vector<uint8_t> written_;
    std::vector<Access> access_;
    std::vector<uint64_t> stamp_;
    uint64_t stamp_count_ = 0;
    std::vector<Buffer> buffers_;
    uint32_t used_ = 0;
    std::array<uint32_t, 3> outstanding_{};
    std::array<Clock, kPipes> clocks_{};
    uint64_t vector_done_ = 0;
    Flag flags_[kPipes][kPipes][8];
    std::array<std::vector<PendingCopy>, 2> pending_;
    Cost cost_;
};

}  // namespace enec_model

#endif
