// What libFuzzer calls. ORTHANT_FUZZ names the target.
#include "fuzz/targets.hpp"

#include <algorithm>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  static const orthant::fuzz::Target* const target = [] {
    const char* name = std::getenv("ORTHANT_FUZZ");
    const auto all = orthant::fuzz::targets();
    const auto found =
        std::find_if(all.begin(), all.end(), [&](const auto& one) { return name != nullptr && one.name == name; });
    if (found != all.end()) return &*found;
    std::fputs("set ORTHANT_FUZZ to the name of a folder of fuzz/corpus\n", stderr);
    std::exit(64);
  }();
  orthant::fuzz::feed(*target, {reinterpret_cast<const char*>(data), size});
  return 0;
}
