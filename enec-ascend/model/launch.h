// What the host model offers to a program: device memory with bounds, and kernel launches with every check of the subset.
#ifndef ENEC_MODEL_LAUNCH_H
#define ENEC_MODEL_LAUNCH_H

#include <stddef.h>
#include <stdint.h>

#include <map>
#include <string>

namespace enec_model {

// The order in which cores run; on a device there is none.
enum class Order { kForward, kReversed, kShuffled, kThreads };
// When a copy between device memory and a core moves its bytes: at once, or as late as flags and queues allow.
enum class Copies { kEager, kLazy };
// Whether a vector instruction reads all its sources before it writes, or goes repeat by repeat.
enum class Reads { kSnapshot, kSequential };

struct Options {
    Order order = Order::kForward;
    Copies copies = Copies::kEager;
    Reads reads = Reads::kSnapshot;
    // Whether the compiler is taken to insert barriers between vector instructions and flags for the scalar unit; kernels must not need it.
    bool auto_sync = false;
    // What memory holds that nobody has written.
    uint8_t poison = 0xA5;
    // For the shuffled order.
    uint64_t seed = 1;
};

// What one kind of instruction took.
struct Tally {
    uint64_t instructions = 0;
    uint64_t cycles = 0;
};

// Counts of a launch, and the estimate of docs/ascend.md for a 910B2. Never a measurement.
struct Cost {
    uint64_t instructions = 0;   // vector instructions of all cores
    uint64_t vector_cycles = 0;  // of all cores
    uint64_t max_vector_cycles = 0;  // of the core that needs most
    uint64_t barriers = 0;       // between vector instructions
    uint64_t scalar_reads = 0;   // of a core's memory by its scalar unit
    uint64_t copies = 0;         // instructions that copy between device memory and a core
    uint64_t bytes_in = 0;
    uint64_t bytes_out = 0;
    std::map<std::string, Tally> by_name;  // vector instructions of all cores by name
    double seconds = 0;          // the larger of copy and vector time, with 48 cores or as many as were launched if fewer
};

// Sets options from `key=value` words separated by spaces or line ends: order=forward|reversed|shuffled|threads, copies=eager|lazy,
// reads=snapshot|sequential, auto_sync=0|1, poison=0..255, seed=N. Returns whether all were understood; `error` names the first that was not.
bool parse_options(const char* text, Options* options, std::string* error);

// Makes `len` bytes at `address` known as device memory. What is not known cannot be reached by kernels. Any thread may call.
void register_memory(const void* address, size_t len);
void unregister_memory(const void* address);

// Runs a kernel on `cores` cores (1 to 65,535). Returns false with the first fault's text in `error`: kernel name unknown, wrong number of
// arguments, or a broken rule, with the kernel source's file and line. Any thread may call; launches run one after the other.
bool launch(const char* kernel, uint32_t cores, const uint64_t* args, size_t arg_count, const Options& options, Cost* cost,
            std::string* error);

}  // namespace enec_model

#endif
