// The controls of the pretend AscendCL: what tests set, and what they ask afterwards. C linkage, for tests in any language.
#pragma once

#include <cstdint>

extern "C" {

// Everything as after loading. Handles that are alive stay so.
void pretend_reset();
// Makes `function` fail from its `call`-th call on (the first is 1), or only then. Calls count from now.
void pretend_fail(const char* function, std::uint64_t call, int only_then);
// How often `function` was called since the last reset.
std::uint64_t pretend_calls(const char* function);
// The devices of the machine: how many, or, if `code` is not 0, what asking for them returns; the chip's name; its vector cores.
void pretend_machine(std::uint32_t devices, int code, const char* chip, std::uint32_t cores);
// Things of a kind (`stream`, `event`, `memory`, `binary`, `device`) that have been made and not destroyed.
std::uint64_t pretend_live(const char* kind);
// Uses that the documentation forbids: destroyed handles, ranges outside allocations, memory freed under queued work.
std::uint64_t pretend_misuses();
// The first of them.
const char* pretend_first_misuse();

// What launches of a kernel have cost so far, all cores together: vector instructions, their cycles, bytes in and out of the cores.
struct PretendCost {
    std::uint64_t launches;
    std::uint64_t instructions;
    std::uint64_t vector_cycles;
    std::uint64_t bytes_in;
    std::uint64_t bytes_out;
    double seconds;
};
void pretend_cost(const char* kernel, PretendCost* cost);
// GB/s of uncompressed bytes that the same formula gives for the paper's own BF16 kernels on a 910B2.
double pretend_reference(int decompress);

}  // extern "C"
