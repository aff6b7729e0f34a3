// The host model as a library: kernels compiled in, launches, device memory.
#ifndef ENEC_HOST_MODEL
#define ENEC_HOST_MODEL
#endif
#include "launch.h"

#include "machine.h"

#include "../kernels/kernels.cpp"

namespace enec_model {

namespace {

Machine& TheMachine() {
    static Machine machine;
    return machine;
}

template <typename Value>
bool Choose(const std::string& text, std::initializer_list<std::pair<const char*, Value>> choices, Value* value) {
    for (const auto& [name, choice] : choices) {
        if (text == name) {
            *value = choice;
            return true;
        }
    }
    return false;
}

bool ParseNumber(const std::string& text, uint64_t most, uint64_t* value) {
    if (text.empty() || text.size() > 19 || text.find_first_not_of("0123456789") != std::string::npos) {
        return false;
    }
    *value = std::stoull(text);
    return *value <= most;
}

bool ParseOption(const std::string& key, const std::string& value, Options* options) {
    uint64_t number = 0;
    if (key == "order") {
        return Choose<Order>(value, {{"forward", Order::kForward}, {"reversed", Order::kReversed}, {"shuffled", Order::kShuffled},
                                     {"threads", Order::kThreads}}, &options->order);
    }
    if (key == "copies") {
        return Choose<Copies>(value, {{"eager", Copies::kEager}, {"lazy", Copies::kLazy}}, &options->copies);
    }
    if (key == "reads") {
        return Choose<Reads>(value, {{"snapshot", Reads::kSnapshot}, {"sequential", Reads::kSequential}}, &options->reads);
    }
    if (key == "auto_sync" && ParseNumber(value, 1, &number)) {
        options->auto_sync = number == 1;
        return true;
    }
    if (key == "poison" && ParseNumber(value, 255, &number)) {
        options->poison = static_cast<uint8_t>(number);
        return true;
    }
    return key == "seed" && ParseNumber(value, UINT64_MAX, &options->seed);
}

}  // namespace

bool parse_options(const char* text, Options* options, std::string* error) {
    std::istringstream words(text);
    std::string word;
    while (words >> word) {
        const size_t equals = word.find('=');
        if (equals == std::string::npos || !ParseOption(word.substr(0, equals), word.substr(equals + 1), options)) {
            if (error != nullptr) {
                *error = "unknown option `" + word + "`";
            }
            return false;
        }
    }
    return true;
}

void register_memory(const void* address, size_t len) { TheMachine().Register(reinterpret_cast<uint64_t>(address), len); }
void unregister_memory(const void* address) { TheMachine().Unregister(reinterpret_cast<uint64_t>(address)); }

bool launch(const char* kernel, uint32_t cores, const uint64_t* args, size_t arg_count, const Options& options, Cost* cost,
            std::string* error) {
    static std::mutex one_at_a_time;
    std::lock_guard<std::mutex> lock(one_at_a_time);
    void (*entry)(GM_ADDR, uint64_t, uint64_t) = nullptr;
    const std::string name = kernel;
    const bool known = Choose<decltype(entry)>(
        name, {{"enec_analyse_v1", enec_analyse_v1}, {"enec_encode_v1", enec_encode_v1}, {"enec_decode_v1", enec_decode_v1}}, &entry);
    std::string refused;
    if (!known) {
        refused = "no kernel `" + name + "`";
    } else if (arg_count != 3) {
        refused = "kernel `" + name + "` takes 3 arguments, not " + std::to_string(arg_count);
    } else if (cores == 0 || cores > 65535) {
        refused = std::to_string(cores) + " cores: 1 to 65535 can be launched";
    }
    if (!refused.empty()) {
        if (error != nullptr) {
            *error = refused;
        }
        return false;
    }
    auto run = [&] { entry(reinterpret_cast<GM_ADDR>(args[0]), args[1], args[2]); };
    return RunCores(TheMachine(), cores, options, run, cost, error);
}

}  // namespace enec_model
