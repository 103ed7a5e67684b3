#pragma once

#include <string>
#include <vector>

namespace orthant::cli {

struct ChartPoint {
  double x = 0, y = 0;
  bool is_hollow = false;
};

struct ChartSeries {
  std::string name;
  std::vector<ChartPoint> points;
  bool is_ideal = false;  ///< a dashed grey line without marks
};

/// One diagram with logarithmic axes. All numbers are above zero.
struct LogChart {
  std::string title, x_title, y_title;
  std::vector<ChartSeries> series;
};

/// The diagrams side by side under one title, with one legend for all, as SVG. `note` is a line below them. Series of
/// one name have one colour.
std::string to_svg(const std::string& title, const std::vector<LogChart>& charts, const std::string& note);

}  // namespace orthant::cli
