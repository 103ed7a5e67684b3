#include "orthant/data/io/file_list.hpp"

#include "tests/data/temporary.hpp"

namespace orthant {
namespace {

using base::Exit;
using test::expect_error;
using Paths = std::vector<std::string>;

TEST(MatchingPaths, SortsAndRefusesNothing) {
  const test::TemporaryDirectory folder;
  for (const char* name : {"b.npy", "a.npy", "c.txt"}) folder.write(name, "x");

  EXPECT_EQ(data::io::matching_paths(folder.file("*.npy")),
            (std::vector<std::string>{folder.file("a.npy"), folder.file("b.npy")}));
  EXPECT_EQ(data::io::matching_paths("plain"), (std::vector<std::string>{"plain"}));
  expect_error(Exit::missing_input, "no file matches", [&] { data::io::matching_paths(folder.file("*.h5")); });
}

TEST(ListFiles, TakesDirectoriesPatternsAndLists) {
  const test::TemporaryDirectory folder;
  for (const char* name : {"b.h5", "a.h5", "c.hdf5", "d.npy"}) folder.write(name, "x");
  const std::string list = folder.write("list.txt", "b.h5\r\n\n  \nsub/e.h5\n/root.h5");
  const Paths endings{".h5", ".hdf5"};

  EXPECT_EQ(data::io::list_files({folder.file("")}, endings),
            (Paths{folder.file("a.h5"), folder.file("b.h5"), folder.file("c.hdf5")}));
  EXPECT_EQ(data::io::list_files({list, folder.file("a*")}, endings),
            (Paths{folder.file("b.h5"), folder.file("sub/e.h5"), "/root.h5", folder.file("a.h5")}));
  expect_error(Exit::missing_input, "has no file that ends in .nii",
               [&] { data::io::list_files({folder.file("")}, {".nii"}); });
  expect_error(Exit::bad_data, "names no files",
               [&] { data::io::list_files({folder.write("empty.txt", "\n")}, endings); });
  expect_error(Exit::missing_input, "No such file", [&] { data::io::list_files({folder.file("no.txt")}, endings); });
}

}  // namespace
}  // namespace orthant
