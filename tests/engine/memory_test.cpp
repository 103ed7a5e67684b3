#include "orthant/engine/memory.hpp"

#include "tests/data/temporary.hpp"

namespace orthant::engine {
namespace {

TEST(Memory, SomethingIsAvailableAndHeld) {
  EXPECT_GT(available_memory_bytes(), 1 << 20);
  EXPECT_GT(peak_memory_bytes(), 1 << 20);
}

TEST(Memory, RefusesWhatDoesNotFit) {
  check_memory(1);

  test::expect_error(base::Exit::does_not_fit, "the step needs 1048576.00 GiB but ",
                     [] { check_memory(std::int64_t{1} << 50); });
}

}  // namespace
}  // namespace orthant::engine
