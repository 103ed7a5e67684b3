#include "orthant/cli/table.hpp"

#include <gtest/gtest.h>

namespace orthant::cli {
namespace {

TEST(Table, AlignsColumns) {
  Table table({{"name", Table::Align::left}, {"ms"}});
  table.add({"conv1", "1.5"});
  table.add({"é", "10.25"});
  table.add_line();
  table.add({"all"});

  EXPECT_EQ(table.text(),
            "name      ms\n"
            "------------\n"
            "conv1    1.5\n"
            "é      10.25\n"
            "------------\n"
            "all\n");
}

}  // namespace
}  // namespace orthant::cli
