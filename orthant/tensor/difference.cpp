#include "orthant/tensor/difference.hpp"

namespace orthant::tensor {

std::vector<Box> difference(const Box& box, const Box& hole) {
  const Box common = intersection(box, hole);
  if (is_empty(common)) return is_empty(box) ? std::vector<Box>{} : std::vector<Box>{box};
  std::vector<Box> left;
  Box rest = box;
  for (const Dim dim : all_dims) {
    for (const Range& side : {Range{rest.lo[dim], common.lo[dim]}, Range{common.hi[dim], rest.hi[dim]}}) {
      if (side.lo >= side.hi) continue;
      left.push_back(rest);
      left.back().set(dim, side);
    }
    rest.set(dim, common[dim]);
  }
  return left;
}

}  // namespace orthant::tensor
