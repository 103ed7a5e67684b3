#include "orthant/data/formats/volume_file.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/data/formats/hdf5_write.hpp"
#include "orthant/data/formats/nifti.hpp"
#include "orthant/tensor/layout.hpp"

#include <algorithm>
#include <utility>

namespace orthant::data::formats {
namespace {

constexpr const char* dataset_name = "prediction";

/// The extents d, h, w, c of a shape, without the dims that the file leaves out.
std::vector<std::int64_t> file_numbers(const tensor::Shape& shape, const VolumeExtents& extents) {
  std::vector<std::int64_t> numbers;
  for (const tensor::Dim dim : tensor::named_dims(extents.spatial_count)) numbers.push_back(shape[dim]);
  if (extents.has_channels) numbers.push_back(shape.c);
  return numbers;
}

class Hdf5Volume final : public VolumeFile {
 public:
  Hdf5Volume(const std::string& path, const VolumeExtents& extents) : extents_(extents), file_(path) {
    file_.create(dataset_name, {.type = extents.type, .extents = file_numbers(extents.shape, extents)});
  }

  void write(const tensor::Box& box, std::span<const std::byte> numbers) override {
    file_.write(dataset_name, file_numbers(box.lo, extents_), file_numbers(tensor::extents_of(box), extents_), numbers);
  }
  void commit() override { file_.commit(); }

 private:
  VolumeExtents extents_;
  Hdf5Writer file_;
};

class NiftiVolume final : public VolumeFile {
 public:
  NiftiVolume(std::string path, const VolumeExtents& extents)
      : path_(std::move(path)), layout_(tensor::channels_first(extents.shape)) {
    image_.type = extents.type;
    image_.extents = {extents.shape.d, extents.shape.h, extents.shape.w};
    if (extents.shape.c > 1) image_.extents.insert(image_.extents.begin(), extents.shape.c);
    image_.numbers.resize(
        static_cast<std::size_t>(base::checked_mul(tensor::volume(extents.shape), bytes_of(extents.type))));
  }

  void write(const tensor::Box& box, std::span<const std::byte> numbers) override {
    const auto size = static_cast<std::size_t>(bytes_of(image_.type));
    auto from = numbers.begin();
    for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
      for (std::int64_t h = box.lo.h; h < box.hi.h; ++h) {
        for (std::int64_t w = box.lo.w; w < box.hi.w; ++w) {
          for (std::int64_t c = box.lo.c; c < box.hi.c; ++c, from += static_cast<std::ptrdiff_t>(size)) {
            const std::int64_t item =
                c * layout_.strides.c + d * layout_.strides.d + h * layout_.strides.h + w * layout_.strides.w;
            std::copy_n(from, size, image_.numbers.begin() + item * static_cast<std::int64_t>(size));
          }
        }
      }
    }
  }
  void commit() override { write_nifti(path_, image_); }

 private:
  std::string path_;
  tensor::Layout layout_;
  Nifti image_;
};

}  // namespace

std::unique_ptr<VolumeFile> make_hdf5_volume(const std::string& path, const VolumeExtents& extents) {
  return std::make_unique<Hdf5Volume>(path, extents);
}

std::unique_ptr<VolumeFile> make_nifti_volume(const std::string& path, const VolumeExtents& extents) {
  return std::make_unique<NiftiVolume>(path, extents);
}

}  // namespace orthant::data::formats
