#include "orthant/kernels/elementwise/copy.hpp"

#include "orthant/kernels/factories.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/simd.hpp"
#include "orthant/kernels/team.hpp"

#undef HWY_TARGET_INCLUDE
#define HWY_TARGET_INCLUDE "orthant/kernels/elementwise/copy.cpp"
#include <hwy/foreach_target.h>
#include <hwy/highway.h>

#include "orthant/kernels/lanes_inl.hpp"

HWY_BEFORE_NAMESPACE();
namespace orthant::kernels::elementwise::HWY_NAMESPACE {
using namespace kernels::HWY_NAMESPACE;
namespace {

void copy_line(const CopyLine& args, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* src = args.src + p * args.src_stride;
    float* dst = args.dst + p * args.dst_stride;
    if (args.accumulate) {
      for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto sum = hn::MulAdd(hn::LoadU(d, src + i), hn::Set(d, args.factor), hn::LoadU(d, dst + i));
        hn::StoreU(sum, d, dst + i);
      });
    } else if (args.offset != 0) {
      for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
        const auto sum = hn::MulAdd(hn::LoadU(d, src + i), hn::Set(d, args.factor), hn::Set(d, args.offset));
        hn::StoreU(sum, d, dst + i);
      });
    } else {
      for_lanes(channels, [&](auto d, std::int64_t i) HWY_ATTR {
        hn::StoreU(hn::Mul(hn::LoadU(d, src + i), hn::Set(d, args.factor)), d, dst + i);
      });
    }
  }
}

void add_line(const AddLine& args, std::int64_t pixels, std::int64_t channels) {
  for (std::int64_t p = 0; p < pixels; ++p) {
    const float* a = args.a + p * args.a_stride;
    const float* b = args.b + p * args.b_stride;
    float* dst = args.dst + p * args.dst_stride;
    for_lanes(channels, [&](auto d, std::int64_t i)
                            HWY_ATTR { hn::StoreU(hn::Add(hn::LoadU(d, a + i), hn::LoadU(d, b + i)), d, dst + i); });
  }
}

}  // namespace
}  // namespace orthant::kernels::elementwise::HWY_NAMESPACE
HWY_AFTER_NAMESPACE();

#if HWY_ONCE
namespace orthant::kernels::elementwise {
namespace {

HWY_EXPORT(copy_line);
HWY_EXPORT(add_line);

/// Copy where channels are contiguous on both sides.
class LineCopy final : public Primitive {
 public:
  LineCopy(const model::CopyTask& task, int threads)
      : task_(task), lines_({&task.src, &task.dst}), team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:copy:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    const auto* src = static_cast<const float*>(arguments[at::copy::src]);
    auto* dst = static_cast<float*>(arguments[at::copy::dst]);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const CopyLine args{.factor = static_cast<float>(task_.factor),
                            .offset = static_cast<float>(task_.offset),
                            .accumulate = task_.accumulate,
                            .src = src + line.offsets[0],
                            .dst = dst + line.offsets[1],
                            .src_stride = line.strides[0],
                            .dst_stride = line.strides[1]};
        HWY_DYNAMIC_DISPATCH(copy_line)(args, line.pixels, line.channels);
      });
    });
  }

 private:
  model::CopyTask task_;
  Lines lines_;
  int team_;
};

class AddPrimitive final : public Primitive {
 public:
  AddPrimitive(const model::AddTask& task, int threads)
      : lines_({&task.a, &task.b, &task.dst}), team_(team_for(lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:add:" + simd_target(); }

  void execute(const Context&, std::span<void* const> arguments, void*) override {
    const auto* a = static_cast<const float*>(arguments[at::add::a]);
    const auto* b = static_cast<const float*>(arguments[at::add::b]);
    auto* dst = static_cast<float*>(arguments[at::add::dst]);
    run_team(team_, [&](int thread, int team) {
      lines_.visit_part(thread, team, rows_per_call, [&](const Line& line) {
        const AddLine args{.a = a + line.offsets[0],
                           .b = b + line.offsets[1],
                           .dst = dst + line.offsets[2],
                           .a_stride = line.strides[0],
                           .b_stride = line.strides[1],
                           .dst_stride = line.strides[2]};
        HWY_DYNAMIC_DISPATCH(add_line)(args, line.pixels, line.channels);
      });
    });
  }

 private:
  Lines lines_;
  int team_;
};

bool has_contiguous_channels(const tensor::Layout& layout) { return layout.extents.c <= 1 || layout.strides.c == 1; }

}  // namespace

std::unique_ptr<Primitive> make_copy(const model::CopyTask& task, int threads) {
  if (has_contiguous_channels(task.src) && has_contiguous_channels(task.dst)) {
    return std::make_unique<LineCopy>(task, threads);
  }
  return make_permuting_copy(task, threads);
}

std::unique_ptr<Primitive> make_add(const model::AddTask& task, int threads) {
  return std::make_unique<AddPrimitive>(task, threads);
}

}  // namespace orthant::kernels::elementwise
#endif
