// The host model as the pretend AscendCL sees it.

#include "kernels.h"

#include "launch.h"
#include "pretend.h"
#include "reference.h"

namespace pretend {

namespace {

const std::string first_line = "enec host model\n";

}  // namespace

const char* parse_object(const std::string& text, Object& object) {
    if (text.compare(0, first_line.size(), first_line) != 0) return "not an object of the host model";
    object.settings = text.substr(first_line.size());
    enec_model::Options options;
    // The text has to outlive the call.
    thread_local std::string error;
    error.clear();
    return enec_model::parse_options(object.settings.c_str(), &options, &error) ? nullptr : error.c_str();
}

bool has_kernel(const std::string& name) {
    return name == "enec_analyse_v1" || name == "enec_encode_v1" || name == "enec_decode_v1";
}

Outcome run_kernel(const Object& object, const std::string& name, std::uint32_t cores, const std::vector<std::uint64_t>& arguments) {
    Outcome outcome;
    enec_model::Options options;
    if (!enec_model::parse_options(object.settings.c_str(), &options, &outcome.fault)) return outcome;
    enec_model::Cost cost;
    outcome.good = enec_model::launch(name.c_str(), cores, arguments.data(), arguments.size(), options, &cost, &outcome.fault);
    outcome.seconds = cost.seconds;
    outcome.instructions = cost.instructions;
    outcome.vector_cycles = cost.vector_cycles;
    outcome.bytes_in = cost.bytes_in;
    outcome.bytes_out = cost.bytes_out;
    return outcome;
}

void add_memory(const void* start, std::size_t bytes) {
    enec_model::register_memory(start, bytes);
}

void remove_memory(const void* start) {
    enec_model::unregister_memory(start);
}

}  // namespace pretend

double pretend_reference(int decompress) {
    // What the paper's kernels store of a 16-bit element, at its ratio of 1.35.
    constexpr double stored_bits = 16 / 1.35;
    const auto estimate = decompress != 0
                              ? enec_model::Estimate(enec_model::kReferenceDecompress, enec_model::kReferenceDecompressBarriers, stored_bits)
                              : enec_model::Estimate(enec_model::kReferenceCompress, enec_model::kReferenceCompressBarriers, stored_bits);
    return estimate.bytes_per_second / 1e9;
}
