// Whole schedules, word for word: whatever changes in them shows here, and in the diff of a commit.
#include "orthant/schedule/text.hpp"
#include "tests/schedule/small_schedules.hpp"

#include <cstdlib>
#include <fstream>
#include <sstream>

namespace orthant::schedule {
namespace {

/// The small network under a grid: the schedules of all ranks.
std::string all_ranks(const std::string& grid) {
  const std::vector<Schedule> schedules = lowered(grid);
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

INSTANTIATE_TEST_SUITE_P(Grids, Golden, testing::Values("n1", "n2", "d2", "f2", "c2", "p2"),
                         [](const auto& grid) { return std::string(grid.param); });

}  // namespace
}  // namespace orthant::schedule
