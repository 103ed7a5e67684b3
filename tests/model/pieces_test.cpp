#include "orthant/model/pieces.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

constexpr tensor::Shape src_shape{.n = 7, .c = 3, .d = 6, .h = 5, .w = 5};

ConvTask three_taps(Pass pass, std::int64_t stride = 1) {
  const tensor::Window window{
      .size = tensor::cube(3), .stride = tensor::cube(stride), .pad_lo = tensor::cube(1), .pad_hi = tensor::cube(1)};
  tensor::Shape dst{.n = src_shape.n, .c = 4};
  const tensor::Extent3 cells = tensor::window_output(window, {.d = src_shape.d, .h = src_shape.h, .w = src_shape.w});
  for (const tensor::Dim dim : tensor::spatial_dims) dst[dim] = cells[dim];
  return {.pass = pass, .window = window, .src = tensor::channels_last(src_shape), .dst = tensor::channels_last(dst)};
}

TEST(Pieces, WithoutPiecesTheTaskIsWhole) {
  const ConvTask task = three_taps(Pass::forward);
  const std::vector<ConvTask> parts = divided(task, {});
  ASSERT_EQ(parts.size(), 1U);
  EXPECT_EQ(parts[0].src, task.src);
  EXPECT_EQ(parts[0].window, task.window);
}

TEST(Pieces, TheListBeginsAgainAndTheLastPieceEndsEarly) {
  const std::vector<ConvPiece> pieces{{.algorithm = Algorithm::winograd, .samples = 3},
                                      {.algorithm = Algorithm::direct, .samples = 2}};
  const ConvTask task = three_taps(Pass::forward);
  const std::vector<ConvTask> parts = divided(task, pieces);
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].dst.extents.n, 3);
  EXPECT_EQ(parts[1].dst.extents.n, 2);
  EXPECT_EQ(parts[2].dst.extents.n, 2);
  EXPECT_EQ(parts[2].algorithm, Algorithm::winograd);
  EXPECT_EQ(parts[2].src.offset, 5 * task.src.strides.n);
  EXPECT_EQ(parts[2].dst.offset, 5 * task.dst.strides.n);
}

TEST(Pieces, OnlyTheFirstWritesAGradientOfWeights) {
  const ConvPiece piece{.algorithm = Algorithm::direct, .samples = 3, .slabs = 2};
  ConvTask task = three_taps(Pass::backward_weights);
  std::vector<ConvTask> parts = divided(task, std::span(&piece, 1));
  ASSERT_EQ(parts.size(), 6U);
  for (std::size_t i = 0; i < parts.size(); ++i) EXPECT_EQ(parts[i].accumulate, i > 0) << i;
  task.accumulate = true;
  for (const ConvTask& part : divided(task, std::span(&piece, 1))) EXPECT_TRUE(part.accumulate);
  for (const ConvTask& part : divided(three_taps(Pass::forward), std::span(&piece, 1))) EXPECT_FALSE(part.accumulate);
}

TEST(Pieces, SlabsOfForwardReadWhatTheirWindowsReach) {
  const ConvPiece piece{.samples = 7, .slabs = 3};
  const ConvTask task = three_taps(Pass::forward);
  const std::vector<ConvTask> parts = divided(task, std::span(&piece, 1));
  ASSERT_EQ(parts.size(), 3U);
  EXPECT_EQ(parts[0].src.extents.d, 3);  // no cell before the first
  EXPECT_EQ(parts[1].src.extents.d, 4);
  EXPECT_EQ(parts[2].src.extents.d, 3);
  EXPECT_EQ(parts[0].window.pad_lo.d, 1);
  EXPECT_EQ(parts[1].window.pad_lo.d, 0);
  EXPECT_EQ(parts[1].src.offset, task.src.strides.d);
  EXPECT_EQ(parts[1].dst.offset, 2 * task.dst.strides.d);
}

TEST(Pieces, SlabsOfBackwardDataArePartsOfTheSource) {
  const ConvPiece piece{.samples = 7, .slabs = 2};
  const ConvTask task = three_taps(Pass::backward_data, 2);
  const std::vector<ConvTask> parts = divided(task, std::span(&piece, 1));
  ASSERT_EQ(parts.size(), 2U);
  for (const ConvTask& part : parts) {
    EXPECT_EQ(part.src.extents.d, 3);
    EXPECT_EQ(part.dst.extents.d, 2);  // of three cells, of which the middle one is read by both
  }
  EXPECT_EQ(parts[1].src.offset, 3 * task.src.strides.d);
  EXPECT_EQ(parts[1].dst.offset, task.dst.strides.d);
}

TEST(Pieces, SlabsAreNeverThinnerThanACell) {
  const ConvPiece piece{.samples = 1, .slabs = 100};
  const ConvTask task = three_taps(Pass::forward);
  EXPECT_EQ(most_slabs(task), 6);
  EXPECT_EQ(divided(task, std::span(&piece, 1)).size(), 42U);
}

TEST(Pieces, ImagesAreCutAlongTheirHeight) {
  ConvTask task = three_taps(Pass::forward);
  tensor::Shape src = src_shape, dst = task.dst.extents;
  src.d = dst.d = 1;
  task.window.size.d = 1;
  task.window.pad_lo.d = task.window.pad_hi.d = 0;
  task.src = tensor::channels_last(src);
  task.dst = tensor::channels_last(dst);
  const ConvPiece piece{.samples = 7, .slabs = 5};
  const std::vector<ConvTask> parts = divided(task, std::span(&piece, 1));
  ASSERT_EQ(parts.size(), 5U);
  EXPECT_EQ(parts[2].dst.extents.h, 1);
  EXPECT_EQ(parts[2].src.extents.h, 3);
}

}  // namespace
}  // namespace orthant::model
