// Runs a kernel on many cores, one after the other in any order, or on threads.
#ifndef ENEC_MODEL_MACHINE_H
#define ENEC_MODEL_MACHINE_H

#include <functional>

#include "core.h"

namespace enec_model {

// Calls `kernel` once for each core. Returns false with the first fault in `error`.
bool RunCores(Machine& machine, uint32_t cores, const Options& options, const std::function<void()>& kernel, Cost* cost, std::string* error);

// The estimate for a 910B2 (docs/ascend.md): 48 vector cores at 1.8 GHz and 1.6 TB/s shared by them; copies and vector instructions overlap.
double EstimateSeconds(uint32_t cores, uint64_t max_vector_cycles, uint64_t bytes);

}  // namespace enec_model

#endif
