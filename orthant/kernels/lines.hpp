#pragma once

#include "orthant/kernels/team.hpp"
#include "orthant/tensor/layout.hpp"

#include <algorithm>
#include <array>
#include <initializer_list>
#include <span>

namespace orthant::kernels {

inline constexpr std::size_t most_layouts = 6;
/// How many rows one call of a vectorised function gets, unless something else limits it.
inline constexpr std::int64_t rows_per_call = 4096;

/// Equally spaced pixels of several tensors, side by side. Channels of a pixel are contiguous.
struct Line {
  std::int64_t pixels = 0;
  std::int64_t channels = 0;
  std::array<std::int64_t, most_layouts> offsets{};  ///< of the first item of each tensor
  std::array<std::int64_t, most_layouts> strides{};  ///< from one pixel to the next
};

/// The same memory as fewer, wider pixels where pixels touch in all tensors: whole multiples of `factor` pixels.
Line widened(const Line& line, std::int64_t factor);
/// What `widened` left over at the end.
Line remainder(const Line& line, std::int64_t factor);

/// The pixels of tensors with equal extents in the order n, d, h, w, as lines that are as long as the strides allow.
class Lines {
 public:
  /// Throws Error if extents differ or channels are not contiguous.
  Lines(std::initializer_list<const tensor::Layout*> layouts) : Lines(std::span(layouts.begin(), layouts.size())) {}
  explicit Lines(std::span<const tensor::Layout* const> layouts);

  [[nodiscard]] std::int64_t pixels() const { return pixels_; }
  [[nodiscard]] std::int64_t channels() const { return channels_; }
  [[nodiscard]] std::int64_t items() const { return pixels_ * channels_; }

  /// How many pixels are merged into one so that rows are long enough and made of whole vectors; 1 if pixels do not
  /// touch.
  [[nodiscard]] std::int64_t width_factor() const { return width_factor_; }

  /// Calls visit(line) for the lines of the pixels [begin, end).
  template <class Visit>
  void visit(std::int64_t begin, std::int64_t end, Visit visit) const {
    while (begin < end) {
      const Line line = line_at(begin, end);
      visit(line);
      begin += line.pixels;
    }
  }

  /// The part of thread `index` of `team`, in blocks of at most `rows` pixels widened by width_factor().
  template <class Visit>
  void visit_part(int index, int team, std::int64_t rows, Visit visit) const {
    this->visit(share(pixels_, index, team), share(pixels_, index + 1, team), [&](const Line& line) {
      visit_rows(widened(line, width_factor_), rows, visit);
      visit_rows(remainder(line, width_factor_), rows, visit);
    });
  }

 private:
  [[nodiscard]] Line line_at(std::int64_t begin, std::int64_t end) const;

  template <class Visit>
  static void visit_rows(Line line, std::int64_t rows, Visit& visit) {
    for (std::int64_t left = line.pixels; left > 0; left -= rows) {
      line.pixels = std::min(rows, left);
      visit(static_cast<const Line&>(line));
      for (std::size_t i = 0; i < most_layouts; ++i) line.offsets[i] += rows * line.strides[i];
    }
  }

  std::int64_t pixels_ = 0, channels_ = 0, width_factor_ = 1;
  std::array<std::int64_t, 4> extents_{1, 1, 1, 1};                      ///< merged dims, slowest first
  std::array<std::array<std::int64_t, most_layouts>, 4> dim_strides_{};  ///< per merged dim and tensor
  std::array<std::int64_t, most_layouts> offsets_{};
};

/// The same for every sample by itself, or for all of them as one.
class SampleLines {
 public:
  SampleLines(bool apart, std::initializer_list<const tensor::Layout*> layouts);

  /// How many times there is something to visit.
  [[nodiscard]] std::int64_t parts() const { return parts_; }
  [[nodiscard]] const Lines& lines() const { return lines_; }
  /// What one part of a tensor is moved by from the one before.
  [[nodiscard]] std::int64_t step(std::size_t tensor) const { return steps_[tensor]; }

  template <class Visit>
  void visit_part(std::int64_t part, int index, int team, std::int64_t rows, Visit visit) const {
    lines_.visit_part(index, team, rows, [&](Line line) {
      for (std::size_t i = 0; i < most_layouts; ++i) line.offsets[i] += part * steps_[i];
      visit(static_cast<const Line&>(line));
    });
  }

 private:
  static Lines lines_of(bool apart, std::initializer_list<const tensor::Layout*> layouts);

  Lines lines_;
  std::int64_t parts_ = 1;
  std::array<std::int64_t, most_layouts> steps_{};
};

}  // namespace orthant::kernels
