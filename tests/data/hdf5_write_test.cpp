#include "orthant/data/formats/hdf5_write.hpp"

#include "tests/data/temporary.hpp"

#include <gtest/gtest.h>

#include <chrono>
#include <cstdlib>
#include <numeric>
#include <thread>

namespace orthant::data::formats {
namespace {

using base::Exit;
using test::TemporaryDirectory;

/// True if h5py, another reader of the format, finds this Python expression of file f true.
::testing::AssertionResult h5py_agrees(const std::string& path, const std::string& expression) {
  const std::string script = "import h5py, numpy as np; f = h5py.File('" + path + "'); assert " + expression;
  const int status = std::system((std::string(ORTHANT_PYTHON) + " -c \"" + script + "\"").c_str());
  if (status == 0) return ::testing::AssertionSuccess();
  return ::testing::AssertionFailure() << "not so: " << expression;
}

template <class T>
std::vector<T> counted(std::size_t count) {
  std::vector<T> numbers(count);
  std::iota(numbers.begin(), numbers.end(), T{1});
  return numbers;
}

template <class T>
void write_all(Hdf5Writer& file, const std::string& name, arrays::NumberType type) {
  file.create(name, {.type = type, .extents = {2, 3, 4}});
  const std::vector<T> numbers = counted<T>(24);
  file.append(name, std::as_bytes(std::span(numbers)));
}

TEST(Hdf5Write, NumbersOfEveryTypeAreReadBack) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("all.h5");
  Hdf5Writer file(path);
  write_all<float>(file, "float32", arrays::NumberType::f32);
  write_all<std::int16_t>(file, "int16", arrays::NumberType::i16);
  write_all<std::uint16_t>(file, "uint16", arrays::NumberType::u16);
  write_all<std::int32_t>(file, "int32", arrays::NumberType::i32);
  write_all<std::uint8_t>(file, "uint8", arrays::NumberType::u8);
  file.commit();

  EXPECT_TRUE(h5py_agrees(path,
                          "all(f[k].dtype == np.dtype(k) and f[k].chunks is None and "
                          "(f[k][:] == np.arange(1, 25).reshape(2, 3, 4)).all() for k in f) and len(f) == 5"));
}

TEST(Hdf5Write, BoxesAndPlanesOfChunkedAndContiguousSets) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("boxes.h5");
  Hdf5Writer file(path);
  const std::vector<std::int32_t> numbers = counted<std::int32_t>(5 * 4 * 3);
  for (const int gzip : {0, 6}) {
    const std::string name = gzip > 0 ? "packed" : "plain";
    file.create(name, {.type = arrays::NumberType::i32, .extents = {5, 4, 3}, .chunk = {2, 2, 3}, .gzip = gzip});
    const auto bytes = std::as_bytes(std::span(numbers));
    file.append(name, bytes.first(2 * 12 * 4));
    file.append(name, bytes.subspan(2 * 12 * 4));
  }
  file.create("patch", {.type = arrays::NumberType::i32, .extents = {4, 4}});
  const std::vector<std::int32_t> zeros(16, 0), patch{7, 8, 9, 10, 11, 12};
  file.append("patch", std::as_bytes(std::span(zeros)));
  file.write("patch", std::array<std::int64_t, 2>{1, 2}, std::array<std::int64_t, 2>{3, 2},
             std::as_bytes(std::span(patch)));
  file.commit();

  EXPECT_TRUE(
      h5py_agrees(path, "all((f[k][:] == np.arange(1, 61).reshape(5, 4, 3)).all() for k in ('plain', 'packed'))"));
  EXPECT_TRUE(h5py_agrees(path,
                          "f['packed'].compression == 'gzip' and f['packed'].compression_opts == 6 and "
                          "f['plain'].compression is None and f['plain'].chunks == (2, 2, 3)"));
  EXPECT_TRUE(
      h5py_agrees(path, "(f['patch'][1:, 2:] == [[7, 8], [9, 10], [11, 12]]).all() and f['patch'][:].sum() == 57"));
}

TEST(Hdf5Write, AttributesOfFileAndDataSets) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("attributes.h5");
  Hdf5Writer file(path);
  file.create("x", {.extents = {1}});
  const std::vector<float> number{1};
  file.append("x", std::as_bytes(std::span(number)));
  file.attribute("", "text", std::string("two words"));
  file.attribute("x", "numbers", std::array{1.5, -2.0});
  file.attribute("x", "whole", std::int64_t{1} << 40U);
  file.commit();

  EXPECT_TRUE(h5py_agrees(path,
                          "f.attrs['text'] in (b'two words', 'two words') and "
                          "list(f['x'].attrs['numbers']) == [1.5, -2] and f['x'].attrs['whole'] == 2**40"));
}

TEST(Hdf5Write, FileIsThereOnlyOnceCommitted) {
  const TemporaryDirectory folder;
  const std::string path = folder.file("half.h5");
  {
    Hdf5Writer file(path);
    write_all<float>(file, "x", arrays::NumberType::f32);
    EXPECT_FALSE(std::filesystem::exists(path));
  }

  EXPECT_TRUE(std::filesystem::is_empty(std::filesystem::path(path).parent_path()));
}

TEST(Hdf5Write, SameContentsGiveTheSameBytes) {
  const TemporaryDirectory folder;
  for (const std::string name : {"a.h5", "b.h5"}) {
    // The next second, in case there are times in the file.
    if (name == "b.h5") std::this_thread::sleep_for(std::chrono::milliseconds(1050));
    Hdf5Writer file(folder.file(name));
    write_all<float>(file, "x", arrays::NumberType::f32);
    file.attribute("x", "text", std::string("y"));
    file.commit();
  }

  EXPECT_EQ(io::read_text(folder.file("a.h5")), io::read_text(folder.file("b.h5")));
}

TEST(Hdf5Write, RefusesWhatCannotBe) {
  const TemporaryDirectory folder;
  test::expect_error(Exit::io, "No such file", [&] { Hdf5Writer(folder.file("none/x.h5")); });
  const std::vector<float> three(3);
  Hdf5Writer file(folder.file("x.h5"));
  file.create("x", {.extents = {2, 2}});
  test::expect_error(Exit::internal, "12 bytes for a box of 16", [&] {
    file.write("x", std::array<std::int64_t, 2>{0, 0}, std::array<std::int64_t, 2>{2, 2},
               std::as_bytes(std::span(three)));
  });
  test::expect_error(Exit::internal, "was not created", [&] { file.append("y", {}); });
}

}  // namespace
}  // namespace orthant::data::formats
