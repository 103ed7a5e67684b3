#include "orthant/model/printable.hpp"

#include <gtest/gtest.h>

namespace orthant::model {
namespace {

TEST(Printable, KeepsMessagesOnOneShortLine) {
  EXPECT_EQ(printable("a b"), "a b");
  EXPECT_EQ(printable(std::string_view("a\nb\0\x7f\xff", 6)), "a?b???");
  EXPECT_EQ(printable("abcdef", 3), "abc");
}

}  // namespace
}  // namespace orthant::model
