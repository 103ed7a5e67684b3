#include "orthant/base/random.hpp"
#include "orthant/data/formats/hdf5_read.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "tests/data/temporary.hpp"

namespace orthant {
namespace {

const std::string folder = HDF5_FILES;

/// Flips bits, overwrites runs, cuts off, repeats: mostly in the first bytes, where the metadata is.
std::string mutate(std::string bytes, std::uint64_t key) {
  const std::uint64_t changes = 1 + base::keyed(key, 0) % 4;
  for (std::uint64_t i = 0; i < changes; ++i) {
    const std::uint64_t reach =
        base::keyed(key, 10 + i) % 4 == 0 ? bytes.size() : std::min<std::size_t>(bytes.size(), 2400);
    const auto at = static_cast<std::size_t>(base::keyed(key, 20 + i) % reach);
    switch (base::keyed(key, 30 + i) % 5) {
      case 0: bytes[at] = static_cast<char>(bytes[at] ^ 1 << base::keyed(key, 40 + i) % 8); break;
      case 1: bytes[at] = static_cast<char>(base::keyed(key, 40 + i)); break;
      case 2: bytes[at] = '\xFF'; break;
      case 3: bytes.replace(at, 4, std::string(4, i % 2 == 0 ? '\0' : '\x7F')); break;
      default: bytes.resize(at + 1); break;
    }
  }
  return bytes;
}

/// Reads all that was accepted, if it is small; an Error is fine, anything else is not.
bool read_all(const data::formats::Hdf5Outline& outline) {
  bool read = false;
  for (const data::formats::Hdf5Array& array : outline.arrays) {
    std::int64_t items = 1;
    for (const std::int64_t extent : array.extents)
      items = std::min<std::int64_t>(items, 1 << 20) * std::min<std::int64_t>(extent, 1 << 20);
    if (!array.refused.empty() || array.extents.size() != 4 || items > 1 << 20) continue;
    try {
      const data::formats::Hdf5Reader reader(outline, array, data::arrays::parse_axes("DHWC").value());
      std::vector<float> into(static_cast<std::size_t>(tensor::volume(reader.shape())));
      reader.read(tensor::whole(reader.shape()), into);
      read = true;
    } catch (const base::Error& error) {
      EXPECT_TRUE(error.code() == base::Exit::bad_data || error.code() == base::Exit::io) << error.what();
    }
  }
  return read;
}

TEST(Hdf5Mutation, FiveHundredDamagedFilesEndInAnErrorOrInNumbers) {
  const test::TemporaryDirectory own;
  std::vector<std::string> paths;
  for (const std::string name : {"DHWC-contiguous", "DHWC-chunked", "DHWC-checked", "compact", "sparse"}) {
    const std::string good = data::io::read_text(folder + "/" + name + ".h5");
    for (std::uint64_t i = 0; i < 100; ++i)
      paths.push_back(own.write(fmt::format("{}-{}.h5", name, i), mutate(good, base::keyed(paths.size(), i))));
  }

  const std::vector<data::formats::Hdf5Outline> outlines = data::formats::try_survey_hdf5(paths);

  ASSERT_EQ(outlines.size(), 500U);
  int refused = 0;
  int read = 0;
  int crashed = 0;
  for (const data::formats::Hdf5Outline& outline : outlines) {
    refused += outline.error.empty() ? 0 : 1;
    crashed += outline.error.find("crashed") != std::string::npos ? 1 : 0;
    read += outline.error.empty() && read_all(outline) ? 1 : 0;
  }
  EXPECT_GT(refused, 50);
  EXPECT_GT(read, 50);
  RecordProperty("crashed", crashed);
}

}  // namespace
}  // namespace orthant
