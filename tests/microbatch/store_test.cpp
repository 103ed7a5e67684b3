#include "orthant/microbatch/store.hpp"

#include "tests/data/temporary.hpp"

#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <thread>
#include <vector>

namespace orthant::test {
namespace {

using microbatch::Records;
using microbatch::Store;

TEST(Store, KeepsMachinesApart) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  const Records of_a{{"task", {{"winograd", 0.25, 4096}}}};
  const Records of_b{{"task", {{"direct", 1e-6, 0}}}};
  EXPECT_TRUE(Store(path, "a").add(of_a));
  EXPECT_TRUE(Store(path, "b").add(of_b));
  EXPECT_EQ(Store(path, "a").load(), of_a);
  EXPECT_EQ(Store(path, "b").load(), of_b);
  EXPECT_TRUE(Store(path, "c").load().empty());
}

/// A file that makes a parser that recurses run out of stack, or that takes all memory when it is indented.
TEST(Store, DeepAndLargeFilesAreIgnored) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  const std::string start = R"({"format": "orthant-kernels", "version": 3, "machines": {"b": )";
  for (const std::string& text :
       {start + std::string(2'000'000, '['), start + std::string(40'000, '[') + std::string(40'000, ']') + "}}",
        "{" + std::string(20 << 20, ' ') + "}"}) {
    std::ofstream(path) << text;
    EXPECT_TRUE(Store(path, "a").load().empty());
    EXPECT_NE(Store(path, "a").trouble(), "");
    EXPECT_TRUE(Store(path, "a").add({{"task", {{"matrix"}}}}));
    EXPECT_LT(std::filesystem::file_size(path), 1000U);
    EXPECT_EQ(Store(path, "a").trouble(), "");
  }
}

TEST(Store, NeitherWaitsForAFifoNorReplacesIt) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  ASSERT_EQ(mkfifo(path.c_str(), 0600), 0);
  EXPECT_TRUE(Store(path, "a").load().empty());
  EXPECT_EQ(Store(path, "a").trouble(), "it is no regular file");
  EXPECT_FALSE(Store(path, "a").add({{"task", {{"matrix"}}}}));
  EXPECT_TRUE(std::filesystem::is_fifo(path));
}

TEST(Store, DoesNotWaitForALockThatIsKept) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  const int other = open((path + ".lock").c_str(), O_CREAT | O_RDWR | O_CLOEXEC, 0600);
  ASSERT_EQ(flock(other, LOCK_EX), 0);
  EXPECT_FALSE(Store(path, "a").add({{"task", {{"matrix"}}}}));
  close(other);
  EXPECT_TRUE(Store(path, "a").add({{"task", {{"matrix"}}}}));
}

TEST(Store, DoesNotFollowAPlantedLink) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  const std::string victim = folder.file("victim");
  std::ofstream(victim) << "precious";
  std::filesystem::create_symlink(victim, path + "." + std::to_string(getpid()));
  EXPECT_TRUE(Store(path, "a").add({{"task", {{"matrix"}}}}));
  EXPECT_EQ(std::filesystem::file_size(victim), 8U);
}

TEST(Store, ADamagedFileIsEmptyAndWrittenAnew) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  for (const char* text :
       {"", "{", "[]", R"({"format": "orthant-kernels", "version": 4, "machines": {}})",
        R"({"format": "orthant-kernels", "version": 1, "machines": {"a": {"task": "direct"}}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": 7}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": {"task": 3, "other": "direct"}}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": {"task":
            {"algorithm": "direct", "seconds": 1, "workspace_bytes": 0}}}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": {"task": []}}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": {"task":
            [{"algorithm": "direct", "seconds": 1, "workspace_bytes": -8}]}}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": {"task":
            [{"algorithm": "direct", "seconds": 1, "workspace_bytes": 0}, {"algorithm": "matrix"}]}}})",
        R"({"format": "orthant-kernels", "version": 3, "machines": {"a": {"task": [{"algorithm": "direct"}]}}})"}) {
    std::ofstream(path) << text;
    EXPECT_TRUE(Store(path, "a").load().empty()) << text;
    EXPECT_TRUE(Store(path, "a").add({{"task", {{"matrix"}}}})) << text;
    EXPECT_EQ(Store(path, "a").load().at("task").front().algorithm, "matrix") << text;
  }
}

TEST(Store, SurvivesManyWriters) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  std::vector<std::thread> writers;
  for (int i = 0; i < 8; ++i) {
    writers.emplace_back([&, i] { EXPECT_TRUE(Store(path, "a").add({{"task " + std::to_string(i), {{"onednn"}}}})); });
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(Store(path, "a").load().size(), 8U);
}

TEST(Store, SaysWhyAFileIsIgnored) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("kernels.json");
  EXPECT_EQ(Store(path, "a").trouble(), "");
  for (const char* text : {R"({"format": "orthant-kernels", "version": 2, "machines": {}})", R"({"other": 1})", "[]"}) {
    std::ofstream(path) << text;
    EXPECT_NE(Store(path, "a").trouble(), "") << text;
  }
}

TEST(Store, APlaceThatCannotBeWrittenIsNoError) {
  EXPECT_FALSE(Store("/proc/nowhere/kernels.json", "a").add({{"task", {{"direct"}}}}));
  EXPECT_TRUE(Store("", "a").add({{"task", {{"direct"}}}}));
}

}  // namespace
}  // namespace orthant::test
