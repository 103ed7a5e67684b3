#include "orthant/data/io/gzip_file.hpp"

#include "tests/data/temporary.hpp"

namespace orthant {
namespace {

std::string unpacked(const std::string& path) {
  const std::vector<std::byte> bytes =
      data::io::read_unpacked(path, [](std::span<const std::byte> so_far) { return so_far.size() + 1000; });
  return {reinterpret_cast<const char*>(bytes.data()), bytes.size()};
}

TEST(GzipFile, ReadsPackedAndPlainFiles) {
  const test::TemporaryDirectory folder;
  std::string text;
  for (std::uint64_t i = 0; i < 2'000'000; ++i) text += static_cast<char>(i * i >> 7U);

  EXPECT_EQ(unpacked(folder.write("plain", text)), text);
  EXPECT_EQ(unpacked(folder.write("packed", data::io::gzip(text))), text);
  EXPECT_EQ(unpacked(folder.write("twice", data::io::gzip(text) + data::io::gzip("more"))), text + "more");
  EXPECT_EQ(unpacked(folder.write("empty", "")), "");
}

TEST(GzipFile, RefusesDamage) {
  const test::TemporaryDirectory folder;
  const std::string packed = data::io::gzip(std::string(100'000, 'x') + "y");
  std::string flipped = packed;
  flipped[packed.size() / 2] ^= 1;

  for (const std::string& bad : {packed.substr(0, packed.size() - 3), flipped, packed.substr(0, 12)}) {
    test::expect_error(base::Exit::bad_data, "does not unpack", [&] { unpacked(folder.write("bad", bad)); });
  }
  test::expect_error(base::Exit::bad_data, "4 bytes after its gzip data",
                     [&] { unpacked(folder.write("bad", packed + "tail")); });
}

TEST(GzipFile, UnpacksNoMoreThanIsAskedFor) {
  const test::TemporaryDirectory folder;
  // Damage after what is wanted is never seen.
  const std::string packed = data::io::gzip(std::string(100'000, 'x')) + "tail";
  const auto up_to = [](std::size_t most) {
    return [most](std::span<const std::byte> so_far) { return std::max(most, so_far.size()); };
  };
  EXPECT_EQ(data::io::read_unpacked(folder.write("bomb", packed), up_to(5000)).size(), 5000U);
  EXPECT_EQ(data::io::read_unpacked(folder.write("bomb", packed), up_to(std::size_t{1} << 40U)).size(), 0U);
}

}  // namespace
}  // namespace orthant
