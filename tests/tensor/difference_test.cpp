#include "orthant/tensor/difference.hpp"

#include <gtest/gtest.h>

namespace orthant::tensor {
namespace {

TEST(Difference, TilesWhatIsLeft) {
  const Box box{.lo = {0, 0, 0, 0, 0}, .hi = {1, 2, 4, 4, 4}};
  for (const Box& hole :
       {Box{.lo = {0, 0, 1, 1, 1}, .hi = {1, 2, 2, 3, 4}}, Box{.lo = {0, 0, 0, 0, 0}, .hi = {1, 2, 4, 4, 4}},
        Box{.lo = {0, 1, 2, 3, 0}, .hi = {5, 5, 5, 5, 1}}, Box{.lo = {0, 0, 4, 0, 0}, .hi = {1, 2, 9, 4, 4}}, Box{}}) {
    std::int64_t left = 0;
    const std::vector<Box> parts = difference(box, hole);
    for (std::size_t i = 0; i < parts.size(); ++i) {
      left += volume(parts[i]);
      EXPECT_TRUE(contains(box, parts[i]));
      EXPECT_EQ(volume(intersection(parts[i], hole)), 0);
      for (std::size_t j = 0; j < i; ++j) EXPECT_EQ(volume(intersection(parts[i], parts[j])), 0);
    }
    EXPECT_EQ(left, volume(box) - volume(intersection(box, hole)));
  }
  EXPECT_TRUE(difference(Box{}, box).empty());
}

}  // namespace
}  // namespace orthant::tensor
