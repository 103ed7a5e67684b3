#include "orthant/data/formats/volume_file.hpp"

#include "orthant/data/formats/hdf5_read.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/formats/nifti.hpp"
#include "tests/data/temporary.hpp"

#include <cstring>

namespace orthant::data::formats {
namespace {

const tensor::Shape shape{.n = 1, .c = 2, .d = 3, .h = 2, .w = 4};

float number_at(std::int64_t d, std::int64_t h, std::int64_t w, std::int64_t c) {
  return static_cast<float>(((d * 10 + h) * 10 + w) * 10 + c);
}

void write_box(VolumeFile& file, const tensor::Box& box) {
  std::vector<float> numbers;
  for (std::int64_t d = box.lo.d; d < box.hi.d; ++d)
    for (std::int64_t h = box.lo.h; h < box.hi.h; ++h)
      for (std::int64_t w = box.lo.w; w < box.hi.w; ++w)
        for (std::int64_t c = box.lo.c; c < box.hi.c; ++c) numbers.push_back(number_at(d, h, w, c));
  file.write(box, std::as_bytes(std::span(numbers)));
}

/// In two uneven pieces.
void write_all(VolumeFile& file) {
  tensor::Box box = tensor::whole(shape);
  box.set(tensor::Dim::w, {0, 3});
  write_box(file, box);
  box.set(tensor::Dim::w, {3, 4});
  write_box(file, box);
}

TEST(VolumeFile, Hdf5HasEveryNumberInItsPlace) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.h5");
  const auto file = make_hdf5_volume(path, {.shape = shape});
  write_all(*file);
  EXPECT_FALSE(std::filesystem::exists(path));
  file->commit();

  const std::vector<Hdf5Outline> outlines = survey_hdf5({path});
  const Hdf5Array& array = array_named(outlines.front(), "prediction");
  EXPECT_EQ(array.extents, (std::vector<std::int64_t>{3, 2, 4, 2}));
  std::vector<float> numbers(48);
  const Hdf5Reader reader(outlines.front(), array, *arrays::parse_axes("DHWC"));
  reader.read(tensor::whole(shape), numbers);
  EXPECT_EQ(numbers[((2 * 2 + 1) * 4 + 3) * 2 + 1], number_at(2, 1, 3, 1));
  EXPECT_EQ(numbers[((1 * 2 + 0) * 4 + 2) * 2 + 0], number_at(1, 0, 2, 0));
}

TEST(VolumeFile, NiftiHasChannelsAsFourthDim) {
  const test::TemporaryDirectory folder;
  const std::string path = folder.file("a.nii.gz");
  const auto file = make_nifti_volume(path, {.shape = shape});
  write_all(*file);
  file->commit();

  const Nifti image = read_nifti(path);
  EXPECT_EQ(image.extents, (std::vector<std::int64_t>{2, 3, 2, 4}));
  const std::vector<float> numbers = nifti_values(image, path);
  EXPECT_EQ(numbers[((1 * 3 + 2) * 2 + 1) * 4 + 3], number_at(2, 1, 3, 1));
  EXPECT_EQ(numbers[((0 * 3 + 1) * 2 + 0) * 4 + 2], number_at(1, 0, 2, 0));
}

TEST(VolumeFile, LeavesNothingWithoutCommit) {
  const test::TemporaryDirectory folder;
  write_all(*make_hdf5_volume(folder.file("a.h5"), {.shape = shape}));
  write_all(*make_nifti_volume(folder.file("a.nii"), {.shape = shape}));

  EXPECT_TRUE(std::filesystem::is_empty(folder.file("")));
  test::expect_error(base::Exit::io, "cannot write",
                     [&] { make_hdf5_volume(folder.file("no/a.h5"), {.shape = shape}); });
}

}  // namespace
}  // namespace orthant::data::formats
