#include "orthant/kernels/instruction_set.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/kernels/simd.hpp"

#include <dnnl.hpp>

#include <array>
#include <cstdlib>
#include <string>

namespace orthant::kernels {
namespace {

bool apply_limit() {
  const char* value = std::getenv("ORTHANT_MAX_ISA");
  if (!value || *value == '\0') return false;
  static const std::array<std::string, 4> names{"avx3", "avx2", "sse4", "scalar"};
  const std::string name = value;
  // Highway numbers better targets lower.
  if (name == "avx3") {
    hwy::DisableTargets(HWY_AVX3 - 1);
  } else if (name == "avx2") {
    hwy::DisableTargets(HWY_AVX2 - 1);
  } else if (name == "sse4") {
    hwy::DisableTargets(HWY_SSE4 - 1);
  } else if (name == "scalar") {
    hwy::DisableTargets(HWY_SCALAR - 1);
  } else {
    base::fail(base::Exit::usage, "the environment variable ORTHANT_MAX_ISA is '{}', which names no instruction set{}",
               name, base::suggestion(name, names));
  }
  if (name == "avx2") dnnl::set_max_cpu_isa(dnnl::cpu_isa::avx2);
  if (name == "sse4" || name == "scalar") dnnl::set_max_cpu_isa(dnnl::cpu_isa::sse41);
  return true;
}

}  // namespace

void limit_instructions() { [[maybe_unused]] static const bool limited = apply_limit(); }

}  // namespace orthant::kernels
