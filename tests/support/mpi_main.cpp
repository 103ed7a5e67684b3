#include "tests/support/mpi_main.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/run.hpp"

#include <gtest/gtest.h>

namespace orthant::test {
namespace {

comm::Comm* current = nullptr;

/// What ranks other than 0 print: failures, with their rank.
class Failures final : public testing::EmptyTestEventListener {
  void OnTestPartResult(const testing::TestPartResult& result) override {
    if (!result.failed()) return;
    fmt::print(stderr, "[rank {}] {}:{}: {}\n", current->rank(),
               result.file_name() == nullptr ? "" : result.file_name(), result.line_number(), result.summary());
  }
};

}  // namespace

comm::Comm& ranks() { return *current; }

}  // namespace orthant::test

int main(int argc, char** argv) {
  testing::InitGoogleTest(&argc, argv);
  // An exception on one rank must end the job: the others would wait for it in the next test.
  GTEST_FLAG_SET(catch_exceptions, false);
  const auto body = [](orthant::comm::Comm& comm) {
    orthant::test::current = &comm;
    testing::TestEventListeners& listeners = testing::UnitTest::GetInstance()->listeners();
    if (comm.rank() != 0) {
      delete listeners.Release(listeners.default_result_printer());
      listeners.Append(new orthant::test::Failures);
    }
    return RUN_ALL_TESTS();
  };
  return orthant::comm::run(body, {.piece_bytes = 1000});
}
