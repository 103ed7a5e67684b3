#include "orthant/train/validation.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/train/scores_text.hpp"

#include <cmath>

namespace orthant::train {

Validation::Validation(const data::sets::Dataset& dataset, const engine::Session& training,
                       const EvaluatorOptions& options)
    : dataset_(dataset), evaluator_(training.graph(), training.plan(), training.comm(), options) {}

const Scores& Validation::run(std::int64_t step, engine::Engine& training) {
  evaluator_.copy_weights(training);
  last_ = evaluator_.score(dataset_);
  last_step_ = step;
  if (!std::isfinite(last_->loss)) {
    throw comm::CollectiveError(
        base::Exit::non_finite,
        fmt::format("the validation loss is {} after step {}; lower the learning rate, warm up, "
                    "or check the data",
                    last_->loss, step));
  }
  if (!best_ || last_->loss < best_->loss) {
    best_ = last_;
    best_step_ = step;
  }
  return *last_;
}

void ValidationTable::write(const Row& row) {
  if (!has_header_) file_.write("step,epoch," + csv_header(row.scores) + ",seconds");
  has_header_ = true;
  file_.write(fmt::format("{},{},{},{:.6f}", row.step, row.epoch, csv_row(row.scores), row.seconds));
}

}  // namespace orthant::train
