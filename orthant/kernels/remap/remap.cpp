#include "orthant/kernels/remap/remap.hpp"
#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/remap/remap.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::remap::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

/// dst = sum over a few rows, each times its weight; `count` items side by side.
void combine_items(const Term* terms, std::int64_t term_count, float* dst, std::int64_t count) {
  if (term_count == 0) {
    std::fill_n(dst, count, 0.0F);
    return;
  }
  for_lanes(count, [&](auto d, std::int64_t i) HWY_ATTR {
    auto sum = hn::Mul(hn::LoadU(d, terms[0].src + i), hn::Set(d, terms[0].weight));
    for (std::int64_t k = 1; k < term_count; ++k)
      sum = hn::MulAdd(hn::LoadU(d, terms[k].src + i), hn::Set(d, terms[k].weight), sum);
    hn::StoreU(sum, d, dst + i);
  });
}

/// The cells of a row of dst from cells of a row of src: runs of equal cells are copied, others summed up.
void combine_cells(const RowCall& call) {
  for (std::int64_t r = 0; r < call.run_count; ++r) {
    const Run& run = call.runs[r];
    for (std::int64_t i = 0; i < run.count; ++i) {
      const std::int32_t begin = call.begin[run.dst + i], end = call.begin[run.dst + i + 1];
      float* dst = call.dst + (run.dst + i) * call.dst_step;
      if (begin == end) {
        std::fill_n(dst, call.channels, 0.0F);
        continue;
      }
      const float* first = call.src + call.cell[begin] * call.src_step;
      if (end == begin + 2) {
        const float* second = call.src + call.cell[begin + 1] * call.src_step;
        for_lanes(call.channels, [&](auto d, std::int64_t c) HWY_ATTR {
          const auto low = hn::Mul(hn::LoadU(d, first + c), hn::Set(d, call.weight[begin]));
          hn::StoreU(hn::MulAdd(hn::LoadU(d, second + c), hn::Set(d, call.weight[begin + 1]), low), d, dst + c);
        });
        continue;
      }
      for_lanes(call.channels, [&](auto d, std::int64_t c) HWY_ATTR {
        auto sum = hn::Mul(hn::LoadU(d, first + c), hn::Set(d, call.weight[begin]));
        for (std::int32_t k = begin + 1; k < end; ++k)
          sum = hn::MulAdd(hn::LoadU(d, call.src + call.cell[k] * call.src_step + c), hn::Set(d, call.weight[k]), sum);
        hn::StoreU(sum, d, dst + c);
      });
    }
  }
}

}  // namespace
}  // namespace orthant::kernels::remap::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::remap {
namespace {

HWY_EXPORT(combine_items);
HWY_EXPORT(combine_cells);

using Axis = model::RemapTask::Axis;

std::int64_t most_terms(const Axis& axis) {
  std::int64_t most = 0;
  for (std::size_t i = 0; i + 1 < axis.begin.size(); ++i)
    most = std::max<std::int64_t>(most, axis.begin[i + 1] - axis.begin[i]);
  return most;
}

/// Stretches in which cell follows cell, one for one, and what is between them.
std::vector<Run> runs_of(const Axis& axis) {
  std::vector<Run> runs;
  for (std::size_t i = 0; i + 1 < axis.begin.size(); ++i) {
    const auto at = static_cast<std::size_t>(axis.begin[i]);
    const bool plain = axis.begin[i + 1] == axis.begin[i] + 1 && axis.weight[at] == 1;
    const std::int64_t cell = plain ? axis.cell[at] : -1;
    const bool continues =
        !runs.empty() && runs.back().is_copy == plain && (!plain || cell == runs.back().src + runs.back().count);
    if (!continues) runs.push_back({.dst = static_cast<std::int64_t>(i), .src = cell, .count = 0, .is_copy = plain});
    ++runs.back().count;
  }
  return runs;
}

/// Row by row of dst: first the rows of src that it reads are added up as they are, then cells of the result.
class Remap final : public Primitive {
 public:
  Remap(const model::RemapTask& task, int threads)
      : task_(task),
        runs_(runs_of(task.axes[2])),
        terms_(std::max<std::int64_t>(1, most_terms(task.axes[0]) * most_terms(task.axes[1]))),
        row_items_(task.src.extents.w * task.src.extents.c),
        team_(team_for(std::max(tensor::volume(task.dst.extents), tensor::volume(task.src.extents)), threads)) {
    const bool contiguous = task.src.extents.c <= 1 || (task.src.strides.c == 1 && task.dst.strides.c == 1);
    if (!contiguous) base::fail(base::Exit::internal, "a remap got channels that are not contiguous");
  }

  [[nodiscard]] std::string name() const override { return "orthant:remap:" + simd_target(); }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return team_ * thread_bytes(); }

  void execute(const Context& context, std::span<void* const> arguments, void* scratch) override {
    const auto* src = static_cast<const float*>(arguments[at::remap::src]) + task_.src.offset;
    auto* dst = static_cast<float*>(arguments[at::remap::dst]) + task_.dst.offset;
    const tensor::Shape& to = task_.dst.extents;
    const std::int64_t rows = to.n * to.d * to.h;
    run_team(team_, [&](int thread, int team) {
      auto* own = static_cast<std::byte*>(scratch) + thread * thread_bytes();
      for (std::int64_t row = share(rows, thread, team); row < share(rows, thread + 1, team); ++row) {
        make_row(src, dst, row, own);
        if (row % to.h == 0) poll(context, thread);
      }
    });
  }

 private:
  static constexpr std::int64_t line = 64;

  [[nodiscard]] std::int64_t term_bytes() const {
    return (terms_ * static_cast<std::int64_t>(sizeof(Term)) + line - 1) / line * line;
  }
  [[nodiscard]] std::int64_t thread_bytes() const {
    return term_bytes() + (row_items_ * static_cast<std::int64_t>(sizeof(float)) + line - 1) / line * line;
  }

  void make_row(const float* src, float* dst, std::int64_t row, std::byte* scratch) const {
    const tensor::Shape& to = task_.dst.extents;
    const std::int64_t h = row % to.h, d = row / to.h % to.d, n = row / to.h / to.d;
    auto* terms = reinterpret_cast<Term*>(scratch);
    auto* sum = reinterpret_cast<float*>(scratch + term_bytes());
    const std::int64_t count = find_terms(src + n * task_.src.strides.n, d, h, terms);
    float* out = dst + n * task_.dst.strides.n + d * task_.dst.strides.d + h * task_.dst.strides.h;
    if (count == 0) return zero_row(out);
    if (count == 1 && terms[0].weight == 1) return make_cells(terms[0].src, task_.src.strides.w, out);
    combine_rows(terms, count, sum);
    make_cells(sum, task_.src.extents.c, out);
  }

  /// The rows of src that a row of dst reads.
  std::int64_t find_terms(const float* sample, std::int64_t d, std::int64_t h, Term* terms) const {
    const Axis& depth = task_.axes[0];
    const Axis& height = task_.axes[1];
    std::int64_t count = 0;
    for (auto i = entry(depth, d); i < entry(depth, d + 1); ++i) {
      for (auto j = entry(height, h); j < entry(height, h + 1); ++j) {
        terms[count++] = {.src = sample + depth.cell[i] * task_.src.strides.d + height.cell[j] * task_.src.strides.h,
                          .weight = depth.weight[i] * height.weight[j]};
      }
    }
    return count;
  }

  static std::size_t entry(const Axis& axis, std::int64_t cell) {
    return static_cast<std::size_t>(axis.begin[static_cast<std::size_t>(cell)]);
  }

  void combine_rows(Term* terms, std::int64_t count, float* sum) const {
    const tensor::Shape& from = task_.src.extents;
    if (task_.src.strides.w == from.c) {
      HWY_DYNAMIC_DISPATCH(combine_items)(terms, count, sum, row_items_);
      return;
    }
    for (std::int64_t w = 0; w < from.w; ++w) {
      HWY_DYNAMIC_DISPATCH(combine_items)(terms, count, sum + w * from.c, from.c);
      for (std::int64_t k = 0; k < count; ++k) terms[k].src += task_.src.strides.w;
    }
  }

  void zero_row(float* dst) const {
    for (std::int64_t w = 0; w < task_.dst.extents.w; ++w)
      std::fill_n(dst + w * task_.dst.strides.w, task_.dst.extents.c, 0.0F);
  }

  void make_cells(const float* src, std::int64_t src_step, float* dst) const {
    const Axis& width = task_.axes[2];
    const std::int64_t channels = task_.dst.extents.c, dst_step = task_.dst.strides.w;
    for (const Run& run : runs_) {
      if (run.is_copy && src_step == channels && dst_step == channels) {
        std::copy_n(src + run.src * src_step, run.count * channels, dst + run.dst * dst_step);
        continue;
      }
      HWY_DYNAMIC_DISPATCH(combine_cells)
      ({.runs = &run,
        .run_count = 1,
        .begin = width.begin.data(),
        .cell = width.cell.data(),
        .weight = width.weight.data(),
        .src = src,
        .dst = dst,
        .src_step = src_step,
        .dst_step = dst_step,
        .channels = channels});
    }
  }

  model::RemapTask task_;
  std::vector<Run> runs_;
  std::int64_t terms_, row_items_;
  int team_;
};

}  // namespace

std::unique_ptr<Primitive> make_remap(const model::RemapTask& task, int threads) {
  return std::make_unique<Remap>(task, threads);
}

}  // namespace orthant::kernels::remap
#endif
