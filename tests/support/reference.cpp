#include "tests/support/reference.hpp"

#include "orthant/kernels/elementwise/dropout.hpp"
#include "tests/support/definitions.hpp"
#include "tests/support/task_layouts.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::test {
namespace {

using model::ActivationKind;
using model::Pass;
using tensor::Shape;

void define(const model::ActivationTask& task, const Before& before, Arguments now) {
  const bool has_second = !before[1].empty();
  for_each_item(task.dst.extents, [&](const Shape& i) {
    if (task.pass == Pass::forward) {
      const double bias = has_second ? before[1].at(static_cast<std::size_t>(i.c)) : 0;
      now[2]->at(item(task.dst, i)) = activate(task.activation, before[0].at(item(task.src, i)) + bias);
    } else {
      const double second = has_second ? before[1].at(item(task.second, i)) : 0;
      const double slope = slope_at(task.activation, before[2].empty() ? 0 : before[2].at(item(y_layout(task), i)));
      now[3]->at(item(task.src, i)) = (before[0].at(item(task.dst, i)) + second) * slope;
    }
  });
}

void define(const model::SoftmaxTask& task, const Before& before, Arguments now) {
  for_each_pixel(task.dst.extents, [&](Shape i) {
    double largest = -INFINITY, sum = 0, product = 0;
    for (i.c = 0; i.c < task.dst.extents.c; ++i.c) {
      if (task.pass == Pass::forward) largest = std::max(largest, before[0].at(item(task.src, i)));
      if (task.pass == Pass::backward_data)
        product += before[0].at(item(diff_dst_layout(task), i)) * before[1].at(item(task.dst, i));
    }
    for (i.c = 0; task.pass == Pass::forward && i.c < task.dst.extents.c; ++i.c) {
      sum += std::exp(before[0].at(item(task.src, i)) - largest);
    }
    for (i.c = 0; i.c < task.dst.extents.c; ++i.c) {
      if (task.pass == Pass::forward) {
        now[1]->at(item(task.dst, i)) = std::exp(before[0].at(item(task.src, i)) - largest) / sum;
      } else {
        now[2]->at(item(task.src, i)) =
            before[1].at(item(task.dst, i)) * (before[0].at(item(diff_dst_layout(task), i)) - product);
      }
    }
  });
}

void define(const model::CopyTask& task, const Before& before, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) {
    const double old = task.accumulate ? before[1].at(item(task.dst, i)) : 0;
    now[1]->at(item(task.dst, i)) = old + task.factor * before[0].at(item(task.src, i));
  });
}

void define(const model::CopyPiecesTask& task, const Before& before, Arguments now) {
  for (const auto& [src, dst] : task.pieces) {
    for_each_item(dst.extents, [&, &src = src, &dst = dst](const Shape& i) {
      double& target = now[1]->at(item(dst, i));
      target = (task.accumulate ? target : 0) + before[0].at(item(src, i));
    });
  }
}

void define(const model::FillTask& task, const Before&, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) { now[0]->at(item(task.dst, i)) = 0; });
}

void define(const model::AddTask& task, const Before& before, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) {
    now[2]->at(item(task.dst, i)) = before[0].at(item(task.a, i)) + before[1].at(item(task.b, i));
  });
}

void define(const model::BiasGradientTask& task, const Before& before, Arguments now) {
  if (!task.accumulate) std::fill_n(now[1]->begin(), task.dst.extents.c, 0.0);
  for_each_item(task.dst.extents,
                [&](const Shape& i) { now[1]->at(static_cast<std::size_t>(i.c)) += before[0].at(item(task.dst, i)); });
}

void define(const model::DropoutTask& task, const kernels::Context& context, const Before& before, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) {
    Shape position;
    for (const tensor::Dim dim : tensor::all_dims) position[dim] = task.box.lo[dim] + i[dim];
    const bool kept = kernels::elementwise::dropout_keeps(task, context, position);
    now[1]->at(item(task.dst, i)) = kept ? before[0].at(item(task.src, i)) / (1 - task.rate) : 0;
  });
}

}  // namespace

double activate(const model::Activation& activation, double z) {
  switch (activation.kind) {
    case ActivationKind::identity: break;
    case ActivationKind::relu: return z > 0 ? z : 0;
    case ActivationKind::leaky_relu: return z > 0 ? z : activation.slope * z;
    case ActivationKind::tanh: return std::tanh(z);
    case ActivationKind::sigmoid: return 1 / (1 + std::exp(-z));
  }
  return z;
}

double slope_at(const model::Activation& activation, double y) {
  switch (activation.kind) {
    case ActivationKind::identity: break;
    case ActivationKind::relu: return y > 0 ? 1 : 0;
    case ActivationKind::leaky_relu: return y > 0 ? 1 : activation.slope;
    case ActivationKind::tanh: return 1 - y * y;
    case ActivationKind::sigmoid: return y * (1 - y);
  }
  return 1;
}

void execute_reference(const model::Task& task, const kernels::Context& context, Arguments arguments) {
  Before before;
  for (const Numbers* argument : arguments) before.push_back(argument ? *argument : Numbers{});
  const auto run = [&]<class T>(const T& one) {
    if constexpr (std::is_same_v<T, model::DropoutTask> || std::is_same_v<T, model::UpdateTask>) {
      define(one, context, before, arguments);
    } else {
      define(one, before, arguments);
    }
  };
  std::visit(run, task);
}

}  // namespace orthant::test
