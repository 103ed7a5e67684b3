#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::kernels {

/// What the kernels run on here.
struct Machine {
  std::string processor;
  std::string onednn_version;
  std::string onednn_isa;  ///< the instruction set that oneDNN generates code for
  std::string highway_version;
  std::string simd_target;          ///< what our own kernels run as: "avx3", "avx2", ...
  std::string openmp_version;       ///< its date, e.g. "201511"
  int processors = 1;               ///< that this process may use
  bool threads_may_shrink = false;  ///< OMP_DYNAMIC, with which oneDNN can hang
};

Machine describe_machine();

/// The size for one core, or what most machines have if the system does not report it.
std::int64_t second_level_cache_bytes();
/// Of all cores together.
std::int64_t third_level_cache_bytes();

}  // namespace orthant::kernels
