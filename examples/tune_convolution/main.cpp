// Divides the forward pass of a plain oneDNN convolution into micro-batches: the fastest of oneDNN's implementations,
// direct and Winograd, at every power of two of samples, so that its scratchpad stays within a limit.
//
//   tune_convolution [limit in KiB] [file that keeps what was measured]
#include "orthant/base/error.hpp"
#include "orthant/microbatch/divide.hpp"
#include "orthant/microbatch/store.hpp"

#include <dnnl.hpp>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <vector>

namespace {

using namespace orthant;

constexpr int mini_batch = 32, channels = 64, filters = 96, extent = 14;

dnnl::memory::desc any_layout(const dnnl::memory::dims& dims) {
  return {dims, dnnl::memory::data_type::f32, dnnl::memory::format_tag::any};
}

/// All implementations of an algorithm, oneDNN's slow reference code left out.
std::vector<dnnl::convolution_forward::primitive_desc> implementations(const dnnl::engine& cpu, int samples,
                                                                       dnnl::algorithm algorithm) {
  const dnnl::convolution_forward::desc wanted(
      dnnl::prop_kind::forward_training, algorithm, any_layout({samples, channels, extent, extent}),
      any_layout({filters, channels, 3, 3}), any_layout({samples, filters, extent, extent}), {1, 1}, {1, 1}, {1, 1});
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  std::vector<dnnl::convolution_forward::primitive_desc> found;
  try {
    dnnl::convolution_forward::primitive_desc one(wanted, attributes, cpu, true);
    for (bool more = bool(one); more; more = one.next_impl()) {
      if (std::string(one.impl_info_str()).find("ref") == std::string::npos) found.push_back(one);
    }
  } catch (const dnnl::error&) {
    // oneDNN has no such algorithm for this convolution.
  }
  return found;
}

double shortest_seconds(const dnnl::engine& cpu, const dnnl::convolution_forward::primitive_desc& description) {
  dnnl::stream stream(cpu);
  const dnnl::memory src(description.src_desc(), cpu), weights(description.weights_desc(), cpu),
      dst(description.dst_desc(), cpu), scratchpad(description.scratchpad_desc(), cpu);
  const dnnl::convolution_forward convolution(description);
  double shortest = 1e30;
  for (int run = 0; run < 3; ++run) {
    const auto start = std::chrono::steady_clock::now();
    convolution.execute(
        stream,
        {{DNNL_ARG_SRC, src}, {DNNL_ARG_WEIGHTS, weights}, {DNNL_ARG_DST, dst}, {DNNL_ARG_SCRATCHPAD, scratchpad}});
    stream.wait();
    const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
    shortest = std::min(shortest, seconds.count());
  }
  return shortest;
}

std::vector<microbatch::Measured> measure(const dnnl::engine& cpu, int samples) {
  std::vector<microbatch::Measured> measured;
  for (const auto algorithm : {dnnl::algorithm::convolution_direct, dnnl::algorithm::convolution_winograd}) {
    for (const auto& one : implementations(cpu, samples, algorithm)) {
      const auto bytes = static_cast<std::int64_t>(one.scratchpad_desc().get_size());
      measured.push_back({one.impl_info_str(), shortest_seconds(cpu, one), bytes});
    }
  }
  return measured;
}

/// What is not in the file yet is measured and added to it.
microbatch::Table make_table(const std::string& path) {
  const dnnl::engine cpu(dnnl::engine::kind::cpu, 0);
  const dnnl_version_t& version = *dnnl_version();
  const microbatch::Store store(path, "oneDNN " + std::to_string(version.major) + "." + std::to_string(version.minor) +
                                          "." + std::to_string(version.patch));
  if (const std::string why = store.trouble(); !why.empty())
    std::fprintf(stderr, "%s: %s\n", path.c_str(), why.c_str());
  microbatch::Records records = store.load(), added;
  microbatch::Table table{.kernel = "forward", .samples = mini_batch};
  for (const std::int64_t samples : microbatch::piece_sizes(microbatch::Policy::power_of_two, mini_batch)) {
    const std::string key = "example forward 64x14x14 to 96x14x14, 3x3, samples " + std::to_string(samples);
    if (!records.contains(key)) records[key] = added[key] = measure(cpu, static_cast<int>(samples));
    for (const microbatch::Measured& one : records[key])
      table.candidates.push_back({.algorithm = one.algorithm,
                                  .samples = samples,
                                  .seconds = one.seconds,
                                  .workspace_bytes = one.workspace_bytes});
  }
  std::printf("measured now: %zu of %zu\n", added.size(),
              microbatch::piece_sizes(microbatch::Policy::power_of_two, mini_batch).size());
  if (!store.add(added)) std::fprintf(stderr, "%s: cannot be written\n", path.c_str());
  return table;
}

void print(const char* title, const microbatch::Division& division) {
  std::printf("%s: %.3f ms, %.0f KiB of workspace:", title, 1e3 * division.seconds,
              static_cast<double>(division.workspace_bytes) / 1024);
  for (const microbatch::Candidate& piece : division.pieces)
    std::printf(" %lldx%s", static_cast<long long>(piece.samples), piece.algorithm.c_str());
  std::printf("\n");
}

}  // namespace

int main(int argc, char** argv) {
  const std::int64_t limit_bytes = (argc > 1 ? std::atoll(argv[1]) : 4096) * 1024;
  try {
    const microbatch::Table table = make_table(argc > 2 ? argv[2] : "");
    for (const microbatch::Division& division : microbatch::pareto_front(table)) print("front", division);
    const auto best = microbatch::within_limit(table, limit_bytes);
    if (!best) base::fail(base::Exit::does_not_fit, "no division of the convolution fits into {} bytes", limit_bytes);
    print("chosen", *best);
  } catch (const base::Error& error) {
    std::fprintf(stderr, "tune_convolution: %s\n", error.what());
    return static_cast<int>(error.code());
  }
}
