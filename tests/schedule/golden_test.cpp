// Whole schedules, word for word: whatever changes in them shows here, and in the diff of a commit.
#include "orthant/schedule/text.hpp"
#include "tests/schedule/small_schedules.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace orthant::schedule {
namespace {

/// The second convolution in pieces of samples and of slabs.
plan::KernelChoices in_pieces() {
  using enum model::Algorithm;
  return {.forward = {.algorithm = direct, .scratch_bytes = 640, .pieces = {{direct, 3}, {winograd, 1}}},
          .backward_data = {.algorithm = direct, .scratch_bytes = 64, .pieces = {{direct, 4, 2}}},
          .backward_weights = {.algorithm = matrix, .scratch_bytes = 128, .pieces = {{matrix, 2, 2}}}};
}

/// The small network under a grid: the schedules of all ranks. "pieces_d2" divides a convolution, too.
std::string all_ranks(std::string grid) {
  const bool divides = grid.starts_with("pieces_");
  if (divides) grid.erase(0, 7);
  const std::vector<Schedule> schedules = lowered(grid, {}, {}, divides ? in_pieces() : plan::KernelChoices{});
  EXPECT_EQ(verify(schedules), std::vector<std::string>{});
  std::string text;
  for (std::size_t rank = 0; rank < schedules.size(); ++rank)
    text += "== rank " + std::to_string(rank) + "\n" + to_full_text(schedules[rank]);
  return text;
}

std::string read(const std::string& path) {
  std::ostringstream text;
  text << std::ifstream(path).rdbuf();
  return text.str();
}

class Golden : public testing::TestWithParam<const char*> {};

/// ORTHANT_WRITE_GOLDEN=1 writes the files anew. Look at the difference before you commit it.
TEST_P(Golden, SchedulesAreAsBefore) {
  const std::string path = std::string(ORTHANT_GOLDEN_FOLDER) + "/" + GetParam() + ".txt";
  const std::string now = all_ranks(GetParam());
  if (std::getenv("ORTHANT_WRITE_GOLDEN")) std::ofstream(path) << now;
  std::istringstream before(read(path));
  std::istringstream after(now);
  std::string expected;
  std::string line;
  for (int number = 1; std::getline(after, line); ++number) {
    ASSERT_TRUE(std::getline(before, expected)) << path << " ends before line " << number << ": " << line;
    ASSERT_EQ(line, expected) << path << ":" << number;
  }
  EXPECT_FALSE(std::getline(before, expected)) << path << " has more: " << expected;
}

INSTANTIATE_TEST_SUITE_P(Grids, Golden, testing::Values("n1", "n2", "d2", "f2", "c2", "p2", "pieces_d2"),
                         [](const auto& grid) { return std::string(grid.param); });

}  // namespace
}  // namespace orthant::schedule
