#include "orthant/base/error.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/loss/loss.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::kernels::loss {
namespace {

using model::LossKind;

/// The pixels of output and labels: the labels' extents are the output's, so that channels are never read.
Lines lines_of(const tensor::Layout& output) {
  tensor::Shape one = output.extents;
  one.c = 1;
  tensor::Layout labels = tensor::channels_last(one);
  labels.extents.c = output.extents.c;
  return {&output, &labels};
}

/// p = softmax(row); returns log(sum of exp(row)).
double softmax(const float* row, std::int64_t classes, double* p) {
  double largest = static_cast<double>(row[0]), sum = 0;
  for (std::int64_t c = 1; c < classes; ++c) largest = std::max(largest, static_cast<double>(row[c]));
  for (std::int64_t c = 0; c < classes; ++c) sum += p[c] = std::exp(static_cast<double>(row[c]) - largest);
  for (std::int64_t c = 0; c < classes; ++c) p[c] /= sum;
  return largest + std::log(sum);
}

/// Calls visit(item of output, label) for the pixels of one thread.
template <class Visit>
void for_each_label(const Lines& lines, const void* labels, int thread, int team, Visit visit) {
  const std::int64_t begin = share(lines.pixels(), thread, team), end = share(lines.pixels(), thread + 1, team);
  lines.visit(begin, end, [&](const Line& line) {
    for (std::int64_t i = 0; i < line.pixels; ++i) {
      visit(line.offsets[0] + i * line.strides[0],
            static_cast<const std::int32_t*>(labels)[line.offsets[1] + i * line.strides[1]]);
    }
  });
}

/// Computed in double, like everything that follows: this is cheap, since outputs are small compared with the
/// activations before them.
class LabelLossSums final : public Primitive {
 public:
  LabelLossSums(const model::LossSumsTask& task, int threads)
      : loss_(task.loss),
        classes_(task.output.extents.c),
        lines_(lines_of(task.output)),
        team_(team_for(64 * lines_.items(), threads)) {}

  [[nodiscard]] std::string name() const override { return "orthant:loss_sums:scalar"; }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return static_cast<std::int64_t>(sizeof(double)) * doubles() * team_;
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* memory = static_cast<double*>(scratch);
    std::fill_n(memory, doubles() * team_, 0.0);
    const auto* output = static_cast<const float*>(arguments[at::loss_sums::output]);
    run_team(team_, [&](int thread, int team) {
      const ThreadSums sums = sums_of(memory, thread);
      for_each_label(lines_, arguments[at::loss_sums::target], thread, team,
                     [&](std::int64_t at, std::int32_t label) { add(output + at, label, sums); });
    });
    for (int thread = 0; thread < team_; ++thread) check(sums_of(memory, thread));
    for (int thread = 1; thread < team_; ++thread) {
      for (std::int64_t i = 0; i < 1 + 3 * classes_; ++i) memory[i] += memory[doubles() * thread + i];
    }
    auto* sums = static_cast<double*>(arguments[at::loss_sums::sums]);
    for (const model::LossTerm& term : loss_.terms) {
      const bool dice = term.kind == LossKind::soft_dice;
      sums = std::copy_n(memory + (dice ? 1 : 0), dice ? 3 * classes_ : 1, sums);
    }
  }

 private:
  struct ThreadSums {
    double* log_likelihood;  ///< sum of -log p of the labels
    double* both;            ///< per class: sum of p t
    double* p;               ///< per class: sum of p
    double* t;               ///< per class: sum of t
    double* bad;             ///< 1 if a label was not a class, followed by that label
    double* pixel;           ///< probabilities of one pixel
  };

  [[nodiscard]] std::int64_t doubles() const { return (3 + 4 * classes_ + 7) / 8 * 8; }

  [[nodiscard]] ThreadSums sums_of(double* memory, int thread) const {
    double* mine = memory + doubles() * thread;
    double* after = mine + 1 + 3 * classes_;
    return {.log_likelihood = mine,
            .both = mine + 1,
            .p = mine + 1 + classes_,
            .t = mine + 1 + 2 * classes_,
            .bad = after,
            .pixel = after + 2};
  }

  void add(const float* row, std::int32_t label, const ThreadSums& sums) const {
    if (label < 0 || label >= classes_) {
      sums.bad[0] = 1;
      sums.bad[1] = label;
      return;
    }
    *sums.log_likelihood += softmax(row, classes_, sums.pixel) - static_cast<double>(row[label]);
    for (std::int64_t c = 0; c < classes_; ++c) sums.p[c] += sums.pixel[c];
    sums.t[label] += 1;
    sums.both[label] += sums.pixel[label];
  }

  void check(const ThreadSums& sums) const {
    if (sums.bad[0] == 0) return;
    base::fail(base::Exit::bad_data,
               "the target has label {}, but the network has {} classes (0 to {}); check the data",
               static_cast<std::int64_t>(sums.bad[1]), classes_, classes_ - 1);
  }

  model::Loss loss_;
  std::int64_t classes_;
  Lines lines_;
  int team_;
};

/// Cross-entropy and soft Dice.
class LabelLoss final : public Primitive {
 public:
  LabelLoss(const model::LossTask& task, int threads)
      : loss_(task.loss),
        classes_(task.output.extents.c),
        lines_(lines_of(task.output)),
        team_(team_for(64 * lines_.items(), threads)),
        inverse_count_(1 / static_cast<double>(tensor::pixels(task.global))),
        entropy_weight_(weight_of(loss_, LossKind::cross_entropy) * inverse_count_),
        dice_weight_(weight_of(loss_, LossKind::soft_dice)) {}

  [[nodiscard]] std::string name() const override { return "orthant:loss:scalar"; }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return static_cast<std::int64_t>(sizeof(double)) * (2 * classes_ + padded_classes() * team_);
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* memory = static_cast<double*>(scratch);
    const Slopes slopes{.hit = memory, .base = memory + classes_};
    report(static_cast<const double*>(arguments[at::loss::sums]), slopes,
           static_cast<double*>(arguments[at::loss::loss]));
    if (!arguments[at::loss::diff_output]) return;
    const auto* output = static_cast<const float*>(arguments[at::loss::output]);
    auto* diff_output = static_cast<float*>(arguments[at::loss::diff_output]);
    run_team(team_, [&](int thread, int team) {
      double* p = memory + 2 * classes_ + padded_classes() * thread;
      for_each_label(lines_, arguments[at::loss::target], thread, team, [&](std::int64_t at, std::int32_t label) {
        softmax(output + at, classes_, p);
        differentiate(p, label, slopes, diff_output + at);
      });
    });
  }

 private:
  /// d loss / d p of class c is base[c] - (label == c) * hit[c]: that of soft Dice.
  struct Slopes {
    double* hit;
    double* base;
  };

  [[nodiscard]] std::int64_t padded_classes() const { return (classes_ + 7) / 8 * 8; }

  void differentiate(const double* p, std::int32_t label, const Slopes& slopes, float* diff) const {
    double mean_slope = -p[label] * slopes.hit[label];
    for (std::int64_t c = 0; c < classes_; ++c) mean_slope += p[c] * slopes.base[c];
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double wanted = c == label ? 1 : 0;
      const double dice = p[c] * (slopes.base[c] - wanted * slopes.hit[c] - mean_slope);
      diff[c] = static_cast<float>(entropy_weight_ * (p[c] - wanted) + dice);
    }
  }

  /// The losses, and the slopes of soft Dice with its weight.
  void report(const double* sums, const Slopes& slopes, double* losses) const {
    double by_kind[4] = {};
    std::fill_n(slopes.hit, 2 * classes_, 0.0);
    for (const model::LossTerm& term : loss_.terms) {
      double& value = by_kind[static_cast<int>(term.kind)];
      if (term.kind == LossKind::soft_dice) {
        value = soft_dice(sums, slopes);
        sums += 3 * classes_;
      } else {
        value = *sums++ * inverse_count_;
      }
    }
    write_losses(loss_, by_kind, losses);
  }

  [[nodiscard]] double soft_dice(const double* sums, const Slopes& slopes) const {
    const auto classes = static_cast<double>(classes_);
    double dice = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      const double numerator = 2 * sums[c] + soft_dice_smoothing;
      const double denominator = sums[classes_ + c] + sums[2 * classes_ + c] + soft_dice_smoothing;
      dice += numerator / denominator / classes;
      slopes.hit[c] = dice_weight_ / classes * 2 / denominator;
      slopes.base[c] = dice_weight_ / classes * numerator / (denominator * denominator);
    }
    return 1 - dice;
  }

  model::Loss loss_;
  std::int64_t classes_;
  Lines lines_;
  int team_;
  double inverse_count_, entropy_weight_, dice_weight_;
};

}  // namespace

std::unique_ptr<Primitive> make_label_loss_sums(const model::LossSumsTask& task, int threads) {
  return std::make_unique<LabelLossSums>(task, threads);
}

std::unique_ptr<Primitive> make_label_loss(const model::LossTask& task, int threads) {
  return std::make_unique<LabelLoss>(task, threads);
}

}  // namespace orthant::kernels::loss
