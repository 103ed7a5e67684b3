#include "orthant/data/sets/hdf5_dataset.hpp"

#include "tests/data/temporary.hpp"

namespace orthant {
namespace {

using base::Exit;
using data::arrays::NumberType;
using data::formats::Hdf5Array;
using data::formats::Hdf5Outline;
using data::sets::Hdf5Dataset;
using data::sets::SampleShape;
using test::expect_error;
using Extents = std::vector<std::int64_t>;

constexpr SampleShape volume{.input = {.n = 1, .c = 2, .d = 3, .h = 3, .w = 3}, .target = {.n = 1, .c = 4}};
constexpr SampleShape voxels{.input = {.n = 1, .c = 1, .d = 3, .h = 3, .w = 3},
                             .target = {.n = 1, .c = 1, .d = 3, .h = 3, .w = 3},
                             .labels = true,
                             .classes = 5};

/// Files of bytes that say where they are, without the library: an outline is all that is needed to read.
class Files {
 public:
  /// Each array is uint8 and begins at byte 0 of a file of 256 bytes 0, 1, 2, ...
  Hdf5Outline add(const std::string& name, const std::vector<std::pair<std::string, Extents>>& arrays) const {
    std::string bytes;
    for (int i = 0; i < 256; ++i) bytes += static_cast<char>(i);
    Hdf5Outline outline{.path = folder.write(name, bytes), .bytes = 256};
    for (const auto& [key, extents] : arrays)
      outline.arrays.push_back({.name = key, .type = NumberType::u8, .extents = extents});
    return outline;
  }
  test::TemporaryDirectory folder;
};

TEST(Hdf5Dataset, FindsKeysAxesAndSamples) {
  const Files files;
  const Hdf5Dataset set({files.add("a.h5", {{"full", {3, 3, 3, 2}}, {"unitPar", {4}}}),
                         files.add("b.h5", {{"full", {3, 2, 3, 3, 3}}, {"unitPar", {3, 4}}})},
                        {}, volume);
  std::vector<float> pixel(2);
  std::vector<float> values(4);

  EXPECT_EQ(set.samples(), 4);
  set.read_input(0, {.lo = {0, 0, 0, 1, 2}, .hi = {1, 2, 1, 2, 3}}, pixel);
  EXPECT_EQ(pixel, (std::vector<float>{10, 11}));
  EXPECT_EQ(set.bytes_read(), 2);
  set.read_input(2, {.lo = {0, 0, 0, 1, 2}, .hi = {1, 2, 1, 2, 3}}, pixel);
  EXPECT_EQ(pixel, (std::vector<float>{54 + 5, 54 + 27 + 5}));
  set.read_values(3, tensor::whole(volume.target), values);
  EXPECT_EQ(values, (std::vector<float>{8, 9, 10, 11}));
  EXPECT_EQ(set.bytes_read(), 8);
}

TEST(Hdf5Dataset, ReadsLabelsByBoxAndRefusesThoseOutOfRange) {
  const Files files;
  const Hdf5Dataset set({files.add("a.h5", {{"volume", {3, 3, 3, 1}}, {"segmentation", {1, 3, 3, 3}}})}, {}, voxels);
  std::vector<std::int32_t> labels(2);

  set.read_labels(0, {.lo = {0, 0, 0, 1, 0}, .hi = {1, 1, 1, 2, 2}}, labels);
  EXPECT_EQ(labels, (std::vector<std::int32_t>{3, 4}));
  expect_error(Exit::bad_data, "a.h5:segmentation' at [0, 0, 1, 2] holds label 5", [&] {
    set.read_labels(0, {.lo = {0, 0, 0, 1, 1}, .hi = {1, 1, 1, 2, 3}}, labels);
  });
}

TEST(Hdf5Dataset, AsksWhereTheOrderIsNotClear) {
  const Files files;
  const SampleShape cube{.input = {.n = 1, .c = 3, .d = 3, .h = 3, .w = 3}, .target = {.n = 1, .c = 4}};
  const Hdf5Outline outline = files.add("a.h5", {{"full", {3, 3, 3, 3}}, {"unitPar", {4}}});
  std::vector<float> pixel(3);

  expect_error(Exit::bad_data, "can be read as DHWC or as CDHW; say which with data.axes",
               [&] { Hdf5Dataset({outline}, {}, cube); });
  const tensor::Box box{.lo = {0, 0, 0, 0, 1}, .hi = {1, 3, 1, 1, 2}};
  Hdf5Dataset({outline}, {.axes = "DHWC"}, cube).read_input(0, box, pixel);
  EXPECT_EQ(pixel, (std::vector<float>{3, 4, 5}));
  Hdf5Dataset({outline}, {.axes = "CDHW"}, cube).read_input(0, box, pixel);
  EXPECT_EQ(pixel, (std::vector<float>{1, 28, 55}));
  expect_error(Exit::bad_data, "wants 3x3x3x3", [&] { Hdf5Dataset({outline}, {.axes = "NDHWC"}, cube); });
}

TEST(Hdf5Dataset, RefusesWhatDoesNotFit) {
  const Files files;
  const Hdf5Outline good = files.add("good.h5", {{"full", {3, 3, 3, 2}}, {"unitPar", {4}}});
  const Hdf5Outline larger = files.add("larger.h5", {{"full", {3, 3, 4, 2}}, {"unitPar", {4}}});
  const Hdf5Outline fewer = files.add("fewer.h5", {{"full", {2, 3, 3, 3, 2}}, {"unitPar", {3, 4}}});
  const Hdf5Outline short_target = files.add("target.h5", {{"full", {3, 3, 3, 2}}, {"unitPar", {3}}});
  const Hdf5Outline odd = files.add("odd.h5", {{"data", {3, 3, 3, 2}}, {"unitPar", {4}}});
  Hdf5Outline real = files.add("real.h5", {{"volume", {3, 3, 3}}, {"segmentation", {3, 3, 3}}});
  real.arrays.back().type = NumberType::f32;
  Hdf5Outline refused = good;
  refused.arrays.front().refused = "a virtual data set";

  expect_error(Exit::bad_data, "larger.h5:full' has shape 3x3x4x2, but the network wants 2x3x3x3 (CxDxHxW)", [&] {
    Hdf5Dataset({good, larger}, {}, volume);
  });
  expect_error(Exit::bad_data, "holds 2 samples of 'full' but 3 of 'unitPar'",
               [&] { Hdf5Dataset({fewer}, {}, volume); });
  expect_error(Exit::bad_data, "unitPar' has shape 3, but the network wants 4x1x1x1",
               [&] { Hdf5Dataset({short_target}, {}, volume); });
  expect_error(Exit::bad_data,
               "none of the usual keys full, volume, image, input, x; set data.input_key to one of "
               "those it has: data, unitPar",
               [&] { Hdf5Dataset({odd}, {}, volume); });
  expect_error(Exit::bad_data, "has no key 'dta'; did you mean 'data'?",
               [&] { Hdf5Dataset({odd}, {.input_key = "dta"}, volume); });
  EXPECT_EQ(Hdf5Dataset({odd}, {.input_key = "data"}, volume).samples(), 1);
  expect_error(Exit::bad_data, "float32 numbers, but labels must be integers",
               [&] { Hdf5Dataset({real}, {}, voxels); });
  expect_error(Exit::bad_data, "good.h5:full' is a virtual data set", [&] { Hdf5Dataset({refused}, {}, volume); });
  expect_error(Exit::bad_data, "no samples", [&] { Hdf5Dataset({}, {}, volume); });
}

}  // namespace
}  // namespace orthant
