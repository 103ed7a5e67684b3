#pragma once

#include "orthant/schedule/analysis.hpp"

#include <cstdint>
#include <vector>

namespace orthant::schedule {

/// Ranks that do the same: their schedules are equal but for peers and for where their boxes lie.
struct RankClass {
  int representative = 0;  ///< the first of them
  int members = 0;
};

/// The classes of all ranks under a plan. They are found from coordinates: which blocks of which sizes a rank has, and
/// how these meet those of others. Nothing is lowered.
class Classes {
 public:
  /// `coarse` counts ranks as equal that have blocks of the same sizes, read as many cells of as many others and keep
  /// about as many for themselves, wherever these lie. They take about the same time.
  enum class Detail { exact, coarse };
  /// The options are those that the ranks are lowered with.
  Classes(const Analysis& analysis, const LowerOptions& options, Detail detail = Detail::exact);

  [[nodiscard]] const std::vector<RankClass>& all() const { return classes_; }
  /// The number of a rank's class.
  [[nodiscard]] int of(int rank) const { return at(class_of_, rank); }

 private:
  std::vector<RankClass> classes_;
  std::vector<int> class_of_;  ///< per rank
};

/// A schedule without what members of a class differ in, as text.
std::string to_class_text(const Schedule& schedule);

}  // namespace orthant::schedule
