#include "orthant/comm/version.hpp"

#include "orthant/base/error.hpp"
#include "tests/support/thread_comm.hpp"

#include <gtest/gtest.h>

namespace orthant::comm {
namespace {

TEST(Version, NamesTheBuildOfThisProgram) {
  const std::string text = version_text();
  EXPECT_NE(text.find(", build "), std::string::npos) << text;
  EXPECT_EQ(text, version_text());
}

TEST(Version, DifferentProgramsAreRefusedWithBothNames) {
  test::run_threads(3, [](Comm& comm) { check_same_program(comm, "1.0, build a"); });
  try {
    test::run_threads(3,
                      [](Comm& comm) { check_same_program(comm, comm.rank() == 2 ? "1.1, build b" : "1.0, build a"); });
    FAIL() << "no error";
  } catch (const base::Error& error) {
    const std::string message = error.what();
    EXPECT_EQ(error.code(), base::Exit::disagreement);
    EXPECT_TRUE(message.starts_with("rank 2: host '")) << message;
    EXPECT_NE(message.find("runs version 1.1, build b, but rank 0 on host '"), std::string::npos) << message;
    EXPECT_NE(message.find("runs version 1.0, build a; install the same program on all hosts"), std::string::npos);
  }
}

}  // namespace
}  // namespace orthant::comm
