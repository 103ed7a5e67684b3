#include "orthant/kernels/conv_error.hpp"
#include "orthant/kernels/conv.hpp"
#include "tests/kernels/shape_list.hpp"
#include "tests/support/random.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>

namespace orthant::test {
namespace {

using model::ConvTask;
using model::Pass;

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};
using Memory = std::unique_ptr<float, Free>;

/// Aligned floats between -1 and 1.
Memory random_floats(std::int64_t count, Random& random) {
  const auto bytes = static_cast<std::size_t>((count * 4 + 127) / 64 * 64);
  Memory memory(static_cast<float*>(std::aligned_alloc(64, bytes)));
  for (std::int64_t i = 0; i < count; ++i) memory.get()[i] = static_cast<float>(random.integer(-65536, 65536)) / 65536;
  return memory;
}

std::map<model::Algorithm, double> errors(const ConvTask& task) {
  Random random(1);
  const std::int64_t weights = tensor::taps(task.window) * task.src.extents.c / task.groups * task.dst.extents.c;
  const Memory src = random_floats(tensor::volume(task.src.extents), random);
  const Memory dst = random_floats(tensor::volume(task.dst.extents), random);
  const Memory taps = random_floats(weights, random);
  std::array<void*, 4> arguments{};
  if (task.pass == Pass::forward) arguments = {src.get(), taps.get(), nullptr, dst.get()};
  if (task.pass == Pass::backward_data) arguments = {dst.get(), taps.get(), src.get(), nullptr};
  if (task.pass == Pass::backward_weights) arguments = {src.get(), dst.get(), taps.get(), nullptr};
  const std::span<void* const> given(arguments.data(), task.pass == Pass::backward_data ? 3 : 4);
  std::map<model::Algorithm, double> found;
  for (const kernels::ConvCandidate& candidate : kernels::conv_candidates(task, 2, model::ErrorClass::fast)) {
    const Memory scratch = random_floats(candidate.primitive->scratch_bytes() / 4 + 16, random);
    candidate.primitive->execute({}, given, scratch.get());
    found[candidate.algorithm] = kernels::sampled_error(task, given);
  }
  return found;
}

/// On real numbers every way is as good as oneDNN's direct one, within the factor of its class.
TEST(ConvError, AtMostThatOfItsClass) {
  for (const ShapeLine& line : read_shapes(ORTHANT_SHAPES "/error_shapes.txt")) {
    for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
      const ConvTask task{.pass = pass,
                          .window = line.window,
                          .groups = line.g,
                          .src = tensor::channels_last(src_shape(line)),
                          .dst = tensor::channels_last(dst_shape(line))};
      const std::map<model::Algorithm, double> found = errors(task);
      const auto onednn = found.find(model::Algorithm::onednn);
      // Where oneDNN has only a reference: what a sum of this length comes to in any order.
      const double most = onednn == found.end() ? 1e-6 : std::max(2 * onednn->second, 2e-7);
      for (const auto& [algorithm, error] : found) {
        EXPECT_LE(error, model::error_class(algorithm) == model::ErrorClass::exact ? most : 5 * most)
            << model::name_of(algorithm) << ", " << line.text << ", pass " << static_cast<int>(pass);
      }
    }
  }
}

/// Beside the weights in an order of its own, an implementation of ours takes at most 4 MiB per thread, whatever the
/// batch and the volume.
TEST(ConvWorkspace, IsSmallInEveryThread) {
  for (const std::int64_t in : {3, 4, 64, 192, 256}) {
    for (const std::int64_t out : {16, 192, 256}) {
      for (const std::int64_t depth : {1, 32}) {
        for (const Pass pass : {Pass::forward, Pass::backward_data, Pass::backward_weights}) {
          for (const bool accumulate : {false, true}) {
            if (accumulate && pass != Pass::backward_weights) continue;
            ConvTask task{.pass = pass,
                          .accumulate = accumulate,
                          .src = tensor::channels_last({.n = 8, .c = in, .d = depth, .h = 64, .w = 64}),
                          .dst = tensor::channels_last({.n = 8, .c = out, .d = depth, .h = 64, .w = 64})};
            task.window.size = {.d = depth == 1 ? 1 : 3, .h = 3, .w = 3};
            task.window.pad_lo = task.window.pad_hi = {.d = depth == 1 ? 0 : 1, .h = 1, .w = 1};
            // Winograd's weights have 4 points per 3 taps; panels are filled up to 64 outputs.
            const double points = depth == 1 ? 16 : 64;
            const double weights = pass == Pass::backward_weights ? 0
                                                                  : points * 4.0 * static_cast<double>(in) *
                                                                        static_cast<double>((out + 63) / 64 * 64);
            for (const int threads : {1, 2, 3, 16}) {
              for (const kernels::ConvCandidate& candidate : kernels::conv_candidates(task, threads)) {
                if (candidate.algorithm == model::Algorithm::onednn) continue;
                EXPECT_LE(static_cast<double>(candidate.primitive->scratch_bytes()), weights + threads * 4.0 * 1048576)
                    << candidate.primitive->name() << ", " << in << " to " << out << " channels, depth " << depth
                    << ", pass " << static_cast<int>(pass) << ", " << threads << " threads";
              }
            }
          }
        }
      }
    }
  }
}

}  // namespace
}  // namespace orthant::test
