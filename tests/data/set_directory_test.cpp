#include "orthant/data/io/set_directory.hpp"

#include "tests/data/temporary.hpp"

namespace orthant::data::io {
namespace {

using base::Exit;
using test::expect_error;
using test::TemporaryDirectory;

TEST(SetDirectory, IsMadeWithItsParents) {
  const TemporaryDirectory folder;
  const SetDirectory wanted{.path = folder.file("a/b/c"), .prefix = "x_"};
  check_directory(wanted);
  EXPECT_FALSE(std::filesystem::exists(folder.file("a")));

  make_directory(wanted);

  EXPECT_TRUE(std::filesystem::is_directory(folder.file("a/b/c")));
}

TEST(SetDirectory, MustBeEmptyUnlessItMayBeOverwritten) {
  const TemporaryDirectory folder;
  folder.write("x_1.h5", "old");
  folder.write("x_2.h5.part", "old");
  folder.write("notes.txt", "mine");
  SetDirectory wanted{.path = folder.file(""), .prefix = "x_"};
  expect_error(Exit::io, "is not empty", [&] { make_directory(wanted); });
  EXPECT_TRUE(std::filesystem::exists(folder.file("x_1.h5")));

  wanted.overwrite = true;
  make_directory(wanted);

  EXPECT_FALSE(std::filesystem::exists(folder.file("x_1.h5")));
  EXPECT_FALSE(std::filesystem::exists(folder.file("x_2.h5.part")));
  EXPECT_TRUE(std::filesystem::exists(folder.file("notes.txt")));
}

TEST(SetDirectory, RefusesWhatCannotBeWritten) {
  const TemporaryDirectory folder;
  folder.write("file", "x");
  expect_error(Exit::io, "is a file", [&] { make_directory({.path = folder.file("file/below")}); });
  expect_error(Exit::io, "cannot make the directory", [&] { make_directory({.path = "/proc/none"}); });
  expect_error(Exit::io, "has",
               [&] { make_directory({.path = folder.file("large"), .bytes = std::int64_t{1} << 60U}); });
  EXPECT_FALSE(std::filesystem::exists(folder.file("large")));
}

}  // namespace
}  // namespace orthant::data::io
