#include "orthant/data/io/file.hpp"

#include "tests/data/temporary.hpp"

namespace orthant {
namespace {

using base::Exit;
using test::expect_error;

TEST(InputFile, RefusesWhatIsNotThere) {
  const test::TemporaryDirectory folder;
  expect_error(Exit::missing_input, "cannot open", [&] { data::io::InputFile(folder.file("nothing")); });
  expect_error(Exit::missing_input, "cannot open", [&] { data::io::InputFile(folder.write("a", "x") + "/b"); });
}

TEST(InputFile, RefusesDirectories) {
  const test::TemporaryDirectory folder;
  expect_error(Exit::io, "not a regular file", [&] { data::io::InputFile(folder.file("")); });
}

TEST(InputFile, RefusesToReadPastTheEnd) {
  const test::TemporaryDirectory folder;
  const data::io::InputFile file(folder.write("a", "12345"));
  std::array<std::byte, 4> bytes{};
  expect_error(Exit::io, "ends at byte 5", [&] { file.read(3, bytes); });
}

TEST(OutputFile, AppearsOnlyWhenCommitted) {
  const test::TemporaryDirectory folder;
  {
    data::io::OutputFile file(folder.file("a"));
    file.write("half");
  }
  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));

  data::io::write_text(folder.file("a"), "whole");

  EXPECT_EQ(data::io::read_text(folder.file("a")), "whole");
}

TEST(OutputFile, KeepsTheOldFileUntilTheNewIsComplete) {
  const test::TemporaryDirectory folder;
  folder.write("a", "old");
  {
    data::io::OutputFile file(folder.file("a"));
    file.write("new");
    EXPECT_EQ(data::io::read_text(folder.file("a")), "old");
  }
  EXPECT_EQ(data::io::read_text(folder.file("a")), "old");
}

TEST(OutputFile, RefusesAMissingDirectory) {
  const test::TemporaryDirectory folder;
  expect_error(Exit::io, "cannot write", [&] { data::io::write_text(folder.file("no/such/a"), "x"); });
}

TEST(ReadText, RefusesLargeFiles) {
  const test::TemporaryDirectory folder;
  expect_error(Exit::bad_data, "more than the 3", [&] { data::io::read_text(folder.write("a", "1234"), 3); });
}

}  // namespace
}  // namespace orthant
