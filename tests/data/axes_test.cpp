#include "orthant/data/arrays/axes.hpp"

#include <gtest/gtest.h>

namespace orthant {
namespace {

using data::arrays::Axes;
using data::arrays::AxesWanted;
using Extents = std::vector<std::int64_t>;

std::vector<std::string> found(const Extents& extents, const AxesWanted& wanted) {
  std::vector<std::string> texts;
  for (const Axes& axes : data::arrays::matching_axes(extents, wanted)) texts.push_back(data::arrays::to_text(axes));
  return texts;
}

TEST(Axes, AreFoundFromExtents) {
  using Texts = std::vector<std::string>;
  const AxesWanted volume{.shape = {.n = 1, .c = 4, .d = 6, .h = 7, .w = 8}};
  const AxesWanted cube{.shape = {.n = 1, .c = 4, .d = 4, .h = 4, .w = 4}};
  const AxesWanted grey{.shape = {.n = 1, .c = 1, .d = 6, .h = 7, .w = 8}};
  const AxesWanted image{.shape = {.n = 1, .c = 3, .d = 1, .h = 7, .w = 8}, .spatial_count = 2};
  const AxesWanted values{.shape = {.n = 1, .c = 4}};
  const AxesWanted label{.shape = {.n = 1, .c = 1}};

  EXPECT_EQ(found({6, 7, 8, 4}, volume), Texts{"DHWC"});
  EXPECT_EQ(found({4, 6, 7, 8}, volume), Texts{"CDHW"});
  EXPECT_EQ(found({9, 6, 7, 8, 4}, volume), Texts{"NDHWC"});
  EXPECT_EQ(found({9, 4, 6, 7, 8}, volume), Texts{"NCDHW"});
  EXPECT_EQ(found({4, 4, 4, 4}, cube), (Texts{"DHWC", "CDHW"}));
  EXPECT_EQ(found({6, 7, 8}, grey), Texts{"DHW"});
  EXPECT_EQ(found({1, 6, 7, 8}, grey).size(), 1U);
  EXPECT_EQ(found({6, 7, 8, 1}, grey).size(), 1U);
  EXPECT_EQ(found({5, 6, 7, 8}, grey), Texts{"NDHW"});
  EXPECT_EQ(found({7, 8, 3}, image), Texts{"HWC"});
  EXPECT_EQ(found({5, 3, 7, 8}, image), Texts{"NCHW"});
  const AxesWanted line{.shape = {.n = 1, .c = 3, .d = 1, .h = 1, .w = 8}, .spatial_count = 1};
  EXPECT_EQ(found({8, 3}, line), Texts{"WC"});
  EXPECT_EQ(found({5, 3, 8}, line), Texts{"NCW"});
  EXPECT_EQ(found({4}, values), Texts{"C"});
  EXPECT_EQ(found({9, 4}, values), Texts{"NC"});
  EXPECT_EQ(found({}, label), Texts{""});
  EXPECT_EQ(found({9}, label), Texts{"N"});
  EXPECT_EQ(found({6, 7, 8, 5}, volume), Texts{});
  EXPECT_EQ(found({0, 6, 7, 8, 4}, volume), Texts{});
  EXPECT_EQ(found({6, 7, 8}, volume), Texts{});
}

TEST(Axes, AreParsedFromText) {
  for (const char* text : {"DHWC", "CDHW", "NDHWC", "NCDHW", "DHW", "HWC", "CHW", "NHW", "WC", "NCW", "NW"})
    EXPECT_EQ(data::arrays::to_text(data::arrays::parse_axes(text).value()), text);
  for (const char* text : {"", "WHDC", "dhwc", "DCHW", "N"}) EXPECT_FALSE(data::arrays::parse_axes(text)) << text;
}

}  // namespace
}  // namespace orthant
