#include "orthant/data/sets/sample_store.hpp"

#include <gtest/gtest.h>

#include <cstring>
#include <numeric>

namespace orthant::data::sets {
namespace {

using tensor::Box;

const SampleShape cube{.input = {1, 2, 6, 6, 6}, .target = {1, 3, 1, 1, 1}};

Box slab(std::int64_t lo, std::int64_t hi) { return {.lo = {0, 0, lo, 0, 0}, .hi = {1, 2, hi, 6, 6}}; }

/// Mini-batches of two samples: ranks 0 and 1 take slabs with a halo of the first, ranks 2 and 3 of the second.
Intake grouped_intake() {
  return Intake({{.rank = 0, .n = 0, .box = slab(0, 4)},
                 {.rank = 1, .n = 0, .box = slab(2, 6)},
                 {.rank = 2, .n = 1, .box = slab(0, 4)},
                 {.rank = 3, .n = 1, .box = slab(2, 6)}},
                2, 4);
}

Filling filling_of(std::vector<std::int64_t> order, std::int64_t kept) {
  return {.order = std::move(order), .kept = kept, .shape = cube, .orientation = [](std::int64_t) {
            return Orientation{};
          }};
}

TEST(SampleStore, KeepsWhatCameFirst) {
  const Intake intake = grouped_intake();
  const SampleStore store(intake, filling_of({3, 1, 0, 2}, 3), 0);

  EXPECT_EQ(store.position(3), 0);
  EXPECT_EQ(store.position(0), 2);
  EXPECT_FALSE(store.position(2));
  EXPECT_EQ(store.bytes(), 2 * box_bytes(slab(0, 4)));
  EXPECT_EQ(store.held(0, intake.of(0)[0]).bytes.data() - store.held(3, intake.of(0)[0]).bytes.data(),
            box_bytes(slab(0, 4)));
}

TEST(SampleStore, TakesABoxFromWhoeverHasAllOfIt) {
  const Intake intake = grouped_intake();
  const SampleStore store(intake, filling_of({3, 1, 0, 2}, 4), 0);

  const std::vector<Contribution> contributions = store.contributions(1, Role::source, slab(2, 6), 1);

  ASSERT_EQ(contributions.size(), 1U);
  EXPECT_EQ(contributions[0].holder->rank, 3);
  EXPECT_EQ(store.contributions(3, Role::source, slab(2, 4), 1).front().holder->rank, 1);
  EXPECT_EQ(store.contributions(3, Role::source, slab(2, 4), 2).front().holder->rank, 0);
}

TEST(SampleStore, PutsABoxTogetherFromPiecesThatShareNoCell) {
  const Intake intake = grouped_intake();
  const SampleStore store(intake, filling_of({3, 1, 0, 2}, 4), 0);
  const Box wanted{.lo = {0, 0, 0, 1, 2}, .hi = {1, 2, 6, 3, 5}};

  const std::vector<Contribution> contributions = store.contributions(2, Role::source, wanted, 0);

  std::int64_t cells = 0;
  for (const Contribution& contribution : contributions) {
    EXPECT_TRUE(tensor::contains(contribution.holder->box, contribution.box));
    cells += tensor::volume(contribution.box);
  }
  EXPECT_EQ(contributions.size(), 2U);
  EXPECT_EQ(cells, tensor::volume(wanted));
}

TEST(SampleStore, CopiesParts) {
  std::vector<float> source(2 * 4 * 6 * 6), target(2 * 3 * 2 * 2, -1);
  std::iota(source.begin(), source.end(), 0.0F);
  const Held from{std::as_writable_bytes(std::span(source)), slab(2, 6)};
  const Box box{.lo = {0, 0, 3, 1, 2}, .hi = {1, 2, 6, 3, 4}};
  const Held to{std::as_writable_bytes(std::span(target)), box};

  copy_part(from, to, box);

  std::size_t item = 0;
  for (std::int64_t d = 3; d < 6; ++d)
    for (std::int64_t h = 1; h < 3; ++h)
      for (std::int64_t w = 2; w < 4; ++w)
        for (std::int64_t c = 0; c < 2; ++c)
          EXPECT_EQ(target[item++], static_cast<float>((((d - 2) * 6 + h) * 6 + w) * 2 + c));
  EXPECT_FALSE(is_contiguous(slab(2, 6), box));
  EXPECT_TRUE(is_contiguous(slab(2, 6), slab(3, 5)));
  EXPECT_EQ(bytes_of(from, slab(3, 5)).data() - from.bytes.data(), 72 * 4);
}

}  // namespace
}  // namespace orthant::data::sets
