// Runs the CTAs of a grid one after the other, and the threads of each as fibers.
//
// One warp runs at a time, until all of its threads have ended or wait for the CTA, and the order of warps, of lanes and of CTAs is the
// caller's choice. Stepping all threads in turn would hide a missing barrier: each would still wait for the slowest at the next shuffle.
#include "shim.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <numeric>
#include <sys/mman.h>
#include <vector>

// Asked by the address sanitizer. A test allocates more than there is, and expects to be told; fibers leave their frames without returning.
extern "C" const char *__asan_default_options() {
    return "allocator_may_return_null=1:detect_leaks=0:detect_stack_use_after_return=0";
}

// There if the kernels are compiled with the address sanitizer.
extern "C" __attribute__((weak)) void __asan_unpoison_memory_region(const volatile void *start, size_t len);

namespace shim {

__thread Index thread, cta;

namespace {

constexpr unsigned THREADS = 256, WARP = 32;
constexpr size_t STACK_BYTES = 128 * 1024, GUARD_BYTES = 4096;

enum class State { ENDED, RUNS, MEETS_WARP, MEETS_CTA };

struct Fiber {
    char *stack;
    void *stack_pointer;
    State state;
    Meeting meeting;
    unsigned meetings;
};

__thread Fiber fibers[THREADS];
// Two sets: a lane may come to the next meeting before another has read what was left at this one.
__thread uint32_t left[2][THREADS];
__thread void *scheduler_stack_pointer;
__thread char failure[256];

__thread struct {
    const Kernel *kernel;
    uint64_t jobs;
    uint32_t count;
} launched;

// Frees the stacks when the host's thread ends.
struct Stacks {
    char *start = nullptr;

    ~Stacks() {
        if (start != nullptr) {
            munmap(start, THREADS * STACK_BYTES);
        }
    }
};
thread_local Stacks stacks;

// Saves the registers that a call preserves, and returns on another stack.
extern "C" void shim_switch(void **saved, void *to);
asm(".globl shim_switch\n"
    "shim_switch:\n"
    "  push %rbp\n  push %rbx\n  push %r12\n  push %r13\n  push %r14\n  push %r15\n"
    "  mov %rsp, (%rdi)\n"
    "  mov %rsi, %rsp\n"
    "  pop %r15\n  pop %r14\n  pop %r13\n  pop %r12\n  pop %rbx\n  pop %rbp\n"
    "  ret\n");

void wait_in(State state) {
    Fiber &fiber = fibers[thread.x];
    fiber.state = state;
    shim_switch(&fiber.stack_pointer, scheduler_stack_pointer);
}

void thread_main() {
    launched.kernel->run(launched.jobs, launched.count);
    wait_in(State::ENDED);
    __builtin_trap();
}

void fail(unsigned cta, unsigned thread, const char *what) {
    if (failure[0] == 0) {
        snprintf(failure, sizeof failure, "%s, CTA %u, thread %u: %s", launched.kernel->name, cta, thread, what);
    }
}

void make_stacks() {
    void *memory = mmap(nullptr, THREADS * STACK_BYTES, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (memory == MAP_FAILED) {
        perror("stacks of fibers");
        abort();
    }
    stacks.start = (char *)memory;
    for (unsigned index = 0; index < THREADS; index++) {
        fibers[index].stack = stacks.start + index * STACK_BYTES;
        // The end of a stack is not the start of the next one.
        if (mprotect(fibers[index].stack, GUARD_BYTES, PROT_NONE) != 0) {
            perror("stacks of fibers");
            abort();
        }
    }
}

void reset(Fiber &fiber) {
    if (fiber.state != State::ENDED && __asan_unpoison_memory_region != nullptr) {
        // A run that failed left frames behind.
        __asan_unpoison_memory_region(fiber.stack + GUARD_BYTES, STACK_BYTES - GUARD_BYTES);
    }
    // A return address for `thread_main`, of which there is none, the address to return to, and six registers.
    void **top = (void **)(fiber.stack + STACK_BYTES);
    *--top = nullptr;
    *--top = (void *)thread_main;
    for (unsigned index = 0; index < 6; index++) {
        *--top = nullptr;
    }
    fiber = Fiber{fiber.stack, top, State::RUNS, Meeting::WARP, 0};
}

struct Random {
    uint64_t state;

    unsigned below(unsigned bound) {
        state = state * 6364136223846793005u + 1442695040888963407u;
        return (unsigned)((state >> 33) % bound);
    }

    void shuffle(std::vector<unsigned> &values) {
        for (size_t index = values.size(); index > 1; index--) {
            std::swap(values[index - 1], values[below((unsigned)index)]);
        }
    }
};

// Forward, reverse, or shuffled again each time.
enum class Order : uint32_t { FORWARD, REVERSE, RANDOM };

std::vector<unsigned> ordered(unsigned count, Order order, Random &random) {
    std::vector<unsigned> values(count);
    std::iota(values.begin(), values.end(), 0);
    if (order == Order::REVERSE) {
        std::reverse(values.begin(), values.end());
    } else if (order == Order::RANDOM) {
        random.shuffle(values);
    }
    return values;
}

// Runs a warp until its threads have ended or wait for the CTA.
void run_warp(unsigned warp, const std::vector<unsigned> &lanes) {
    for (;;) {
        for (unsigned lane : lanes) {
            thread.x = warp * WARP + lane;
            if (fibers[thread.x].state == State::RUNS) {
                shim_switch(&scheduler_stack_pointer, fibers[thread.x].stack_pointer);
            }
        }
        Fiber *first = fibers + warp * WARP, *end = first + WARP;
        const auto meets = [](const Fiber &fiber) { return fiber.state == State::MEETS_WARP; };
        Fiber *met = std::find_if(first, end, meets);
        if (met == end || failure[0] != 0) {
            return;
        }
        for (Fiber *fiber = first; fiber != end; fiber++) {
            if (!meets(*fiber) || fiber->meeting != met->meeting) {
                return fail(cta.x, (unsigned)(fiber - fibers), "is not where the other lanes of its warp meet");
            }
            fiber->state = State::RUNS;
        }
    }
}

void run_cta(Order order, Random &random) {
    for (Fiber &fiber : fibers) {
        reset(fiber);
    }
    for (;;) {
        for (unsigned warp : ordered(THREADS / WARP, order, random)) {
            run_warp(warp, ordered(WARP, order, random));
            if (failure[0] != 0) {
                return;
            }
        }
        const auto waits = [](const Fiber &fiber) { return fiber.state == State::MEETS_CTA; };
        if (std::none_of(fibers, fibers + THREADS, waits)) {
            return;
        }
        for (Fiber &fiber : fibers) {
            // The hardware lets threads that have ended be; a kernel that relies on it is fragile.
            if (!waits(fiber)) {
                return fail(cta.x, (unsigned)(&fiber - fibers), "has ended while others wait for the CTA");
            }
            fiber.state = State::RUNS;
        }
    }
}

} // namespace

const uint32_t *meet(Meeting meeting, unsigned mask, uint32_t value) {
    Fiber &fiber = fibers[thread.x];
    if (mask != ~0u) {
        fail(cta.x, thread.x, "meets a part of its warp");
    }
    uint32_t *values = left[fiber.meetings++ % 2];
    values[thread.x] = value;
    fiber.meeting = meeting;
    const unsigned warp = thread.x / WARP;
    wait_in(State::MEETS_WARP);
    return values + warp * WARP;
}

void wait_for_cta() { wait_in(State::MEETS_CTA); }

// Runs a kernel of a grid of `ctas`. Returns whether it went to its end; if not, `message` says why. 
extern "C" bool enec_hosttest_run(const Kernel *kernel, uint32_t ctas, uint64_t jobs, uint32_t count, uint32_t order, uint64_t seed,
                                  char *message, size_t message_len) {
    failure[0] = 0;
    if (stacks.start == nullptr) {
        make_stacks();
    }
    launched = {kernel, jobs, count};
    Random random = {seed};
    for (unsigned index : ordered(ctas, (Order)order, random)) {
        cta.x = index;
        run_cta((Order)order, random);
        if (failure[0] != 0) {
            snprintf(message, message_len, "%s", failure);
            return false;
        }
    }
    return true;
}

} // namespace shim
