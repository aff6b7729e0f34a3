// Kernel sources have nothing in them that the device lacks or that the project leaves out on purpose.
#include <cctype>
#include <cstdio>
#include <fstream>
#include <sstream>
#include <string>

int main() {
    const std::string here = __FILE__;
    const std::string folder = here.substr(0, here.find_last_of('/') + 1) + "../../kernels/";
    // Exceptions, heap, virtual calls, standard library, 64-bit floating point; barriers on all pipes; scalar accesses to device memory; halves that are
    // not selected or compared; what docs/ascend-subset.md leaves out.
    const char* const forbidden[] = {"std::", "throw", "try {", "catch", "new ", "delete ", "virtual", "double ", "thread_local", "static uint", "malloc",
                                     "PIPE_ALL", "CumSum", "Broadcast", "CreateVecIndex", "Gatherb(", "DataCopy(", "Copy(", "assert(", "printf"};
    const char* const files[] = {"abi.h", "platform.h", "rows.h", "packing.h", "words32.h", "lanes.h", "blocks.h", "work.h", "elements.h", "analyse.h",
                                 "encode.h", "decode.h", "kernels.cpp"};
    int failed = 0;
    for (const char* const file : files) {
        std::ifstream stream(folder + file);
        std::string line;
        int number = 0;
        while (std::getline(stream, line)) {
            ++number;
            const std::string code = line.substr(0, line.find("//"));
            for (const char* const word : forbidden) {
                const size_t at = code.find(word);
                const bool inside = at != std::string::npos && at > 0 && (std::isalnum(static_cast<unsigned char>(code[at - 1])) != 0 || code[at - 1] == '_');
                if (at != std::string::npos && !inside) {
                    std::printf("FAILED %s:%d: `%s` in a kernel\n", file, number, word);
                    ++failed;
                }
            }
        }
        std::printf("%s %s: %d lines\n", number > 0 ? "ok    " : "FAILED", file, number);
        failed += number > 0 ? 0 : 1;
    }
    std::printf("%d failed\n", failed);
    return failed == 0 ? 0 : 1;
}
