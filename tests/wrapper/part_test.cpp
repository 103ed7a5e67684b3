#include "orthant/wrapper/part.hpp"

#include <gtest/gtest.h>

#include <cstdint>
#include <optional>
#include <random>
#include <vector>

namespace orthant::test {
namespace {

using model::Pass;
using wrapper::Cut;
using wrapper::Part;
using wrapper::Problem;

struct Line {
  std::int64_t src = 0, taps = 1, stride = 1, dilate = 0, pad = 0;
};

std::int64_t outputs(const Line& line) {
  return (line.src + 2 * line.pad - (line.taps - 1) * (line.dilate + 1) - 1) / line.stride + 1;
}

dnnl_memory_desc_t any_memory(const std::vector<dnnl_dim_t>& dims) {
  dnnl_memory_desc_t memory{};
  dnnl_memory_desc_init_by_tag(&memory, static_cast<int>(dims.size()), dims.data(), dnnl_f32, dnnl_format_tag_any);
  return memory;
}

/// A convolution of two spatial dims, the outermost of which is the line.
std::optional<Problem> problem_of(Pass pass, const Line& line) {
  const dnnl_memory_desc_t src = any_memory({2, 3, line.src, 5}), dst = any_memory({2, 4, outputs(line), 5});
  const dnnl_memory_desc_t weights = any_memory({4, 3, line.taps, 1});
  const dnnl_dims_t strides{line.stride, 1}, dilates{line.dilate, 0}, pads{line.pad, 0};
  dnnl_convolution_desc_t op{};
  dnnl_status_t status = dnnl_invalid_arguments;
  if (pass == Pass::forward) {
    status = dnnl_dilated_convolution_forward_desc_init(&op, dnnl_forward_training, dnnl_convolution_direct, &src,
                                                        &weights, nullptr, &dst, strides, dilates, pads, pads);
  } else if (pass == Pass::backward_data) {
    status = dnnl_dilated_convolution_backward_data_desc_init(&op, dnnl_convolution_direct, &src, &weights, &dst,
                                                              strides, dilates, pads, pads);
  } else {
    status = dnnl_dilated_convolution_backward_weights_desc_init(&op, dnnl_convolution_direct, &src, &weights, nullptr,
                                                                 &dst, strides, dilates, pads, pads);
  }
  if (status != dnnl_success) return std::nullopt;
  const auto request = wrapper::read_request(&op);
  return request ? std::optional(request->problem) : std::nullopt;
}

struct Interval {
  std::int64_t first = 0, last = 0;
  [[nodiscard]] bool has(std::int64_t row) const { return row >= first && row < last; }
};

/// Every product of a row of dst, a tap and a row of src is computed by the part that owns the written row, and the
/// part finds the row of src where the whole does.
void expect_all_products(const Problem& whole, const Line& line, const std::vector<Part>& parts) {
  const bool by_src = whole.pass == Pass::backward_data;
  std::int64_t written = 0;
  for (const Part& part : parts) {
    const Interval src{part.src_row, part.src_row + part.problem.src.dims[2]};
    const Interval dst{part.dst_row, part.dst_row + part.problem.dst.dims[2]};
    const Interval owned = by_src ? src : dst;
    EXPECT_EQ(owned.first, written);
    written = owned.last;
    for (std::int64_t row = 0; row < outputs(line); ++row) {
      for (std::int64_t tap = 0; tap < line.taps; ++tap) {
        const std::int64_t read = row * line.stride - line.pad + tap * (line.dilate + 1);
        if (read < 0 || read >= line.src || !owned.has(by_src ? read : row)) continue;
        EXPECT_TRUE(src.has(read) && dst.has(row));
        EXPECT_EQ((row - dst.first) * line.stride - part.problem.pad_lo[0] + tap * (line.dilate + 1), read - src.first);
      }
    }
  }
  EXPECT_EQ(written, by_src ? line.src : outputs(line));
}

TEST(Part, SlabsComputeAllProducts) {
  std::mt19937 random(1);
  const auto number = [&](int lowest, int highest) { return std::uniform_int_distribution(lowest, highest)(random); };
  int cut = 0;
  for (int i = 0; i < 3000; ++i) {
    const Line line{number(1, 40), number(1, 5), number(1, 4), number(0, 2), number(0, 4)};
    if (outputs(line) < 1) continue;
    for (const Pass pass : model::all_passes) {
      const auto problem = problem_of(pass, line);
      if (!problem) continue;
      const auto parts = wrapper::parts_of(*problem, {.slabs = number(2, 5)});
      if (!parts) continue;
      cut += parts->size() > 1 ? 1 : 0;
      expect_all_products(*problem, line, *parts);
    }
  }
  EXPECT_GT(cut, 1000);
}

TEST(Part, MostLinesCanBeCut) {
  const Line usual{.src = 64, .taps = 3, .pad = 1};
  for (const Pass pass : model::all_passes) {
    const auto parts = wrapper::parts_of(*problem_of(pass, usual), {.slabs = 4});
    ASSERT_TRUE(parts);
    EXPECT_EQ(parts->size(), 4U);
    EXPECT_EQ(parts->front().problem.samples(), 1);
  }
}

TEST(Part, SamplesAreNotSlabs) {
  const auto parts = wrapper::parts_of(*problem_of(Pass::forward, {.src = 8, .taps = 3, .pad = 1}), {.samples = 2});
  ASSERT_TRUE(parts);
  ASSERT_EQ(parts->size(), 1U);
  EXPECT_EQ(parts->front().problem.samples(), 2);
}

TEST(Part, CutsHaveNames) {
  for (const Cut& cut : {Cut{1, 1}, Cut{8, 1}, Cut{1, 16}}) EXPECT_EQ(wrapper::cut_from(to_text(cut)), cut);
  for (const char* text : {"", "x", "0", "8x", "1/0", "1/1", "1/", "-1"}) EXPECT_FALSE(wrapper::cut_from(text)) << text;
}

TEST(Request, ProgramsThatNameNoLayoutKeepTheirs) {
  const auto problem = problem_of(Pass::forward, {.src = 8, .taps = 3, .pad = 1});
  ASSERT_TRUE(problem);
  EXPECT_EQ(problem->src.format_desc.blocking.strides[1], 8 * 5);
  EXPECT_EQ(problem->weights.format_desc.blocking.strides[0], 3 * 3);
}

}  // namespace
}  // namespace orthant::test
