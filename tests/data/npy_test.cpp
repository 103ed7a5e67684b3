#include "orthant/data/formats/npy.hpp"

#include "tests/data/temporary.hpp"

#include <cmath>
#include <numeric>

namespace orthant {
namespace {

using base::Exit;
using data::formats::NpyFile;
using test::expect_error;

const std::string good_header = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";

/// An npy file byte by byte.
std::string npy(const std::string& header, std::size_t data_bytes, char version = 1) {
  std::string file = "\x93NUMPY";
  file += version;
  file += '\0';
  file += static_cast<char>(header.size() & 255U);
  file += static_cast<char>(header.size() >> 8U);
  if (version > 1) file += std::string(2, '\0');
  return file + header + std::string(data_bytes, '\0');
}

std::string with_type(const std::string& type, const std::string& shape) {
  return "{'descr': '" + type + "', 'fortran_order': False, 'shape': (" + shape + "), }";
}

TEST(Npy, ReadsWhatItWrote) {
  const test::TemporaryDirectory folder;
  std::vector<float> items(24);
  std::iota(items.begin(), items.end(), -3.5F);
  data::formats::write_npy(folder.file("a.npy"), {2, 3, 4}, items);

  const NpyFile file(folder.file("a.npy"));
  std::vector<float> back(24);
  const tensor::Shape shape{.n = 1, .c = 1, .d = 2, .h = 3, .w = 4};
  file.read(tensor::channels_first(shape), tensor::whole(shape), back);

  EXPECT_EQ(file.extents(), (std::vector<std::int64_t>{2, 3, 4}));
  EXPECT_EQ(back, items);
  std::vector<float> some(4);
  const std::int64_t bytes =
      file.read(tensor::channels_first(shape), {.lo = {0, 0, 0, 1, 1}, .hi = {1, 1, 1, 3, 3}}, some);
  EXPECT_EQ(some, (std::vector<float>{1.5F, 2.5F, 5.5F, 6.5F}));
  EXPECT_EQ(bytes, 16);
}

TEST(Npy, ReadsAllVersionsAndOddHeaders) {
  const test::TemporaryDirectory folder;
  for (const char version : {'\1', '\2', '\3'})
    EXPECT_EQ(NpyFile(folder.write("a", npy(good_header, 24, version))).items(), 6);
  EXPECT_EQ(
      NpyFile(folder.write("b", npy("{\"shape\":(6,),\"fortran_order\":False,\"descr\":\"<f4\"}   \n", 24))).items(),
      6);
  EXPECT_EQ(NpyFile(folder.write("c", npy(with_type("<f8", ""), 8))).extents().size(), 0U);
}

TEST(Npy, TurnsChannelsLastPieceByPiece) {
  const test::TemporaryDirectory folder;
  const tensor::Shape shape{.n = 2, .c = 3, .d = 5, .h = 97, .w = 211};
  std::vector<float> items(static_cast<std::size_t>(tensor::volume(shape)));
  std::iota(items.begin(), items.end(), 0.0F);
  data::formats::write_npy(folder.file("a.npy"), {2, 3, 5, 97, 211}, items);

  std::vector<float> last(items.size());
  NpyFile(folder.file("a.npy")).read(tensor::channels_first(shape), tensor::whole(shape), last);

  const std::int64_t pixels = shape.d * shape.h * shape.w;
  bool equal = true;
  for (std::int64_t n = 0; n < 2; ++n) {
    for (std::int64_t c = 0; c < 3; ++c) {
      for (std::int64_t p = 0; p < pixels; ++p) {
        equal &= last[static_cast<std::size_t>((n * pixels + p) * 3 + c)] ==
                 items[static_cast<std::size_t>((n * 3 + c) * pixels + p)];
      }
    }
  }
  EXPECT_TRUE(equal);
}

TEST(Npy, RefusesMalformedFiles) {
  struct Case {
    std::string bytes, message;
  };
  const std::string huge = "9223372036854775807";
  const std::vector<Case> cases{
      {"", "only 0 bytes"},
      {"\x93NUMPY", "only 6 bytes"},
      {std::string(100, 'x'), "does not start with"},
      {"PK\x03\x04 a zip file, as numpy.savez writes", "does not start with"},
      {npy(good_header, 24, 9), "npy version 9"},
      {npy(good_header, 24).substr(0, 40), "header claims"},
      {npy(good_header, 23), "is truncated"},
      {npy(good_header, 0), "is truncated"},
      {npy(good_header, 25), "1 bytes after its array"},
      {npy(with_type("<f4", huge + ", " + huge), 24), "more than 2^63"},
      {npy(with_type("<f4", huge), 24), "more than 2^63"},
      {npy(with_type("<f4", "4611686018427387904"), 24), "more than 2^63"},
      {npy(with_type("<f4", "1000000000000"), 24), "is truncated"},
      {npy(with_type("<f4", "-2, 3"), 24), "no usable number"},
      {npy(with_type("<f4", "99999999999999999999"), 24), "no usable number"},
      {npy(with_type("<f4", "2, x"), 24), "no usable number"},
      {npy(with_type(">f4", "2, 3"), 24), "type '>f4'"},
      {npy(with_type("<c8", "2, 3"), 48), "type '<c8'"},
      {npy(with_type("|O", "2, 3"), 48), "type '|O'"},
      {npy("{'descr': [('a', '<f4')], 'fortran_order': False, 'shape': (6,), }", 24), "structured"},
      {npy("{'descr': '<f4', 'fortran_order': False, }", 24), "is missing"},
      {npy("{'descr': '<f4', 'descr': '<f4', 'shape': (6,), }", 24), "unexpected key 'descr'"},
      {npy("{'descr': '<f4', 'fortran_order': Maybe, 'shape': (6,), }", 24), "True or False"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), 'more': 1}", 24), "unexpected key 'more'"},
      {npy("{'descr': '<f4', 'fortran_order': False, 'shape': (6,), } x", 24), "goes on"},
      {npy("{'descr': '<f4", 24), "not closed"},
      {npy("", 24), "'{' expected"},
      {npy("{'descr': '<f4', 'fortran_order': True, 'shape': (2, 3), }", 24), "Fortran order"},
  };
  const test::TemporaryDirectory folder;
  for (const Case& bad : cases) {
    SCOPED_TRACE(bad.message);
    expect_error(Exit::bad_data, bad.message, [&] { NpyFile(folder.write("bad.npy", bad.bytes)); });
  }
}

TEST(Npy, NamesThePlaceOfNumbersThatAreNotFinite) {
  const test::TemporaryDirectory folder;
  std::vector<float> items(24, 1);
  items[17] = std::nanf("");
  data::formats::write_npy(folder.file("nan.npy"), {2, 3, 4}, items);
  const NpyFile file(folder.file("nan.npy"));

  for (const tensor::Shape shape :
       {tensor::Shape{.n = 1, .c = 1, .d = 1, .h = 6, .w = 4}, tensor::Shape{.n = 2, .c = 3, .d = 1, .h = 1, .w = 4}}) {
    expect_error(Exit::bad_data, "nan.npy' at [1, 1, 1] holds nan",
                 [&] { file.read(tensor::channels_first(shape), tensor::whole(shape), items); });
  }
}

TEST(Npy, ReadsLabelsAndRefusesThoseOutOfRange) {
  const test::TemporaryDirectory folder;
  std::string bytes = npy(with_type("<i8", "3"), 24);
  bytes[bytes.size() - 8] = 4;
  const NpyFile file(folder.write("labels.npy", bytes));
  std::vector<std::int32_t> labels(3);
  const tensor::Layout layout = tensor::channels_first({.n = 3});
  const tensor::Box all = tensor::whole({.n = 3});

  file.read_labels(layout, all, 5, labels);

  EXPECT_EQ(labels, (std::vector<std::int32_t>{0, 0, 4}));
  expect_error(Exit::bad_data, "at [2] holds label 4, but the network has classes 0 to 3",
               [&] { file.read_labels(layout, all, 4, labels); });
  bytes.back() = '\xFF';
  const NpyFile negative(folder.write("negative.npy", bytes));
  expect_error(Exit::bad_data, "holds label -", [&] { negative.read_labels(layout, all, 5, labels); });
  const NpyFile real(folder.write("real.npy", npy(with_type("<f4", "3"), 12)));
  expect_error(Exit::bad_data, "labels must be integers", [&] { real.read_labels(layout, all, 5, labels); });
}

}  // namespace
}  // namespace orthant
