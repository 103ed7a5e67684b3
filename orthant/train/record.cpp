#include "orthant/train/record.hpp"

#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <filesystem>

namespace orthant::train {
namespace {

/// The loss in a row of metrics.csv: step,epoch,learning_rate,loss,...
double loss_of(const std::string& row) {
  std::size_t at = 0;
  for (int field = 0; field < 3; ++field) at = row.find(',', at) + 1;
  return std::strtod(row.c_str() + at, nullptr);
}

}  // namespace

void LossRecord::cut(std::int64_t steps) { losses_.resize(std::min(losses_.size(), static_cast<std::size_t>(steps))); }

LossRecord::Means LossRecord::means() const {
  Means means;
  if (losses_.empty()) return means;
  const std::size_t count = std::clamp<std::size_t>(losses_.size() / 4, 1, 10);
  means.steps = static_cast<std::int64_t>(count);
  for (std::size_t i = 0; i < count; ++i) {
    means.first += losses_[i] / static_cast<double>(count);
    means.last += losses_[losses_.size() - 1 - i] / static_cast<double>(count);
  }
  return means;
}

Record::Record(const Contents& contents)
    : directory_(contents.resumed.empty() ? RunDirectory(contents.run.output, contents.name, contents.run.overwrite)
                                          : RunDirectory(contents.resumed)),
      loss_(contents.loss),
      validates_(contents.validates),
      log_(directory_.file("log.txt"), contents.resumed.empty() ? LineFile::Mode::replace : LineFile::Mode::append) {
  open_tables(!contents.resumed.empty(), contents.done);
  data::io::write_text(directory_.file("run.yaml"), model::to_text(to_document(contents.run)));
  data::io::write_text(directory_.file("plan.json"), contents.plan + "\n");
}

void Record::open_tables(bool goes_on, std::int64_t done) {
  const auto rows_of = [&](const std::string& path) {
    return goes_on ? cut_table(path, done) : std::vector<std::string>{};
  };
  const std::vector<std::string> rows = rows_of(directory_.file("metrics.csv"));
  metrics_.emplace(directory_.file("metrics.csv"), loss_,
                   rows.empty() ? LineFile::Mode::replace : LineFile::Mode::append);
  losses_.cut(0);
  for (std::size_t i = 1; i < rows.size(); ++i)
    if (const double loss = loss_of(rows[i]); std::isfinite(loss)) losses_.add(loss);
  if (!validates_) return;
  const std::string path = directory_.file("validation.csv");
  validation_.emplace(path, !rows_of(path).empty());
}

void Record::go_back(std::int64_t step) {
  metrics_.reset();
  validation_.reset();
  open_tables(true, step);
}

}  // namespace orthant::train
