#include "orthant/data/io/file.hpp"

#include "tests/data/temporary.hpp"

#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

namespace {
// What the next calls of fsync() on files, and on directories, answer: an error number each, 0 for a real call.
std::vector<int> of_files, of_directories;

int next_of(std::vector<int>& answers) {
  if (answers.empty()) return 0;
  const int answer = answers.front();
  answers.erase(answers.begin());
  return answer;
}
}  // namespace

/// Takes the place of the C library's.
extern "C" int fsync(int file) {
  struct stat status {};
  fstat(file, &status);
  const int answer = next_of(S_ISDIR(status.st_mode) ? of_directories : of_files);
  if (answer == 0) return static_cast<int>(syscall(SYS_fsync, file));
  errno = answer;
  return -1;
}

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

TEST(OutputFile, SyncsAgainAfterASignal) {
  const test::TemporaryDirectory folder;
  of_files = {EINTR, EINTR};
  of_directories = {EINTR};
  data::io::write_text(folder.file("a"), "whole");
  EXPECT_TRUE(of_files.empty() && of_directories.empty());
  EXPECT_EQ(data::io::read_text(folder.file("a")), "whole");
}

TEST(OutputFile, SaysThatADirectoryCannotBeSynced) {
  const test::TemporaryDirectory folder;
  of_directories = {EIO};
  expect_error(Exit::io, "its directory: Input/output error", [&] { data::io::write_text(folder.file("a"), "x"); });
  // There are file systems that cannot.
  of_directories = {EINVAL};
  data::io::write_text(folder.file("a"), "x");
}

TEST(OutputFile, DoesNotFollowAPlantedLink) {
  const test::TemporaryDirectory folder;
  const std::string victim = folder.write("victim", "precious");
  std::filesystem::create_symlink(victim, folder.file("a.part"));
  std::filesystem::create_symlink(victim, folder.file("a"));
  data::io::write_text(folder.file("a"), "new");
  EXPECT_EQ(data::io::read_text(victim), "precious");
  EXPECT_EQ(data::io::read_text(folder.file("a")), "new");
  EXPECT_FALSE(std::filesystem::is_symlink(folder.file("a")));
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
