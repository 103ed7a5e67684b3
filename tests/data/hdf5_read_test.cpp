#include "orthant/data/formats/hdf5_read.hpp"

#include "orthant/base/random.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/formats/npy.hpp"
#include "orthant/tensor/distribution.hpp"
#include "tests/data/temporary.hpp"

#include <sstream>

namespace orthant {
namespace {

using data::formats::Hdf5Outline;
using data::formats::Hdf5Reader;
using tensor::Box;
using tensor::Dim;
using tensor::Shape;

/// Files that make_hdf5_files.py has written.
const std::string folder = HDF5_FILES;

struct Expected {
  explicit Expected(const std::string& path) {
    const data::formats::NpyFile file(path);
    const auto& e = file.extents();
    shape = {.n = e[0], .c = e[1], .d = e[2], .h = e[3], .w = e[4]};
    items.resize(static_cast<std::size_t>(tensor::volume(shape)));
    file.read(tensor::channels_first(shape), tensor::whole(shape), items);
  }
  [[nodiscard]] std::vector<float> part(const Box& box) const {
    std::vector<float> found;
    for (std::int64_t n = box.lo.n; n < box.hi.n; ++n)
      for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
        for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
          for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
            for (std::int64_t c = box.lo.c; c < box.hi.c; ++c)
              found.push_back(
                  items[static_cast<std::size_t>((((n * shape.d + d) * shape.h + h) * shape.w + w) * shape.c + c)]);
    return found;
  }
  Shape shape;
  std::vector<float> items;
};

/// The whole, single voxels, and what the ranks of even and uneven grids own.
std::vector<Box> boxes_of(const Shape& shape) {
  std::vector<Box> boxes{tensor::whole(shape)};
  for (std::uint64_t i = 0; i < 8; ++i) {
    Box box;
    for (const Dim dim : tensor::all_dims) {
      const auto at = static_cast<std::int64_t>(base::keyed(i, static_cast<std::uint64_t>(dim)) %
                                                static_cast<std::uint64_t>(shape[dim]));
      box.set(dim, {at, at + 1});
    }
    boxes.push_back(box);
  }
  for (const tensor::Grid grid : {tensor::Grid{.d = 2}, tensor::Grid{.d = 3}, tensor::Grid{.h = 4},
                                  tensor::Grid{.w = 3}, tensor::Grid{.d = 2, .h = 2, .w = 2}, tensor::Grid{.c = 2}}) {
    for (int rank = 0; rank < tensor::parts(grid); ++rank)
      boxes.push_back(tensor::owned_box({.global = shape, .grid = grid}, rank));
  }
  return boxes;
}

TEST(Hdf5Read, TakesEveryBoxBitForBitFromEveryKindOfFile) {
  std::istringstream list(data::io::read_text(folder + "/good.list"));
  std::string name;
  std::int64_t exact = 0;
  int count = 0;
  for (; list >> name >> exact; ++count) {
    SCOPED_TRACE(name);
    const Expected expected(folder + "/" + name + ".npy");
    const std::vector<Hdf5Outline> outlines = data::formats::survey_hdf5({folder + "/" + name + ".h5"});
    const data::formats::Hdf5Array& array = data::formats::array_named(outlines.front(), "full");
    const auto axes = data::arrays::matching_axes(array.extents, {.shape = expected.shape});
    ASSERT_EQ(axes.size(), 1U);
    const Hdf5Reader reader(outlines.front(), array, axes.front());
    ASSERT_EQ(reader.shape(), expected.shape);
    for (const Box& box : boxes_of(expected.shape)) {
      std::vector<float> items(static_cast<std::size_t>(tensor::volume(box)));
      std::vector<std::int32_t> labels(items.size());
      const std::int64_t bytes = reader.read(box, items);
      ASSERT_EQ(items, expected.part(box));
      const bool cut_pixels = box.hi.c - box.lo.c != expected.shape.c && axes.front().back() == Dim::c;
      if (exact > 0 && !cut_pixels) {
        EXPECT_EQ(bytes, exact * tensor::volume(box));
      }
      if (!data::arrays::is_integer(array.type)) continue;
      reader.read_labels(box, 100, labels);
      ASSERT_TRUE(std::equal(items.begin(), items.end(), labels.begin()));
    }
  }
  EXPECT_GE(count, 60);
}

TEST(Hdf5Read, RefusesByNameWhatItDoesNotRead) {
  std::istringstream list(data::io::read_text(folder + "/bad.list"));
  int count = 0;
  for (std::string line; std::getline(list, line); ++count) {
    SCOPED_TRACE(line);
    const std::string path = folder + "/" + line.substr(0, line.find('\t'));
    const std::string message = line.substr(line.find('\t') + 1);
    const bool missing = message == "No such file";
    const bool unreadable = message == "not a regular file";
    const base::Exit code = missing ? base::Exit::missing_input : (unreadable ? base::Exit::io : base::Exit::bad_data);

    test::expect_error(code, message, [&] {
      const std::vector<Hdf5Outline> outlines = data::formats::survey_hdf5({path});
      data::formats::array_named(outlines.front(), "full");
    });
  }
  EXPECT_GE(count, 25);
}

TEST(Hdf5Read, NamesThePlaceOfWhatCannotBeUsed) {
  const std::vector<Hdf5Outline> outlines = data::formats::survey_hdf5({folder + "/NCDHW-gzip.h5"});
  const Hdf5Reader reader(outlines.front(), outlines.front().arrays.front(), data::arrays::parse_axes("NCDHW").value());
  const Expected expected(folder + "/NCDHW-gzip.npy");
  std::vector<std::int32_t> labels(expected.items.size());

  // The last sample's last voxel of the largest number is found in the chunk that comes first.
  const auto largest = static_cast<std::int64_t>(*std::max_element(expected.items.begin(), expected.items.end()));
  test::expect_error(base::Exit::bad_data, "NCDHW-gzip.h5:full' at [",
                     [&] { reader.read_labels(tensor::whole(reader.shape()), largest, labels); });
  test::expect_error(base::Exit::bad_data,
                     fmt::format("holds label {}, but the network has classes 0 to {}", largest, largest - 1),
                     [&] { reader.read_labels(tensor::whole(reader.shape()), largest, labels); });
}

TEST(Hdf5Read, NoticesDamagedChunksAndChangedFiles) {
  const test::TemporaryDirectory own;
  for (const std::string name : {"DHWC-checked", "DHWC-fletcher", "DHWC-gzip"}) {
    SCOPED_TRACE(name);
    std::string bytes = data::io::read_text(folder + "/" + name + ".h5");
    const std::string path = own.write(name + ".h5", bytes);
    const std::vector<Hdf5Outline> outlines = data::formats::survey_hdf5({path});
    const data::formats::Hdf5Array& array = outlines.front().arrays.front();
    const Hdf5Reader reader(outlines.front(), array, data::arrays::parse_axes("DHWC").value());
    std::vector<float> items(static_cast<std::size_t>(tensor::volume(reader.shape())));

    const data::formats::Hdf5Chunk& chunk = array.chunks.at(1);
    bytes[static_cast<std::size_t>(chunk.offset + chunk.bytes / 2)] ^= 0x10;
    own.write(name + ".h5", bytes);
    test::expect_error(base::Exit::bad_data, fmt::format("is damaged: the chunk at byte {}", chunk.offset),
                       [&] { reader.read(tensor::whole(reader.shape()), items); });
    own.write(name + ".h5", bytes + "x");
    test::expect_error(base::Exit::bad_data, "has changed", [&] { reader.read(tensor::whole(reader.shape()), items); });
    std::filesystem::remove(path);
    test::expect_error(base::Exit::missing_input, "No such file",
                       [&] { reader.read(tensor::whole(reader.shape()), items); });
  }
}

TEST(Hdf5Read, OutlinesSurviveText) {
  const std::vector<Hdf5Outline> outlines =
      data::formats::survey_hdf5({folder + "/sparse.h5", folder + "/compact.h5", folder + "/latest-checked.h5"});

  EXPECT_EQ(data::formats::outlines_from_text(data::formats::outlines_text(outlines)), outlines);
}

}  // namespace
}  // namespace orthant
