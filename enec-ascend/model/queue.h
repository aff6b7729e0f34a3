// Buffers and queues (TPipe, TQue, TBuf), flags and barriers.
#ifndef ENEC_MODEL_QUEUE_H
#define ENEC_MODEL_QUEUE_H

#include <deque>

#include "tensor.h"

namespace AscendC {

enum pipe_t { PIPE_V, PIPE_MTE2, PIPE_MTE3, PIPE_ALL };
using TEventID = int32_t;

enum class HardEvent : uint8_t { V_MTE2, MTE2_V, V_MTE3, MTE3_V, MTE2_MTE3, MTE3_MTE2, S_V, V_S, S_MTE2, MTE2_S, S_MTE3, MTE3_S };

namespace model {
constexpr std::pair<enec_model::Pipe, enec_model::Pipe> Ends(HardEvent event) {
    using namespace enec_model;
    switch (event) {
        case HardEvent::V_MTE2: return {kVector, kMte2};
        case HardEvent::MTE2_V: return {kMte2, kVector};
        case HardEvent::V_MTE3: return {kVector, kMte3};
        case HardEvent::MTE3_V: return {kMte3, kVector};
        case HardEvent::MTE2_MTE3: return {kMte2, kMte3};
        case HardEvent::MTE3_MTE2: return {kMte3, kMte2};
        case HardEvent::S_V: return {kScalar, kVector};
        case HardEvent::V_S: return {kVector, kScalar};
        case HardEvent::S_MTE2: return {kScalar, kMte2};
        case HardEvent::MTE2_S: return {kMte2, kScalar};
        case HardEvent::S_MTE3: return {kScalar, kMte3};
        default: return {kMte3, kScalar};
    }
}
}  // namespace model

template <HardEvent event>
void SetFlag(TEventID id, const enec_model::Site& site = enec_model::Site::Here()) {
    constexpr auto ends = model::Ends(event);
    enec_model::Core::Get().SetFlag(ends.first, ends.second, static_cast<uint32_t>(id), site);
}
template <HardEvent event>
void WaitFlag(TEventID id, const enec_model::Site& site = enec_model::Site::Here()) {
    constexpr auto ends = model::Ends(event);
    enec_model::Core::Get().WaitFlag(ends.first, ends.second, static_cast<uint32_t>(id), site);
}

template <pipe_t pipe>
void PipeBarrier() {
    using namespace enec_model;
    static_assert(pipe == PIPE_V || pipe == PIPE_ALL, "the subset has no other barriers");
    if (pipe == PIPE_V) {
        Core::Get().Barrier(kVector);
    } else {
        Core::Get().BarrierAll();
    }
}

class TPipe;

template <TPosition position, int32_t depth>
class TQue {
   public:
    template <typename T>
    LocalTensor<T> AllocTensor(const enec_model::Site& site = enec_model::Site::Here()) {
        using namespace enec_model;
        Core& core = Core::Get();
        Require(!free_.empty(), site, "AllocTensor with no buffer free: the core would hang");
        const uint32_t id = free_.front();
        free_.pop_front();
        Require(++core.outstanding(kPosition) <= kMaxOutstanding, site, "more than 8 tensors of one TPosition outstanding");
        Buffer& buffer = core.buffer(id);
        core.WaitFor(kFirst, buffer.ready);
        core.Poison(buffer);
        ++buffer.generation;
        return LocalTensor<T>(id, buffer.generation, buffer.offset, buffer.len, position);
    }
    template <typename T>
    bool EnQue(const LocalTensor<T>& tensor, const enec_model::Site& site = enec_model::Site::Here()) {
        using namespace enec_model;
        CheckOwn(tensor.buffer(), tensor.generation(), site);
        Require(queue_.size() < static_cast<size_t>(depth), site, "EnQue beyond the queue's depth of ", depth);
        queue_.push_back({tensor.buffer(), Core::Get().clock(kFirst)});
        return true;
    }
    template <typename T>
    LocalTensor<T> DeQue(const enec_model::Site& site = enec_model::Site::Here()) {
        using namespace enec_model;
        Require(!queue_.empty(), site, "DeQue from an empty queue: the core would hang");
        const Entry entry = queue_.front();
        queue_.pop_front();
        Core& core = Core::Get();
        core.WaitFor(kSecond, entry.clock);
        const Buffer& buffer = core.buffer(entry.buffer);
        return LocalTensor<T>(entry.buffer, buffer.generation, buffer.offset, buffer.len, position);
    }
    template <typename T>
    void FreeTensor(const LocalTensor<T>& tensor, const enec_model::Site& site = enec_model::Site::Here()) {
        using namespace enec_model;
        CheckOwn(tensor.buffer(), tensor.generation(), site);
        for (const Entry& entry : queue_) {
            Require(entry.buffer != tensor.buffer(), site, "FreeTensor of a tensor that is still in the queue");
        }
        Core& core = Core::Get();
        Buffer& buffer = core.buffer(tensor.buffer());
        buffer.ready = core.clock(kSecond);
        ++buffer.generation;
        free_.push_back(tensor.buffer());
        --core.outstanding(kPosition);
    }

   private:
    friend class TPipe;
    static constexpr uint8_t kPosition = static_cast<uint8_t>(position);
    static constexpr enec_model::Pipe kFirst = position == TPosition::VECIN ? enec_model::kMte2 : enec_model::kVector;
    static constexpr enec_model::Pipe kSecond = position == TPosition::VECIN ? enec_model::kVector : enec_model::kMte3;
    static_assert(position != TPosition::VECCALC, "queues are VECIN or VECOUT");

    struct Entry {
        uint32_t buffer;
        enec_model::Clock clock;
    };
    void CheckOwn(uint32_t id, uint32_t generation, const enec_model::Site& site) const {
        using namespace enec_model;
        bool own = false;
        for (const uint32_t buffer : own_) {
            own = own || buffer == id;
        }
        Require(own, site, "tensor of another queue");
        Require(generation % 2 == 1 && Core::Get().buffer(id).generation == generation, site, "tensor is not allocated");
    }

    std::deque<uint32_t> free_;
    std::vector<uint32_t> own_;
    std::deque<Entry> queue_;
};

template <TPosition position = TPosition::VECCALC>
class TBuf {
   public:
    template <typename T>
    LocalTensor<T> Get() const {
        const enec_model::Buffer& buffer = enec_model::Core::Get().buffer(buffer_);
        return LocalTensor<T>(buffer_, buffer.generation, buffer.offset, buffer.len, position);
    }

   private:
    friend class TPipe;
    uint32_t buffer_ = 0;
};

class TPipe {
   public:
    TPipe() = default;
    TPipe(const TPipe&) = delete;
    TPipe& operator=(const TPipe&) = delete;

    template <TPosition position, int32_t depth>
    bool InitBuffer(TQue<position, depth>& queue, const uint8_t number, const uint32_t len,
                    const enec_model::Site& site = enec_model::Site::Here()) {
        for (uint8_t i = 0; i < number; ++i) {
            const uint32_t id = enec_model::Core::Get().NewBuffer(len, site);
            enec_model::Core::Get().buffer(id).queued = true;
            queue.own_.push_back(id);
            queue.free_.push_back(id);
        }
        return true;
    }
    template <TPosition position>
    bool InitBuffer(TBuf<position>& buffer, const uint32_t len, const enec_model::Site& site = enec_model::Site::Here()) {
        buffer.buffer_ = enec_model::Core::Get().NewBuffer(len, site);
        enec_model::Core::Get().buffer(buffer.buffer_).generation = 1;
        return true;
    }
    // An id that no AllocEventID holds. It is not taken by this: a second call gives the same.
    TEventID FetchEventID(HardEvent) { return 0; }
};

inline int64_t GetBlockIdx() { return enec_model::Core::Get().index(); }
inline int64_t GetBlockNum() { return enec_model::Core::Get().count(); }

// Number of bits of `value` that are `which`.
template <int which>
int64_t ScalarGetCountOfValue(uint64_t value) {
    static_assert(which == 0 || which == 1, "bits are 0 or 1");
    return __builtin_popcountll(which == 1 ? value : ~value);
}

}  // namespace AscendC

#endif
