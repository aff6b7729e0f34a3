// Runs a kernel on many cores, one after the other in any order, or on threads.
#ifndef ENEC_MODEL_MACHINE_H
#define ENEC_MODEL_MACHINE_H

#include <algorithm>
#include <atomic>
#include <functional>
#include <numeric>
#include <random>
#include <thread>

#include "core.h"

namespace enec_model {

constexpr double kClockHz = 1.8e9;
constexpr double kBytesPerSecond = 1.6e12;
constexpr uint32_t kDeviceCores = 48;

// The estimate for a 910B2 (docs/ascend.md): 48 vector cores at 1.8 GHz that share 1.6 TB/s; copies and vector instructions overlap. Launches of more
// cores run in turns.
inline double EstimateSeconds(uint32_t cores, uint64_t max_vector_cycles, uint64_t bytes) {
    const uint32_t used = std::min(cores, kDeviceCores);
    const double waves = std::max(1.0, static_cast<double>(cores) / kDeviceCores);
    const double vector = static_cast<double>(max_vector_cycles) * waves / kClockHz;
    const double copy = static_cast<double>(bytes) / (kBytesPerSecond / kDeviceCores * used);
    return std::max(vector, copy);
}

// Calls `kernel` once for each core. Returns false with the first fault in `error`.
inline bool RunCores(Machine& machine, uint32_t cores, const Options& options, const std::function<void()>& kernel, Cost* cost,
                     std::string* error) {
    machine.BeginLaunch();
    std::vector<uint32_t> order(cores);
    std::iota(order.begin(), order.end(), 0);
    if (options.order == Order::kReversed) {
        std::reverse(order.begin(), order.end());
    } else if (options.order == Order::kShuffled) {
        std::mt19937_64 random(options.seed);
        std::shuffle(order.begin(), order.end(), random);
    }
    Cost total;
    std::string fault;
    std::mutex mutex;
    std::atomic<uint32_t> next{0};
    auto run = [&] {
        for (uint32_t i = next++; i < cores; i = next++) {
            {
                std::lock_guard<std::mutex> lock(mutex);
                if (!fault.empty()) {
                    return;
                }
            }
            Core core(order[i], cores, options, machine);
            Core::Current() = &core;
            std::string text;
            try {
                kernel();
                core.End(Site::Here());
            } catch (const Fault& caught) {
                text = "core " + std::to_string(order[i]) + ": " + caught.what();
            }
            Core::Current() = nullptr;
            std::lock_guard<std::mutex> lock(mutex);
            if (fault.empty()) {
                fault = text;
            }
            const Cost& own = core.cost();
            total.instructions += own.instructions;
            total.vector_cycles += own.vector_cycles;
            total.max_vector_cycles = std::max(total.max_vector_cycles, own.vector_cycles);
            total.barriers += own.barriers;
            total.scalar_reads += own.scalar_reads;
            total.copies += own.copies;
            total.bytes_in += own.bytes_in;
            total.bytes_out += own.bytes_out;
            for (const auto& [name, tally] : own.by_name) {
                total.by_name[name].instructions += tally.instructions;
                total.by_name[name].cycles += tally.cycles;
            }
        }
    };
    if (options.order == Order::kThreads) {
        std::vector<std::thread> threads;
        for (uint32_t i = 0; i < 4; ++i) {
            threads.emplace_back(run);
        }
        for (std::thread& thread : threads) {
            thread.join();
        }
    } else {
        run();
    }
    total.seconds = EstimateSeconds(cores, total.max_vector_cycles, total.bytes_in + total.bytes_out);
    if (cost != nullptr) {
        *cost = total;
    }
    if (!fault.empty() && error != nullptr) {
        *error = fault;
    }
    return fault.empty();
}

}  // namespace enec_model

#endif
