// Faults: a broken rule of the subset ends the launch, with the kernel's file and line.
#ifndef ENEC_MODEL_FAULT_H
#define ENEC_MODEL_FAULT_H

#include <sstream>
#include <stdexcept>
#include <string>

namespace enec_model {

// Where in the kernel's source an instruction stands.
struct Site {
    const char* file;
    int line;
    static constexpr Site Here(const char* file = __builtin_FILE(), int line = __builtin_LINE()) { return Site{file, line}; }
};

class Fault : public std::runtime_error {
   public:
    using std::runtime_error::runtime_error;
};

template <typename... Parts>
[[noreturn]] void Fail(const Site& site, const Parts&... parts) {
    std::ostringstream text;
    const std::string file = site.file;
    text << file.substr(file.find_last_of('/') + 1) << ":" << site.line << ": ";
    (text << ... << parts);
    throw Fault(text.str());
}

template <typename... Parts>
void Require(bool holds, const Site& site, const Parts&... parts) {
    if (!holds) {
        Fail(site, parts...);
    }
}

}  // namespace enec_model

#endif
