// What the pretend AscendCL needs of the host model: device memory it may touch, and launches.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace pretend {

// What a loaded "kernel object" says: a first line that tells it from anything else, then lines `key=value` for the host model.
struct Object {
    std::string settings;
};

// Null if the text is such an object, otherwise what is wrong with it.
const char* parse_object(const std::string& text, Object& object);

// Whether the host model has a kernel of this name.
bool has_kernel(const std::string& name);

struct Outcome {
    bool good = false;
    // What the model found, with file and line.
    std::string fault;
    // By the cost formula.
    double seconds = 0.0;
    // Of the whole launch, for `pretend_cost`.
    std::uint64_t instructions = 0;
    std::uint64_t vector_cycles = 0;
    std::uint64_t bytes_in = 0;
    std::uint64_t bytes_out = 0;
};

Outcome run_kernel(const Object& object, const std::string& name, std::uint32_t cores, const std::vector<std::uint64_t>& arguments);

void add_memory(const void* start, std::size_t bytes);
void remove_memory(const void* start);

}  // namespace pretend
