#include "orthant/kernels/machine.hpp"

#include "orthant/base/format.hpp"
#include "orthant/kernels/instruction_set.hpp"
#include "orthant/kernels/simd.hpp"

#include <hwy/highway.h>
#include <omp.h>
#include <unistd.h>
#include <dnnl.hpp>

#include <fstream>

namespace orthant::kernels {
namespace {

std::string isa_name(dnnl::cpu_isa isa) {
  switch (isa) {
    case dnnl::cpu_isa::sse41: return "sse4.1";
    case dnnl::cpu_isa::avx: return "avx";
    case dnnl::cpu_isa::avx2: return "avx2";
    case dnnl::cpu_isa::avx2_vnni: return "avx2_vnni";
    case dnnl::cpu_isa::avx512_core: return "avx512_core";
    case dnnl::cpu_isa::avx512_core_vnni: return "avx512_core_vnni";
    case dnnl::cpu_isa::avx512_core_bf16: return "avx512_core_bf16";
    case dnnl::cpu_isa::avx512_core_amx: return "avx512_core_amx";
    default: return "other";
  }
}

/// As the system names it.
std::string processor_name() {
  std::ifstream file("/proc/cpuinfo");
  for (std::string line; std::getline(file, line);) {
    const std::size_t colon = line.find(": ");
    if (line.starts_with("model name") && colon != std::string::npos) return line.substr(colon + 2);
  }
  return "unknown";
}

}  // namespace

Machine describe_machine() {
  limit_instructions();
  const dnnl_version_t* version = dnnl_version();
  return {.processor = processor_name(),
          .onednn_version = fmt::format("{}.{}.{}", version->major, version->minor, version->patch),
          .onednn_isa = isa_name(dnnl::get_effective_cpu_isa()),
          .highway_version = fmt::format("{}.{}.{}", HWY_MAJOR, HWY_MINOR, HWY_PATCH),
          .simd_target = simd_target(),
          .openmp_version = std::to_string(_OPENMP),
          .processors = omp_get_num_procs(),
          .threads_may_shrink = omp_get_dynamic() != 0};
}

std::int64_t second_level_cache_bytes() {
  constexpr std::int64_t usual = std::int64_t{1} << 20;
  const std::int64_t told = sysconf(_SC_LEVEL2_CACHE_SIZE);
  return told > 0 ? told : usual;
}

std::int64_t third_level_cache_bytes() {
  constexpr std::int64_t usual = 16384;
  // sysconf() tells that of the whole processor, of which a virtual machine has a part.
  std::ifstream file("/sys/devices/system/cpu/cpu0/cache/index3/size");
  std::int64_t kibibytes = 0;
  char unit = 0;
  if (!(file >> kibibytes >> unit) || unit != 'K' || kibibytes <= 0) kibibytes = usual;
  return kibibytes * 1024;
}

}  // namespace orthant::kernels
