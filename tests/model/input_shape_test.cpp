#include "tests/model/message.hpp"

#include "orthant/model/input_shape.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

TEST(ParseInput, ReadsVolumesImagesAndLines) {
  EXPECT_EQ(parse_input("2x4096", 3), (InputShape{{3, 2, 1, 1, 4096}, 1}));
  EXPECT_EQ(input_text(parse_input("2x4096", 3)), "2x4096");
  EXPECT_EQ(parse_input("4x128x64x32", 2), (InputShape{{2, 4, 128, 64, 32}, 3}));
  EXPECT_EQ(parse_input("3x224x200", 1), (InputShape{{1, 3, 1, 224, 200}, 2}));
  EXPECT_EQ(input_text(parse_input("4x128x64x32", 2)), "4x128x64x32");
  EXPECT_EQ(input_text(parse_input("3x224x200", 2)), "3x224x200");
}

TEST(ParseInput, RefusesEverythingElse) {
  const std::string remedy = "; write CxDxHxW as 4x128x128x128, CxHxW as 3x224x224, or CxW as 2x4096";
  const std::vector<std::pair<std::string, std::string>> cases{
      {"", "input '': '' is not a number" + remedy},
      {"foo", "input 'foo': 'foo' is not a number" + remedy},
      {"4x128x128x", "input '4x128x128x': '' is not a number" + remedy},
      {"x4x1x1", "input 'x4x1x1': '' is not a number" + remedy},
      {"4 x8x8x8", "input '4 x8x8x8': '4 ' is not a number" + remedy},
      {"4x8.5x8x8", "input '4x8.5x8x8': '8.5' is not a number" + remedy},
      {"+4x8x8x8", "input '+4x8x8x8': '+4' is not a number" + remedy},
      {"4X8X8", "input '4X8X8': '4X8X8' is not a number" + remedy},
      {"4", "input '4': 1 extents" + remedy},
      {"1x1x1x1x1", "input '1x1x1x1x1': more than four extents" + remedy},
      {"4x0x1x1", "input '4x0x1x1': an extent is 0; each must be at least 1"},
      {"4x-8x1x1", "input '4x-8x1x1': an extent is -8; each must be at least 1"},
      {"4x2147483648x1x1", "input '4x2147483648x1x1': an extent is 2147483648; at most 2147483647 is supported"},
      {"4x99999999999999999999x1x1",
       "input '4x99999999999999999999x1x1': an extent is too large; at most 2147483647 is supported"},
      {"4\nx", "input '4?x': '4?' is not a number" + remedy},
  };
  for (const auto& [text, message] : cases) {
    EXPECT_EQ(message_of([&, &input = text] { parse_input(input, 1); }), "64: " + message);
  }
}

TEST(ParseInput, RefusesBadMiniBatches) {
  EXPECT_EQ(message_of([] { parse_input("1x1x1", 0); }),
            "64: a mini-batch of 0 samples; it must be from 1 to 2147483647");
  EXPECT_EQ(message_of([] { parse_input("1x1x1", -3); }),
            "64: a mini-batch of -3 samples; it must be from 1 to 2147483647");
}

}  // namespace
}  // namespace orthant::model
