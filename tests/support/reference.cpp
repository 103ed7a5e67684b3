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
      const double slope = slope_from(task.activation, before[2].empty() ? 0 : before[2].at(item(y_layout(task), i)));
      now[3]->at(item(task.src, i)) = (before[0].at(item(task.dst, i)) + second) * slope;
    }
  });
}

/// The item of a factor of a product that belongs to item `i` of the other.
std::size_t factor_item(const tensor::Layout& factor, Shape i) {
  for (const tensor::Dim dim : tensor::all_dims) {
    if (factor.extents[dim] == 1) i[dim] = 0;
  }
  return item(factor, i);
}

void define(const model::ProductTask& task, const Before& before, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) {
    const double bias = before[2].empty() ? 0 : before[2].at(static_cast<std::size_t>(i.c));
    now[3]->at(item(task.dst, i)) = before[0].at(item(task.a, i)) * before[1].at(factor_item(task.b, i)) + bias;
  });
}

void define(const model::ProductSumsTask& task, const Before& before, Arguments now) {
  if (!task.accumulate) for_each_item(task.dst.extents, [&](const Shape& i) { now[2]->at(item(task.dst, i)) = 0; });
  for_each_item(task.a.extents, [&](const Shape& i) {
    now[2]->at(factor_item(task.dst, i)) += before[0].at(item(task.a, i)) * before[1].at(item(task.b, i));
  });
}

void define(const model::PReluTask& task, const Before& before, Arguments now) {
  const auto weight_of = [&](const Shape& i) { return static_cast<std::size_t>(task.shared ? 0 : i.c); };
  if (task.pass == Pass::forward) {
    for_each_item(task.src.extents, [&](const Shape& i) {
      const double z = before[0].at(item(task.src, i));
      now[2]->at(item(task.dst, i)) = z > 0 ? z : z * before[1].at(weight_of(i));
    });
    return;
  }
  if (!task.accumulate) std::fill(now[4]->begin(), now[4]->end(), 0.0);
  for_each_item(task.src.extents, [&](const Shape& i) {
    const double z = before[1].at(item(task.src, i)), g = before[0].at(item(task.dst, i));
    now[3]->at(item(given_or(task.diff_src, task.src), i)) = z > 0 ? g : g * before[2].at(weight_of(i));
    if (!(z > 0)) now[4]->at(weight_of(i)) += g * z;
  });
}

/// Calls visit(src position, weight) for all that a cell of dst reads.
template <class Visit>
void for_each_term(const model::RemapTask& task, const Shape& i, Visit visit) {
  const auto entries = [&](std::size_t axis, std::int64_t cell, auto each) {
    const model::RemapTask::Axis& along = task.axes[axis];
    for (auto k = static_cast<std::size_t>(along.begin.at(static_cast<std::size_t>(cell)));
         k < static_cast<std::size_t>(along.begin.at(static_cast<std::size_t>(cell) + 1)); ++k) {
      each(std::int64_t{along.cell[k]}, static_cast<double>(along.weight[k]));
    }
  };
  Shape src = i;
  entries(0, i.d, [&](std::int64_t d, double by_d) {
    entries(1, i.h, [&](std::int64_t h, double by_h) {
      entries(2, i.w, [&](std::int64_t w, double by_w) {
        src.d = d;
        src.h = h;
        src.w = w;
        visit(src, by_d * by_h * by_w);
      });
    });
  });
}

void define(const model::RemapTask& task, const Before& before, Arguments now) {
  for_each_item(task.dst.extents, [&](const Shape& i) {
    double sum = 0;
    for_each_term(task, i, [&](const Shape& src, double weight) { sum += weight * before[0].at(item(task.src, src)); });
    now[1]->at(item(task.dst, i)) = sum;
  });
}

/// Where in the whole tensor a cell of src lies, w fastest.
std::int64_t place_of(const model::PeaksTask& task, const Shape& i) {
  std::int64_t place = 0;
  for (const tensor::Dim dim : tensor::spatial_dims)
    place = place * task.global_src[dim] + i[dim] + task.first_src[dim];
  return place;
}

void define(const model::PeaksTask& task, const Before& before, Arguments now) {
  for_each_item({task.src.extents.n, task.src.extents.c, 1, 1, 1}, [&](const Shape& peak) {
    const auto number = [&](const tensor::Layout& layout, std::int64_t w) {
      return item(layout, {peak.n, peak.c, 0, 0, w});
    };
    double largest = -INFINITY;
    for_each_item(task.src.extents, [&](const Shape& i) {
      if (i.n != peak.n || i.c != peak.c) return;
      if (task.pass != Pass::forward) {
        const auto place = static_cast<double>(place_of(task, i));
        const bool is_peak = place == before[1].at(number(task.dst, 1)) +
                                          before[1].at(number(task.dst, 2)) * static_cast<double>(model::peak_places);
        now[2]->at(item(task.src, i)) = is_peak ? before[0].at(number(given_or(task.diff_dst, task.dst), 0)) : 0;
        return;
      }
      const double value = before[0].at(item(task.src, i));
      if (value <= largest) return;
      largest = value;
      now[1]->at(number(task.dst, 0)) = value;
      now[1]->at(number(task.dst, 1)) = static_cast<double>(place_of(task, i) % model::peak_places);
      now[1]->at(number(task.dst, 2)) = static_cast<double>(place_of(task, i) / model::peak_places);
    });
  });
}

void define(const model::HighestPeakTask& task, const Before& before, Arguments now) {
  const std::size_t src = task.pass == Pass::forward ? 0 : 1;
  const tensor::Layout& diff_src = given_or(task.diff_src, task.src);
  for_each_item(task.dst.extents, [&](const Shape& i) {
    Shape best;
    std::pair<double, double> most{-INFINITY, 0};  // the item, and minus its place
    for_each_item({1, 1, task.src.extents.d, task.src.extents.h, task.src.extents.w}, [&](Shape at) {
      at.n = i.n;
      at.c = i.c;
      if (task.pass != Pass::forward) now[2]->at(item(diff_src, at)) = 0;
      if (at.w % model::peak_numbers != 0) return;
      Shape place = at, high = at;
      place.w += 1;
      high.w += 2;
      const std::pair<double, double> found{
          before[src].at(item(task.src, at)),
          -before[src].at(item(task.src, place)) -
              before[src].at(item(task.src, high)) * static_cast<double>(model::peak_places)};
      if (found <= most) return;
      most = found;
      best = at;
    });
    if (task.pass == Pass::forward) {
      now[1]->at(item(task.dst, i)) = most.first;
    } else {
      now[2]->at(item(diff_src, best)) = before[0].at(item(task.dst, i));
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
    now[1]->at(item(task.dst, i)) = old + task.factor * before[0].at(item(task.src, i)) + task.offset;
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

double slope_from(const model::Activation& activation, double value) {
  const auto logistic = [](double z) { return 1 / (1 + std::exp(-z)); };
  constexpr double pi = 3.14159265358979323846;
  switch (activation.kind) {
    case ActivationKind::silu: return logistic(value) * (1 + value * (1 - logistic(value)));
    case ActivationKind::gelu:
      return 0.5 * (1 + std::erf(value / std::sqrt(2))) + value * std::exp(-value * value / 2) / std::sqrt(2 * pi);
    case ActivationKind::hard_swish: return value < -3 ? 0 : value > 3 ? 1 : value / 3 + 0.5;
    default: return slope_at(activation, value);
  }
}

double slope_before(const model::Activation& activation, double z) {
  return slope_from(activation, model::derivative_reads_src(activation.kind) ? z : activate(activation, z));
}

double activate(const model::Activation& activation, double z) {
  switch (activation.kind) {
    case ActivationKind::identity: break;
    case ActivationKind::relu: return z > 0 ? z : 0;
    case ActivationKind::leaky_relu: return z > 0 ? z : activation.slope * z;
    case ActivationKind::tanh: return std::tanh(z);
    case ActivationKind::sigmoid: return 1 / (1 + std::exp(-z));
    case ActivationKind::relu6: return std::min(std::max(z, 0.0), 6.0);
    case ActivationKind::hard_sigmoid: return std::min(std::max(z + 3, 0.0), 6.0) / 6;
    case ActivationKind::elu: return z > 0 ? z : activation.slope * std::expm1(z);
    case ActivationKind::silu: return z / (1 + std::exp(-z));
    case ActivationKind::gelu: return 0.5 * z * (1 + std::erf(z / std::sqrt(2)));
    case ActivationKind::hard_swish: return z * std::min(std::max(z + 3, 0.0), 6.0) / 6;
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
    case ActivationKind::relu6: return y > 0 && y < 6 ? 1 : 0;
    case ActivationKind::hard_sigmoid: return y > 0 && y < 1 ? 1.0 / 6 : 0;
    case ActivationKind::elu: return y > 0 ? 1 : y + activation.slope;
    case ActivationKind::silu:
    case ActivationKind::gelu:
    case ActivationKind::hard_swish: break;  // only from what goes in: slope_from()
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
