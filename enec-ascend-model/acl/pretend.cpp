// A pretend AscendCL: one machine with memory of its own, streams whose work is done as late as possible, and kernels that run on the
// host model. Signatures by the CANN runtime reference. Every function can be told to fail at its n-th call.

#include "pretend.h"

#include <cstdlib>
#include <cstring>
#include <fstream>
#include <functional>
#include <map>
#include <mutex>
#include <new>
#include <set>
#include <sstream>
#include <string>
#include <vector>

#include "kernels.h"

namespace {

constexpr int invalid_parameter = 100000;
constexpr int uninitialised = 100001;
constexpr int repeated_initialisation = 100002;
constexpr int invalid_device = 107001;
constexpr int no_context = 107002;
constexpr int out_of_device_memory = 207018;
constexpr int injected_failure = 507899;
constexpr int vector_core_fault = 507035;

// The device's main memory of a 910B2, and its rate (docs/ascend.md, "Cost model").
constexpr std::uint64_t memory_bytes = std::uint64_t{64} << 30;
constexpr double memory_bytes_per_second = 1.6e12;

struct Stream {
    // Work that has been queued and not been done. It is done when somebody waits, and no sooner: who forgets to wait is found out.
    std::vector<std::function<int()>> queue;
    double seconds = 0.0;
};

struct Event {
    double seconds = -1.0;
};

struct Binary {
    pretend::Object object;
};

struct Function {
    Binary* binary;
    std::string name;
};

struct Arguments {
    Function* function;
    std::vector<std::uint64_t> values;
    bool final = false;
};

struct Failure {
    std::uint64_t call;
    bool only_then;
};

struct State {
    std::mutex mutex;
    bool initialised = false;
    std::uint32_t devices = 1;
    int device_count_code = 0;
    std::string chip = "Ascend910B2";
    std::uint32_t cores = 48;
    std::map<std::string, std::uint64_t> calls;
    std::map<std::string, Failure> failures;
    std::map<int, std::uint64_t> device_uses;
    std::map<char*, std::size_t> memory;
    std::uint64_t allocated = 0;
    std::set<Stream*> streams;
    std::set<Event*> events;
    std::set<Binary*> binaries;
    std::set<Function*> functions;
    std::set<Arguments*> arguments;
    std::map<std::string, PretendCost> costs;
    std::uint64_t misuses = 0;
    std::string first_misuse;
};

// Never destroyed: threads of the process may outlive static objects.
State& state() {
    static State* const the_state = new State;
    return *the_state;
}

thread_local std::string last_error;
// The context of a device is its number, counted from 1.
thread_local std::intptr_t current_context = 0;

int fail(int code, const std::string& text) {
    last_error = text;
    return code;
}

int misuse(const std::string& text) {
    if (state().misuses++ == 0) state().first_misuse = text;
    return fail(invalid_parameter, "EE1001: " + text);
}

// Counts a call and tells whether it is to fail.
int begin(const char* function) {
    const std::uint64_t call = ++state().calls[function];
    const auto found = state().failures.find(function);
    if (found == state().failures.end()) return 0;
    const Failure& failure = found->second;
    const bool fails = failure.only_then ? call == failure.call : call >= failure.call;
    if (!fails) return 0;
    return fail(injected_failure, "EZ9999: pretended failure of " + std::string(function) + "\n  at call " + std::to_string(call));
}

int begin_in_context(const char* function) {
    if (const int code = begin(function)) return code;
    if (!state().initialised) return fail(uninitialised, "EE1001: aclInit has not been called");
    if (current_context == 0) return fail(no_context, "EE1001: no context on this thread");
    return 0;
}

// Whether a range lies within one allocation.
bool is_device(const void* start, std::size_t bytes) {
    auto* const first = static_cast<char*>(const_cast<void*>(start));
    auto after = state().memory.upper_bound(first);
    if (after == state().memory.begin()) return false;
    --after;
    return first + bytes <= after->first + after->second;
}

bool touches_device(const void* start, std::size_t bytes) {
    auto* const first = static_cast<char*>(const_cast<void*>(start));
    for (const auto& [memory, length] : state().memory)
        if (first < memory + length && memory < first + bytes) return true;
    return false;
}

int drain(Stream& stream) {
    int code = 0;
    std::vector<std::function<int()>> queue;
    queue.swap(stream.queue);
    for (const auto& work : queue) {
        if (code == 0) code = work();
    }
    return code;
}

using Lock = std::lock_guard<std::mutex>;

}  // namespace

extern "C" {

using aclError = int;

void pretend_reset() {
    const Lock lock(state().mutex);
    state().calls.clear();
    state().failures.clear();
    state().devices = 1;
    state().device_count_code = 0;
    state().chip = "Ascend910B2";
    state().cores = 48;
    state().misuses = 0;
    state().first_misuse.clear();
}

void pretend_fail(const char* function, std::uint64_t call, int only_then) {
    const Lock lock(state().mutex);
    state().calls[function] = 0;
    state().failures[function] = Failure{call, only_then != 0};
}

std::uint64_t pretend_calls(const char* function) {
    const Lock lock(state().mutex);
    return state().calls[function];
}

void pretend_machine(std::uint32_t devices, int code, const char* chip, std::uint32_t cores) {
    const Lock lock(state().mutex);
    state().devices = devices;
    state().device_count_code = code;
    state().chip = chip;
    state().cores = cores;
}

std::uint64_t pretend_live(const char* kind) {
    const Lock lock(state().mutex);
    const std::string name = kind;
    if (name == "stream") return state().streams.size();
    if (name == "event") return state().events.size();
    if (name == "memory") return state().memory.size();
    if (name == "binary") return state().binaries.size();
    std::uint64_t uses = 0;
    for (const auto& device : state().device_uses) uses += device.second;
    return uses;
}

std::uint64_t pretend_misuses() {
    const Lock lock(state().mutex);
    return state().misuses;
}

const char* pretend_first_misuse() {
    const Lock lock(state().mutex);
    return state().first_misuse.c_str();
}

void pretend_cost(const char* kernel, PretendCost* cost) {
    const Lock lock(state().mutex);
    *cost = state().costs[kernel];
}

aclError aclInit(const char*) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclInit")) return code;
    if (state().initialised) return repeated_initialisation;
    state().initialised = true;
    return 0;
}

const char* aclGetRecentErrMsg() {
    return last_error.empty() ? nullptr : last_error.c_str();
}

aclError aclrtGetVersion(std::int32_t* major, std::int32_t* minor, std::int32_t* patch) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclrtGetVersion")) return code;
    *major = 1;
    *minor = 14;
    *patch = 0;
    return 0;
}

const char* aclrtGetSocName() {
    const Lock lock(state().mutex);
    if (begin("aclrtGetSocName") != 0) return nullptr;
    return state().chip.c_str();
}

aclError aclGetDeviceCapability(std::uint32_t device, int info, std::int64_t* value) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclGetDeviceCapability")) return code;
    if (device >= state().devices) return fail(invalid_device, "EE1001: device " + std::to_string(device));
    if (info != 1) return fail(invalid_parameter, "EE1001: unknown capability");
    *value = state().cores;
    return 0;
}

aclError aclrtGetDeviceCount(std::uint32_t* count) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclrtGetDeviceCount")) return code;
    if (state().device_count_code != 0) return fail(state().device_count_code, "EL0004: pretended state of the machine");
    *count = state().devices;
    return 0;
}

aclError aclrtSetDevice(std::int32_t device) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclrtSetDevice")) return code;
    if (!state().initialised) return fail(uninitialised, "EE1001: aclInit has not been called");
    if (device < 0 || static_cast<std::uint32_t>(device) >= state().devices)
        return fail(invalid_device, "EE1001: device " + std::to_string(device));
    ++state().device_uses[device];
    current_context = device + 1;
    return 0;
}

aclError aclrtResetDevice(std::int32_t device) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclrtResetDevice")) return code;
    if (state().device_uses[device] == 0) return misuse("aclrtResetDevice of a device that is not in use");
    if (--state().device_uses[device] == 0 && current_context == device + 1) current_context = 0;
    return 0;
}

aclError aclrtGetCurrentContext(void** context) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclrtGetCurrentContext")) return code;
    if (current_context == 0) return fail(no_context, "EE1001: no context on this thread");
    *context = reinterpret_cast<void*>(current_context);
    return 0;
}

aclError aclrtSetCurrentContext(void* context) {
    const Lock lock(state().mutex);
    if (const int code = begin("aclrtSetCurrentContext")) return code;
    const auto number = reinterpret_cast<std::intptr_t>(context);
    if (number < 1 || state().device_uses[static_cast<int>(number - 1)] == 0)
        return misuse("aclrtSetCurrentContext of a context that is not alive");
    current_context = number;
    return 0;
}

aclError aclrtCreateStream(void** stream) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtCreateStream")) return code;
    auto* const made = new Stream;
    state().streams.insert(made);
    *stream = made;
    return 0;
}

aclError aclrtDestroyStream(void* handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtDestroyStream")) return code;
    auto* const stream = static_cast<Stream*>(handle);
    if (state().streams.count(stream) == 0) return misuse("aclrtDestroyStream of no stream");
    if (!stream->queue.empty()) misuse("aclrtDestroyStream with queued work");
    state().streams.erase(stream);
    delete stream;
    return 0;
}

aclError aclrtSynchronizeStream(void* handle) {
    const Lock lock(state().mutex);
    auto* const stream = static_cast<Stream*>(handle);
    if (const int code = begin_in_context("aclrtSynchronizeStream")) {
        // Whatever the reason, the work is over afterwards.
        if (state().streams.count(stream) != 0) stream->queue.clear();
        return code;
    }
    if (state().streams.count(stream) == 0) return misuse("aclrtSynchronizeStream of no stream");
    return drain(*stream);
}

aclError aclrtCreateEventWithFlag(void** event, std::uint32_t flag) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtCreateEventWithFlag")) return code;
    if (flag != 8) return misuse("an event that takes no time");
    auto* const made = new Event;
    state().events.insert(made);
    *event = made;
    return 0;
}

aclError aclrtDestroyEvent(void* handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtDestroyEvent")) return code;
    auto* const event = static_cast<Event*>(handle);
    if (state().events.erase(event) == 0) return misuse("aclrtDestroyEvent of no event");
    delete event;
    return 0;
}

aclError aclrtRecordEvent(void* event_handle, void* stream_handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtRecordEvent")) return code;
    auto* const event = static_cast<Event*>(event_handle);
    auto* const stream = static_cast<Stream*>(stream_handle);
    if (state().events.count(event) == 0 || state().streams.count(stream) == 0) return misuse("aclrtRecordEvent of no event or stream");
    event->seconds = -1.0;
    stream->queue.emplace_back([event, stream] {
        if (state().events.count(event) == 0) return misuse("queued mark of an event that was destroyed");
        event->seconds = stream->seconds;
        return 0;
    });
    return 0;
}

aclError aclrtEventElapsedTime(float* milliseconds, void* start_handle, void* end_handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtEventElapsedTime")) return code;
    auto* const start = static_cast<Event*>(start_handle);
    auto* const end = static_cast<Event*>(end_handle);
    if (state().events.count(start) == 0 || state().events.count(end) == 0) return misuse("aclrtEventElapsedTime of no event");
    if (start->seconds < 0.0 || end->seconds < 0.0) return misuse("aclrtEventElapsedTime of an event that has not taken place");
    *milliseconds = static_cast<float>((end->seconds - start->seconds) * 1e3);
    return 0;
}

aclError aclrtMalloc(void** memory, std::size_t bytes, int) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtMalloc")) return code;
    if (bytes == 0) return misuse("aclrtMalloc of no bytes");
    if (bytes > memory_bytes - state().allocated) return fail(out_of_device_memory, "EL0004: failed to allocate " + std::to_string(bytes));
    // The documentation promises a boundary of 64, not more. What lies in the memory is undefined.
    constexpr std::size_t boundary = 64;
    const std::size_t rounded = (bytes + boundary - 1) / boundary * boundary;
    auto* const block = static_cast<char*>(std::aligned_alloc(boundary, rounded));
    if (block == nullptr) return fail(out_of_device_memory, "EL0004: the host has no memory for it");
    std::memset(block, 0xA5, rounded);
    state().memory.emplace(block, bytes);
    state().allocated += bytes;
    pretend::add_memory(block, bytes);
    *memory = block;
    return 0;
}

aclError aclrtFree(void* memory) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtFree")) return code;
    const auto found = state().memory.find(static_cast<char*>(memory));
    if (found == state().memory.end()) return misuse("aclrtFree of what was not allocated");
    state().allocated -= found->second;
    pretend::remove_memory(memory);
    std::free(found->first);
    state().memory.erase(found);
    return 0;
}

aclError aclrtMemcpy(void* target, std::size_t capacity, const void* source, std::size_t bytes, int kind) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtMemcpy")) return code;
    if (bytes > capacity) return misuse("aclrtMemcpy beyond its target");
    const bool to_device = kind == 1 && is_device(target, bytes) && !touches_device(source, bytes);
    const bool to_host = kind == 2 && is_device(source, bytes) && !touches_device(target, bytes);
    if (!to_device && !to_host) return misuse("aclrtMemcpy of a range that is not where its kind says");
    // It does not wait for streams: neither does this one.
    std::memcpy(target, source, bytes);
    return 0;
}

aclError aclrtMemcpyAsync(void* target, std::size_t capacity, const void* source, std::size_t bytes, int kind, void* handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtMemcpyAsync")) return code;
    auto* const stream = static_cast<Stream*>(handle);
    if (state().streams.count(stream) == 0) return misuse("aclrtMemcpyAsync on no stream");
    if (bytes > capacity || kind != 3 || !is_device(target, bytes) || !is_device(source, bytes))
        return misuse("aclrtMemcpyAsync of a range that is not where its kind says");
    stream->queue.emplace_back([=] {
        if (!is_device(target, bytes) || !is_device(source, bytes)) return misuse("queued copy of memory that was freed");
        std::memmove(target, source, bytes);
        stream->seconds += 2.0 * static_cast<double>(bytes) / memory_bytes_per_second;
        return 0;
    });
    return 0;
}

aclError aclrtMemset(void* memory, std::size_t capacity, std::int32_t value, std::size_t bytes) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtMemset")) return code;
    if (bytes > capacity || !is_device(memory, bytes)) return misuse("aclrtMemset outside device memory");
    std::memset(memory, value, bytes);
    return 0;
}

aclError aclrtMemsetAsync(void* memory, std::size_t capacity, std::int32_t value, std::size_t bytes, void* handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtMemsetAsync")) return code;
    auto* const stream = static_cast<Stream*>(handle);
    if (state().streams.count(stream) == 0) return misuse("aclrtMemsetAsync on no stream");
    if (bytes > capacity || !is_device(memory, bytes)) return misuse("aclrtMemsetAsync outside device memory");
    stream->queue.emplace_back([=] {
        if (!is_device(memory, bytes)) return misuse("queued memset of memory that was freed");
        std::memset(memory, value, bytes);
        stream->seconds += static_cast<double>(bytes) / memory_bytes_per_second;
        return 0;
    });
    return 0;
}

aclError aclrtGetMemInfo(int, std::size_t* free, std::size_t* total) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtGetMemInfo")) return code;
    *free = memory_bytes - state().allocated;
    *total = memory_bytes;
    return 0;
}

aclError aclrtBinaryLoadFromFile(const char* path, const void*, void** binary) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtBinaryLoadFromFile")) return code;
    if (path == nullptr || path[0] != '/') return misuse("aclrtBinaryLoadFromFile of a path that is not absolute");
    std::ifstream file(path, std::ios::binary);
    std::stringstream text;
    text << file.rdbuf();
    if (!file) return fail(100003, "EE1001: cannot read " + std::string(path));
    pretend::Object object;
    if (const char* wrong = pretend::parse_object(text.str(), object)) return fail(107000, std::string("EE1001: ") + path + ": " + wrong);
    auto* const made = new Binary{object};
    state().binaries.insert(made);
    *binary = made;
    return 0;
}

aclError aclrtBinaryUnLoad(void* handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtBinaryUnLoad")) return code;
    auto* const binary = static_cast<Binary*>(handle);
    if (state().binaries.erase(binary) == 0) return misuse("aclrtBinaryUnLoad of no binary");
    for (auto next = state().functions.begin(); next != state().functions.end();) {
        if ((*next)->binary != binary) {
            ++next;
            continue;
        }
        delete *next;
        next = state().functions.erase(next);
    }
    delete binary;
    return 0;
}

aclError aclrtBinaryGetFunction(void* handle, const char* name, void** function) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtBinaryGetFunction")) return code;
    auto* const binary = static_cast<Binary*>(handle);
    if (state().binaries.count(binary) == 0) return misuse("aclrtBinaryGetFunction of no binary");
    if (!pretend::has_kernel(name)) return fail(107000, "EE1001: the object has no kernel " + std::string(name));
    auto* const made = new Function{binary, name};
    state().functions.insert(made);
    *function = made;
    return 0;
}

aclError aclrtKernelArgsInit(void* handle, void** arguments) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtKernelArgsInit")) return code;
    auto* const function = static_cast<Function*>(handle);
    if (state().functions.count(function) == 0) return misuse("aclrtKernelArgsInit of no function");
    auto* const made = new Arguments{function, {}, false};
    state().arguments.insert(made);
    *arguments = made;
    return 0;
}

aclError aclrtKernelArgsAppend(void* handle, void* parameter, std::size_t size, void** out) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtKernelArgsAppend")) return code;
    auto* const arguments = static_cast<Arguments*>(handle);
    if (state().arguments.count(arguments) == 0 || arguments->final) return misuse("aclrtKernelArgsAppend to no open list");
    if (size != sizeof(std::uint64_t) || arguments->values.size() == 128) return misuse("an argument that is not one of 128 words");
    std::uint64_t value;
    std::memcpy(&value, parameter, sizeof value);
    arguments->values.push_back(value);
    *out = arguments;
    return 0;
}

aclError aclrtKernelArgsFinalize(void* handle) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtKernelArgsFinalize")) return code;
    auto* const arguments = static_cast<Arguments*>(handle);
    if (state().arguments.count(arguments) == 0 || arguments->final) return misuse("aclrtKernelArgsFinalize of no open list");
    arguments->final = true;
    return 0;
}

aclError aclrtLaunchKernelWithConfig(void* handle, std::uint32_t cores, void* stream_handle, void* configuration, void* list, void* reserved) {
    const Lock lock(state().mutex);
    if (const int code = begin_in_context("aclrtLaunchKernelWithConfig")) return code;
    auto* const function = static_cast<Function*>(handle);
    auto* const stream = static_cast<Stream*>(stream_handle);
    auto* const arguments = static_cast<Arguments*>(list);
    if (state().functions.count(function) == 0 || state().streams.count(stream) == 0) return misuse("launch of no function or on no stream");
    if (state().arguments.count(arguments) == 0 || !arguments->final || arguments->function != function)
        return misuse("launch with arguments that are not final or another function's");
    if (cores < 1 || cores > 65535 || configuration != nullptr || reserved != nullptr) return misuse("launch with parameters out of range");
    Binary* const binary = function->binary;
    const std::string name = function->name;
    const std::vector<std::uint64_t> values = arguments->values;
    state().arguments.erase(arguments);
    delete arguments;
    stream->queue.emplace_back([=] {
        if (state().binaries.count(binary) == 0) return misuse("queued launch of a binary that was unloaded");
        const pretend::Outcome outcome = pretend::run_kernel(binary->object, name, cores, values);
        stream->seconds += outcome.seconds;
        PretendCost& cost = state().costs[name];
        cost.launches += 1;
        cost.instructions += outcome.instructions;
        cost.vector_cycles += outcome.vector_cycles;
        cost.bytes_in += outcome.bytes_in;
        cost.bytes_out += outcome.bytes_out;
        cost.seconds += outcome.seconds;
        if (!outcome.good) return fail(vector_core_fault, "EZ9999: kernel " + name + ": " + outcome.fault);
        return 0;
    });
    return 0;
}

}  // extern "C"
