#include "orthant/base/error.hpp"
#include "orthant/kernels/lines.hpp"
#include "orthant/kernels/loss.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::kernels {
namespace {

using model::LossKind;

/// What one thread knows; in scratch memory, `doubles` items each.
struct ThreadSums {
  double* log_likelihood;  ///< sum of -log p of the labels
  double* bad_label;       ///< a label that is no class, or -0.5
  double* both;            ///< per class: sum of p t
  double* total;           ///< per class: sum of p + t
  double* p;               ///< probabilities of one pixel
};

/// Cross-entropy and soft Dice, in double: soft Dice needs its sums before its gradient, so two passes over the output;
/// cross-entropy alone needs one.
class LabelLoss final : public Primitive {
 public:
  LabelLoss(const model::LossTask& task, int threads)
      : loss_(task.loss),
        classes_(task.output.extents.c),
        labels_(label_layout(task)),
        lines_({&task.output, &labels_}),
        team_(team_for(64 * lines_.items(), threads)),
        inverse_count_(1 / static_cast<double>(tensor::pixels(task.global))),
        entropy_weight_(weight_of(loss_, LossKind::cross_entropy) * inverse_count_),
        dice_weight_(weight_of(loss_, LossKind::soft_dice)) {}

  [[nodiscard]] std::string name() const override { return "orthant:loss:scalar"; }
  [[nodiscard]] std::int64_t scratch_bytes() const override {
    return static_cast<std::int64_t>(sizeof(double)) * (doubles() * team_ + 2 * classes_);
  }

  void execute(const Context&, std::span<void* const> arguments, void* scratch) override {
    auto* memory = static_cast<double*>(scratch);
    std::fill_n(memory, doubles() * team_, 0.0);
    run_team(team_, [&](int thread, int team) {
      const ThreadSums sums = sums_of(memory, thread);
      *sums.bad_label = no_label;
      visit(thread, team, [&](const Line& line) { sum_line(line, arguments, sums); });
    });
    for (int thread = 0; thread < team_; ++thread) check(*sums_of(memory, thread).bad_label);
    Slopes slopes{.hit = memory + doubles() * team_, .base = memory + doubles() * team_ + classes_};
    report(memory, slopes, static_cast<double*>(arguments[3]));
    if (!arguments[2] || is_single_pass()) return;
    run_team(team_, [&](int thread, int team) {
      const ThreadSums sums = sums_of(memory, thread);
      visit(thread, team, [&](const Line& line) { differentiate_line(line, arguments, sums, slopes); });
    });
  }

 private:
  static constexpr double no_label = -0.5;

  /// d loss / d p of class c is base[c] - (label == c) * hit[c]: that of soft Dice.
  struct Slopes {
    double* hit;
    double* base;
  };

  /// One label per pixel, walked beside the output: extents are the output's, so its channels are never read.
  static tensor::Layout label_layout(const model::LossTask& task) {
    tensor::Shape one = task.output.extents;
    one.c = 1;
    tensor::Layout layout = tensor::channels_last(one);
    layout.extents.c = task.output.extents.c;
    return layout;
  }

  [[nodiscard]] bool is_single_pass() const { return dice_weight_ == 0; }

  [[nodiscard]] std::int64_t doubles() const { return (2 + 3 * classes_ + 7) / 8 * 8; }

  [[nodiscard]] ThreadSums sums_of(double* memory, int thread) const {
    double* mine = memory + doubles() * thread;
    return {.log_likelihood = mine,
            .bad_label = mine + 1,
            .both = mine + 2,
            .total = mine + 2 + classes_,
            .p = mine + 2 + 2 * classes_};
  }

  template <class Visit>
  void visit(int thread, int team, Visit visit_line) const {
    lines_.visit(share(lines_.pixels(), thread, team), share(lines_.pixels(), thread + 1, team), visit_line);
  }

  /// p = softmax(row); returns log(sum of exp(row)).
  double softmax(const float* row, double* p) const {
    double largest = static_cast<double>(row[0]), sum = 0;
    for (std::int64_t c = 1; c < classes_; ++c) largest = std::max(largest, static_cast<double>(row[c]));
    for (std::int64_t c = 0; c < classes_; ++c) sum += p[c] = std::exp(static_cast<double>(row[c]) - largest);
    for (std::int64_t c = 0; c < classes_; ++c) p[c] /= sum;
    return largest + std::log(sum);
  }

  void sum_line(const Line& line, std::span<void* const> arguments, const ThreadSums& sums) const {
    for (std::int64_t i = 0; i < line.pixels; ++i) {
      const float* row = static_cast<const float*>(arguments[0]) + line.offsets[0] + i * line.strides[0];
      const std::int32_t label = static_cast<const std::int32_t*>(arguments[1])[line.offsets[1] + i * line.strides[1]];
      if (label < 0 || label >= classes_) {
        *sums.bad_label = label;
        return;
      }
      *sums.log_likelihood += softmax(row, sums.p) - static_cast<double>(row[label]);
      for (std::int64_t c = 0; c < classes_; ++c) sums.total[c] += sums.p[c];
      sums.total[label] += 1;
      sums.both[label] += sums.p[label];
      if (!arguments[2] || !is_single_pass()) continue;
      float* diff = static_cast<float*>(arguments[2]) + line.offsets[0] + i * line.strides[0];
      for (std::int64_t c = 0; c < classes_; ++c) {
        diff[c] = static_cast<float>(entropy_weight_ * (sums.p[c] - (c == label ? 1 : 0)));
      }
    }
  }

  void differentiate_line(const Line& line, std::span<void* const> arguments, const ThreadSums& sums,
                          const Slopes& slopes) const {
    for (std::int64_t i = 0; i < line.pixels; ++i) {
      const std::int64_t at = line.offsets[0] + i * line.strides[0];
      const std::int32_t label = static_cast<const std::int32_t*>(arguments[1])[line.offsets[1] + i * line.strides[1]];
      float* diff = static_cast<float*>(arguments[2]) + at;
      softmax(static_cast<const float*>(arguments[0]) + at, sums.p);
      double mean_slope = -sums.p[label] * slopes.hit[label];
      for (std::int64_t c = 0; c < classes_; ++c) mean_slope += sums.p[c] * slopes.base[c];
      for (std::int64_t c = 0; c < classes_; ++c) {
        const double wanted = c == label ? 1 : 0;
        const double dice = sums.p[c] * (slopes.base[c] - wanted * slopes.hit[c] - mean_slope);
        diff[c] = static_cast<float>(entropy_weight_ * (sums.p[c] - wanted) + dice);
      }
    }
  }

  void check(double bad_label) const {
    if (bad_label == no_label) return;
    base::fail(base::Exit::bad_data,
               "the target has label {}, but the network has {} classes (0 to {}); check the data",
               static_cast<std::int64_t>(bad_label), classes_, classes_ - 1);
  }

  /// The losses, and the slopes of soft Dice with its weight.
  void report(double* memory, const Slopes& slopes, double* losses) const {
    double by_kind[4] = {};
    for (int thread = 0; thread < team_; ++thread) {
      by_kind[static_cast<int>(LossKind::cross_entropy)] += *sums_of(memory, thread).log_likelihood * inverse_count_;
    }
    double dice = 0;
    for (std::int64_t c = 0; c < classes_; ++c) {
      double both = 0, total = 0;
      for (int thread = 0; thread < team_; ++thread) {
        both += sums_of(memory, thread).both[c];
        total += sums_of(memory, thread).total[c];
      }
      const double numerator = 2 * both + soft_dice_smoothing, denominator = total + soft_dice_smoothing;
      const double share_of_class = dice_weight_ / static_cast<double>(classes_);
      dice += numerator / denominator / static_cast<double>(classes_);
      slopes.hit[c] = share_of_class * 2 / denominator;
      slopes.base[c] = share_of_class * numerator / (denominator * denominator);
    }
    by_kind[static_cast<int>(LossKind::soft_dice)] = 1 - dice;
    write_losses(loss_, by_kind, losses);
  }

  model::Loss loss_;
  std::int64_t classes_;
  tensor::Layout labels_;
  Lines lines_;
  int team_;
  double inverse_count_, entropy_weight_, dice_weight_;
};

}  // namespace

std::unique_ptr<Primitive> make_label_loss(const model::LossTask& task, int threads) {
  return std::make_unique<LabelLoss>(task, threads);
}

}  // namespace orthant::kernels
