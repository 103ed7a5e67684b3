#include "orthant/train/new_samples.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/formats/hdf5_survey.hpp"
#include "orthant/data/io/file_list.hpp"
#include "orthant/data/sets/npy_dataset.hpp"

namespace orthant::train {
namespace {

using base::Exit;
using base::fail;

bool is_npy(const std::string& path) {
  if (path.ends_with(".npy")) return true;
  if (path.ends_with(".nii") || path.ends_with(".nii.gz"))
    fail(Exit::bad_data, "'{}' is a NIfTI file; make HDF5 of it first with orthant data convert", path);
  return false;
}

}  // namespace

NewSamples::NewSamples(const std::vector<std::string>& words)
    : paths_(data::io::list_files(words, {".h5", ".hdf5", ".npy"})), npy_(is_npy(paths_.front())) {
  for (const std::string& path : paths_) {
    if (is_npy(path) != npy_)
      fail(Exit::bad_data, "'{}' and '{}' are of different kinds; take one kind at a time", paths_.front(), path);
  }
}

std::string NewSamples::survey() const {
  return npy_ ? "" : data::formats::outlines_text(data::formats::survey_hdf5(paths_));
}

std::unique_ptr<data::sets::Dataset> NewSamples::open(const DataOptions& options, const data::sets::SampleShape& shape,
                                                      const std::string& survey) const {
  std::unique_ptr<data::sets::Dataset> dataset;
  if (npy_) {
    dataset = std::make_unique<data::sets::NpyDataset>(paths_, shape);
  } else {
    data::sets::Hdf5Options hdf5 = options.hdf5;
    hdf5.targets = false;
    dataset = std::make_unique<data::sets::Hdf5Dataset>(data::formats::outlines_from_text(survey), hdf5, shape);
  }
  if (options.transforms.empty()) return dataset;
  return std::make_unique<data::sets::TransformedDataset>(std::move(dataset), options.transforms, shape);
}

}  // namespace orthant::train
