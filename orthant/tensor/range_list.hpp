#pragma once

#include "orthant/tensor/box.hpp"

#include <utility>
#include <vector>

namespace orthant::tensor {

/// A few ranges: nearly always none or one, which take no memory of their own.
class RangeList {
 public:
  RangeList() = default;
  RangeList(const Range& only) : one_(only), is_one_(true) {}
  RangeList(std::vector<Range> ranges) : many_(std::move(ranges)) {}

  [[nodiscard]] std::size_t size() const { return is_one_ ? 1 : many_.size(); }
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] const Range* begin() const { return is_one_ ? &one_ : many_.data(); }
  [[nodiscard]] const Range* end() const { return begin() + size(); }
  [[nodiscard]] const Range& front() const { return *begin(); }
  [[nodiscard]] const Range& operator[](std::size_t i) const { return begin()[i]; }

 private:
  Range one_;
  bool is_one_ = false;
  std::vector<Range> many_;
};

}  // namespace orthant::tensor
