#include "orthant/data/sets/npy_dataset.hpp"

#include "tests/data/temporary.hpp"

#include <numeric>

namespace orthant {
namespace {

using base::Exit;
using data::sets::NpyDataset;
using test::expect_error;

constexpr data::sets::SampleShape flat_values{.input = {.n = 1, .c = 2, .d = 1, .h = 2, .w = 2},
                                              .target = {.n = 1, .c = 3, .d = 1, .h = 1, .w = 1},
                                              .spatial_count = 2};

std::string write(const test::TemporaryDirectory& folder, const std::string& name,
                  const std::vector<std::int64_t>& extents) {
  std::int64_t count = 1;
  for (const std::int64_t extent : extents) count *= extent;
  std::vector<float> items(static_cast<std::size_t>(count));
  std::iota(items.begin(), items.end(), 0.0F);
  data::formats::write_npy(folder.file(name), extents, items);
  return folder.file(name);
}

TEST(NpyDataset, JoinsFilesAndTurnsChannelsLast) {
  const test::TemporaryDirectory folder;
  const NpyDataset set({write(folder, "a.npy", {2, 2, 2, 2}), write(folder, "b.npy", {1, 2, 2, 2})},
                       {write(folder, "t.npy", {3, 3})}, flat_values);
  std::vector<float> input(8);
  std::vector<float> target(3);

  EXPECT_EQ(set.samples(), 3);
  set.read_input(1, tensor::whole(flat_values.input), input);
  set.read_values(1, tensor::whole(flat_values.target), target);
  EXPECT_EQ(input, (std::vector<float>{8, 12, 9, 13, 10, 14, 11, 15}));
  EXPECT_EQ(target, (std::vector<float>{3, 4, 5}));
  set.read_input(2, tensor::whole(flat_values.input), input);
  EXPECT_EQ(input, (std::vector<float>{0, 4, 1, 5, 2, 6, 3, 7}));
}

TEST(NpyDataset, ReadsTheBytesOfABoxAndNoMore) {
  const test::TemporaryDirectory folder;
  const NpyDataset set({write(folder, "a.npy", {2, 2, 2, 2})}, {write(folder, "t.npy", {2, 3})}, flat_values);
  std::vector<float> input(2);
  std::vector<float> target(2);

  set.read_input(1, {.lo = {0, 0, 0, 0, 1}, .hi = {1, 1, 1, 2, 2}}, input);
  EXPECT_EQ(input, (std::vector<float>{9, 11}));
  EXPECT_EQ(set.bytes_read(), 8);
  set.read_values(1, {.lo = {0, 1, 0, 0, 0}, .hi = {1, 3, 1, 1, 1}}, target);
  EXPECT_EQ(target, (std::vector<float>{4, 5}));
  EXPECT_EQ(set.bytes_read(), 8 + 12);
}

TEST(NpyDataset, AcceptsTrailingDimsOfOneCell) {
  const test::TemporaryDirectory folder;
  const std::string inputs = write(folder, "a.npy", {1, 2, 2, 2});

  EXPECT_EQ(NpyDataset({inputs}, {write(folder, "t.npy", {1, 3, 1, 1})}, flat_values).samples(), 1);
}

TEST(NpyDataset, RefusesOtherShapes) {
  const test::TemporaryDirectory folder;
  const std::string inputs = write(folder, "a.npy", {2, 2, 2, 2});
  const std::string targets = write(folder, "t.npy", {2, 3});

  expect_error(Exit::bad_data, "has shape 2x3, but the network wants inputs of shape Nx2x2x2",
               [&] { NpyDataset({targets}, {targets}, flat_values); });
  expect_error(Exit::bad_data, "has shape 2x2x2x2, but the network wants targets of shape Nx3",
               [&] { NpyDataset({inputs}, {inputs}, flat_values); });
  expect_error(Exit::bad_data, "2 samples but the targets 4", [&] {
    NpyDataset({inputs}, {targets, targets}, flat_values);
  });
  expect_error(Exit::bad_data, "no samples", [&] { NpyDataset({}, {}, flat_values); });
  expect_error(Exit::bad_data, "wants inputs", [&] {
    NpyDataset({write(folder, "none.npy", {0, 2, 2, 2})}, {targets}, flat_values);
  });
}

TEST(NpyDataset, NoticesAFileThatChanged) {
  const test::TemporaryDirectory folder;
  const NpyDataset set({write(folder, "a.npy", {2, 2, 2, 2})}, {write(folder, "t.npy", {2, 3})}, flat_values);
  std::vector<float> input(8);
  write(folder, "a.npy", {1, 2, 2, 2});

  expect_error(Exit::bad_data, "has changed", [&] { set.read_input(0, tensor::whole(flat_values.input), input); });
}

}  // namespace
}  // namespace orthant
