#include "orthant/base/error.hpp"
#include "orthant/kernels/elementwise/copy.hpp"
#include "orthant/kernels/team.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace orthant::kernels::elementwise {
namespace {

struct Axis {
  std::int64_t extent = 1, src_stride = 0, dst_stride = 0;
};

/// Dims with more than one item, from the largest stride of dst to the smallest, merged where both sides allow.
std::vector<Axis> merged_axes(const model::CopyTask& task) {
  std::vector<Axis> axes;
  for (const tensor::Dim dim : tensor::all_dims) {
    if (task.dst.extents[dim] != 1)
      axes.push_back({task.dst.extents[dim], task.src.strides[dim], task.dst.strides[dim]});
  }
  std::stable_sort(axes.begin(), axes.end(), [](const Axis& a, const Axis& b) { return a.dst_stride > b.dst_stride; });
  std::vector<Axis> merged;
  for (const Axis& axis : axes) {
    const bool fits = !merged.empty() && merged.back().src_stride == axis.src_stride * axis.extent &&
                      merged.back().dst_stride == axis.dst_stride * axis.extent;
    if (fits) {
      merged.back() = {merged.back().extent * axis.extent, axis.src_stride, axis.dst_stride};
    } else {
      merged.push_back(axis);
    }
  }
  return merged;
}

/// Copies tiles of two axes, the fastest of dst and the fastest of src, so that both sides stay in cache.
class PermutingCopy final : public Primitive {
 public:
  PermutingCopy(const model::CopyTask& task, int threads)
      : task_(task), team_(team_for(tensor::volume(task.dst.extents), threads)) {
    if (task.src.extents != task.dst.extents) {
      base::fail(base::Exit::internal, "a copy from {} to {} is not possible; both must have the same shape",
                 tensor::to_text(task.src.extents), tensor::to_text(task.dst.extents));
    }
    outer_ = merged_axes(task);
    columns_ = take_smallest([](const Axis& axis) { return axis.dst_stride; });
    rows_ = take_smallest([](const Axis& axis) { return axis.src_stride; });
    for (const Axis& axis : outer_) planes_ *= axis.extent;
  }

  [[nodiscard]] std::string name() const override { return "orthant:permute:scalar"; }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    const float* src = static_cast<const float*>(arguments[at::copy::src]) + task_.src.offset;
    float* dst = static_cast<float*>(arguments[at::copy::dst]) + task_.dst.offset;
    const std::int64_t tiles_down = (rows_.extent + tile - 1) / tile;
    const std::int64_t jobs = planes_ * tiles_down;
    run_team(team_, [&](int thread, int team) {
      for (std::int64_t job = share(jobs, thread, team); job < share(jobs, thread + 1, team); ++job) {
        std::int64_t src_at = 0, dst_at = 0, rest = job / tiles_down;
        for (auto axis = outer_.rbegin(); axis != outer_.rend(); ++axis) {
          src_at += rest % axis->extent * axis->src_stride;
          dst_at += rest % axis->extent * axis->dst_stride;
          rest /= axis->extent;
        }
        copy_band(src + src_at, dst + dst_at, job % tiles_down * tile);
      }
    });
  }

 private:
  static constexpr std::int64_t tile = 16;

  template <class Stride>
  Axis take_smallest(Stride stride) {
    if (outer_.empty()) return {};
    const auto found = std::min_element(outer_.begin(), outer_.end(),
                                        [&](const Axis& a, const Axis& b) { return stride(a) < stride(b); });
    const Axis axis = *found;
    outer_.erase(found);
    return axis;
  }

  /// `tile` rows from `first` on, all columns.
  void copy_band(const float* src, float* dst, std::int64_t first) const {
    const std::int64_t last = std::min(first + tile, rows_.extent);
    for (std::int64_t column = 0; column < columns_.extent; column += tile) {
      const std::int64_t end = std::min(column + tile, columns_.extent);
      for (std::int64_t r = first; r < last; ++r) {
        const float* from = src + r * rows_.src_stride;
        float* to = dst + r * rows_.dst_stride;
        for (std::int64_t c = column; c < end; ++c) {
          float value = static_cast<float>(task_.factor) * from[c * columns_.src_stride];
          if (task_.offset != 0) value += static_cast<float>(task_.offset);
          float& item = to[c * columns_.dst_stride];
          item = task_.accumulate ? item + value : value;
        }
      }
    }
  }

  model::CopyTask task_;
  int team_;
  std::vector<Axis> outer_;
  Axis rows_, columns_;
  std::int64_t planes_ = 1;
};

}  // namespace

std::unique_ptr<Primitive> make_permuting_copy(const model::CopyTask& task, int threads) {
  return std::make_unique<PermutingCopy>(task, threads);
}

}  // namespace orthant::kernels::elementwise
