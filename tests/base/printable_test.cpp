#include "orthant/base/printable.hpp"

#include <gtest/gtest.h>

namespace orthant::base {
namespace {

TEST(Printable, KeepsTextOfAnyLanguage) {
  for (const char* text :
       {"run.yaml:2: unknown key", "caf\xC3\xA9", "\xE6\x97\xA5\xE6\x9C\xAC", "\xF0\x9F\x98\x80", ""})
    EXPECT_EQ(one_line(text), text);
}

TEST(Printable, ShowsNothingThatATerminalObeys) {
  EXPECT_EQ(one_line("a\x1B[2Jb\x07\x7F"), "a?[2Jb??");
  EXPECT_EQ(one_line("a\nb\rc\td"), "a b c d");
  EXPECT_EQ(one_line("\xC2\x9B"
                     "2J"),
            "??2J");  // the control character CSI in UTF-8
  EXPECT_EQ(one_line("\xE2\x80\xAE"
                     "gpj.exe"),
            "???gpj.exe");  // right to left
  EXPECT_EQ(one_line("\xFF\xC3"), "??");
  EXPECT_EQ(one_line(std::string_view("a\0b", 3)), "a?b");
}

TEST(Printable, LeavesOutTheMiddleOfLongText) {
  const std::string text = "the start" + std::string(100'000, 'x') + "the end";
  const std::string line = one_line(text);
  EXPECT_LT(line.size(), 2100U);
  EXPECT_TRUE(line.starts_with("the start") && line.ends_with("the end"));
  EXPECT_NE(line.find("98016 characters"), std::string::npos) << line;
}

}  // namespace
}  // namespace orthant::base
