#include "orthant/cli/log_chart.hpp"

#include "orthant/base/format.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>

namespace orthant::cli {
namespace {

constexpr double panel_width = 460, panel_height = 340;
constexpr double left = 78, top = 74, gap = 92, right = 24, below = 60;
/// Colours that people who confuse red and green can tell apart (Okabe and Ito).
constexpr std::array colours{"#0072B2", "#D55E00", "#009E73", "#CC79A7", "#E69F00", "#56B4E9", "#7F7F00", "#000000"};

std::string escaped(const std::string& text) {
  std::string out;
  for (const char c : text) {
    if (c == '&')
      out += "&amp;";
    else if (c == '<')
      out += "&lt;";
    else if (c == '>')
      out += "&gt;";
    else
      out += c;
  }
  return out;
}

std::string text_at(double x, double y, const std::string& text, const std::string& style) {
  return fmt::format("<text x=\"{:.1f}\" y=\"{:.1f}\" {}>{}</text>\n", x, y, style, escaped(text));
}

/// An axis from power to power of its base.
struct Axis {
  double lowest = 0, highest = 1;  ///< logarithms to `base`
  double base = 10;

  [[nodiscard]] double place(double value) const {
    return (std::log(value) / std::log(base) - lowest) / (highest - lowest);
  }
};

Axis axis_over(const LogChart& chart, bool is_x, double base) {
  double least = std::numeric_limits<double>::infinity(), most = 0;
  for (const ChartSeries& series : chart.series) {
    for (const ChartPoint& point : series.points) {
      if (series.is_ideal && !is_x) continue;
      least = std::min(least, is_x ? point.x : point.y);
      most = std::max(most, is_x ? point.x : point.y);
    }
  }
  if (most <= 0) return {.base = base};
  const double slack = 1e-9;
  Axis axis{.lowest = std::floor(std::log(least) / std::log(base) + slack),
            .highest = std::ceil(std::log(most) / std::log(base) - slack),
            .base = base};
  if (axis.highest <= axis.lowest) axis.highest = axis.lowest + 1;
  return axis;
}

std::string tick_text(double value) {
  if (value >= 1e6) return fmt::format("{:g}M", value / 1e6);
  if (value >= 1e3) return fmt::format("{:g}k", value / 1e3);
  return fmt::format("{:g}", value);
}

/// One diagram with its corner at (x0, y0).
class Panel {
 public:
  Panel(const LogChart& chart, double x0, double y0)
      : chart_(chart), x0_(x0), y0_(y0), x_(axis_over(chart, true, 2)), y_(axis_over(chart, false, 10)) {}

  [[nodiscard]] std::string svg(const std::vector<std::string>& names) const { return frame() + lines(names); }

 private:
  [[nodiscard]] double px(double value) const { return x0_ + panel_width * x_.place(value); }
  [[nodiscard]] double py(double value) const { return y0_ + panel_height * (1 - y_.place(value)); }

  [[nodiscard]] std::string frame() const {
    const double bottom = y0_ + panel_height;
    std::string out = text_at(x0_ + panel_width / 2, y0_ - 12, chart_.title, "class=\"title\"");
    const int every = std::max(1, static_cast<int>(std::ceil((x_.highest - x_.lowest) / 12)));
    for (double power = x_.lowest; power <= x_.highest + 0.5; power += every) {
      const double x = px(std::pow(2, power));
      out += line(x, y0_, x, bottom, "grid") +
             text_at(x, bottom + 18, fmt::format("{:.0f}", std::pow(2, power)), "class=\"tick\"");
    }
    for (double power = y_.lowest; power <= y_.highest + 0.5; power += 1) {
      const double y = py(std::pow(10, power));
      out += line(x0_, y, x0_ + panel_width, y, "grid") +
             text_at(x0_ - 8, y + 4, tick_text(std::pow(10, power)), "class=\"tick end\"");
      for (const double between : {2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0})
        if (power < y_.highest - 0.5) out += minor_tick(between * std::pow(10, power), between);
    }
    out += fmt::format("<rect x=\"{:.1f}\" y=\"{:.1f}\" width=\"{:.1f}\" height=\"{:.1f}\" class=\"frame\"/>\n", x0_,
                       y0_, panel_width, panel_height);
    out += text_at(x0_ + panel_width / 2, bottom + 42, chart_.x_title, "class=\"axis\"");
    const double x = x0_ - 56, y = y0_ + panel_height / 2;
    return out +
           text_at(x, y, chart_.y_title, fmt::format("class=\"axis\" transform=\"rotate(-90 {:.1f} {:.1f})\"", x, y));
  }

  /// 2 and 5 have a number where there are few powers of ten.
  [[nodiscard]] std::string minor_tick(double value, double digit) const {
    const double y = py(value);
    const bool few_powers = y_.highest - y_.lowest <= 2;
    std::string out = line(x0_, y, x0_ + 5, y, "minor");
    if (few_powers && (digit == 2 || digit == 5))
      out += text_at(x0_ - 8, y + 4, tick_text(value), "class=\"tick end\"");
    return out;
  }

  [[nodiscard]] std::string lines(const std::vector<std::string>& names) const {
    std::string out;
    // The first are drawn last, with smaller marks, so that they can be seen where series lie on each other.
    for (std::size_t i = chart_.series.size(); i-- > 0;) {
      const ChartSeries& series = chart_.series[i];
      if (series.is_ideal) {
        out += path(series, "ideal", "#888888");
        continue;
      }
      const auto place = std::find(names.begin(), names.end(), series.name) - names.begin();
      const char* colour = colours[static_cast<std::size_t>(place) % colours.size()];
      out += path(series, "line", colour);
      for (const ChartPoint& point : series.points)
        out += fmt::format(
            "<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"{:.1f}\" stroke=\"{}\" stroke-width=\"1.6\" fill=\"{}\"/>\n",
            px(point.x), py(point.y), 3 + 0.5 * static_cast<double>(place), colour,
            point.is_hollow ? "#ffffff" : colour);
    }
    return out;
  }

  /// What leaves the frame, as the ideal may, is not drawn.
  [[nodiscard]] std::string path(const ChartSeries& series, const char* kind, const char* colour) const {
    std::string points;
    for (const ChartPoint& point : series.points) points += fmt::format("{:.1f},{:.1f} ", px(point.x), py(point.y));
    return fmt::format(
        "<svg x=\"{0:.1f}\" y=\"{1:.1f}\" width=\"{2:.1f}\" height=\"{3:.1f}\" viewBox=\"{0:.1f} {1:.1f} {2:.1f} "
        "{3:.1f}\">"
        "<polyline points=\"{4}\" class=\"{5}\" stroke=\"{6}\"/></svg>\n",
        x0_, y0_, panel_width, panel_height, points, kind, colour);
  }

  [[nodiscard]] static std::string line(double x1, double y1, double x2, double y2, const char* kind) {
    return fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\"/>\n", x1, y1, x2, y2,
                       kind);
  }

  const LogChart& chart_;
  double x0_, y0_;
  Axis x_, y_;
};

std::vector<std::string> names_of(const std::vector<LogChart>& charts) {
  std::vector<std::string> names;
  for (const LogChart& chart : charts) {
    for (const ChartSeries& series : chart.series) {
      if (!series.is_ideal && std::find(names.begin(), names.end(), series.name) == names.end())
        names.push_back(series.name);
    }
  }
  return names;
}

std::string legend(const std::vector<std::string>& names, double x, double y) {
  std::string out;
  for (std::size_t i = 0; i <= names.size(); ++i) {
    const bool is_ideal = i == names.size();
    const std::string name = is_ideal ? "ideal" : names[i];
    const char* colour = is_ideal ? "#888888" : colours[i % colours.size()];
    out += fmt::format("<line x1=\"{:.1f}\" y1=\"{:.1f}\" x2=\"{:.1f}\" y2=\"{:.1f}\" class=\"{}\" stroke=\"{}\"/>\n",
                       x, y - 4, x + 26, y - 4, is_ideal ? "ideal" : "line", colour);
    if (!is_ideal)
      out += fmt::format("<circle cx=\"{:.1f}\" cy=\"{:.1f}\" r=\"4\" fill=\"{}\"/>\n", x + 13, y - 4, colour);
    out += text_at(x + 32, y, name, "class=\"key\"");
    x += 52 + 7.2 * static_cast<double>(name.size());
  }
  return out;
}

constexpr const char* style =
    "<style>text{font-family:Helvetica,Arial,sans-serif;fill:#222}.head{font-size:17px;font-weight:bold}"
    ".title{font-size:14px;text-anchor:middle;font-weight:bold}.axis{font-size:13px;text-anchor:middle}"
    ".tick{font-size:11px;text-anchor:middle}.end{text-anchor:end}.key{font-size:12px}.note{font-size:11px;fill:#666}"
    ".grid{stroke:#dddddd;stroke-width:1}.minor{stroke:#222;stroke-width:0.7}.frame{fill:none;stroke:#222;stroke-width:"
    "1}"
    ".line{fill:none;stroke-width:2}.ideal{fill:none;stroke-width:1.5;stroke-dasharray:6 4}</style>\n";

}  // namespace

std::string to_svg(const std::string& title, const std::vector<LogChart>& charts, const std::string& note) {
  const auto count = static_cast<double>(charts.size());
  const double width = left + count * panel_width + (count - 1) * gap + right;
  const double bottom = top + panel_height + below;
  std::string out = fmt::format(
      "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{0:.0f}\" height=\"{1:.0f}\" viewBox=\"0 0 {0:.0f} "
      "{1:.0f}\">\n",
      width, bottom + 46);
  out += style;
  out += "<rect width=\"100%\" height=\"100%\" fill=\"#ffffff\"/>\n";
  out += text_at(left, 30, title, "class=\"head\"");
  const std::vector<std::string> names = names_of(charts);
  double x = left;
  for (const LogChart& chart : charts) {
    out += Panel(chart, x, top).svg(names);
    x += panel_width + gap;
  }
  out += legend(names, left, bottom + 14);
  out += text_at(left, bottom + 36, note, "class=\"note\"");
  return out + "</svg>\n";
}

}  // namespace orthant::cli
