#include "orthant/base/error.hpp"

#include <gtest/gtest.h>

namespace orthant::base {
namespace {

TEST(Error, CarriesCodeAndMessage) {
  try {
    fail(Exit::missing_input, "{}: cannot be opened; check the path", "a.npy");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::missing_input);
    EXPECT_STREQ(error.what(), "a.npy: cannot be opened; check the path");
    return;
  }
  FAIL() << "nothing thrown";
}

TEST(Error, ExitCodesAreTheDocumentedOnes) {
  EXPECT_EQ(static_cast<int>(Exit::usage), 64);
  EXPECT_EQ(static_cast<int>(Exit::bad_data), 65);
  EXPECT_EQ(static_cast<int>(Exit::missing_input), 66);
  EXPECT_EQ(static_cast<int>(Exit::internal), 70);
  EXPECT_EQ(static_cast<int>(Exit::does_not_fit), 71);
  EXPECT_EQ(static_cast<int>(Exit::io), 74);
  EXPECT_EQ(static_cast<int>(Exit::busy), 75);
  EXPECT_EQ(static_cast<int>(Exit::disagreement), 76);
  EXPECT_EQ(static_cast<int>(Exit::stopped), 85);
  EXPECT_EQ(static_cast<int>(Exit::watchdog), 86);
  EXPECT_EQ(static_cast<int>(Exit::non_finite), 87);
}

}  // namespace
}  // namespace orthant::base
