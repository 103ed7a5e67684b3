#include "orthant/data/sets/hdf5_dataset.hpp"

#include "orthant/base/format.hpp"
#include "orthant/data/formats/npy.hpp"

#include <algorithm>

namespace orthant::data::sets {
namespace {

using base::Exit;
using base::fail;
using tensor::Box;
using Words = std::vector<std::string>;

/// The first of the usual keys that the file has.
std::string usual_key(const formats::Hdf5Outline& outline, const Words& usual, const char* option) {
  Words names;
  for (const formats::Hdf5Array& array : outline.arrays) names.push_back(array.name);
  for (const std::string& key : usual) {
    if (std::find(names.begin(), names.end(), key) != names.end()) return key;
  }
  fail(Exit::bad_data, "'{}' has none of the usual keys {}; set data.{} to one of those it has: {}", outline.path,
       fmt::join(usual, ", "), option, names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", ")));
}

Hdf5Options with_keys(Hdf5Options options, const formats::Hdf5Outline& outline, bool labels) {
  static const Words inputs{"full", "volume", "image", "input", "x"};
  static const Words values{"unitPar", "physPar", "target", "y"};
  static const Words classes{"segmentation", "label", "labels", "target", "y"};
  if (options.input_key.empty()) options.input_key = usual_key(outline, inputs, "input_key");
  if (options.targets && options.target_key.empty())
    options.target_key = usual_key(outline, labels ? classes : values, "target_key");
  return options;
}

bool channels_first(const arrays::Axes& axes) {
  const auto channels = std::find(axes.begin(), axes.end(), tensor::Dim::c);
  return channels != axes.end() && channels + 1 != axes.end();
}

[[noreturn]] void fail_shape(const std::string& name, const formats::Hdf5Array& array,
                             const arrays::AxesWanted& wanted) {
  fail(Exit::bad_data, "'{}' has shape {}, but the network wants {} ({}), channels first or last", name,
       formats::extents_text(array.extents), to_text(wanted), arrays::dims_text(wanted.spatial_count));
}

arrays::Axes input_axes(const std::string& name, const formats::Hdf5Array& array, const arrays::AxesWanted& wanted,
                        const std::string& forced) {
  const std::vector<arrays::Axes> found = arrays::matching_axes(array.extents, wanted);
  if (found.empty()) fail_shape(name, array, wanted);
  if (forced.empty()) {
    if (found.size() == 1) return found.front();
    fail(Exit::bad_data, "'{}' of shape {} can be read as {} or as {}; say which with data.axes", name,
         formats::extents_text(array.extents), arrays::to_text(found[0]), arrays::to_text(found[1]));
  }
  const std::optional<arrays::Axes> axes = arrays::parse_axes(forced);
  if (!axes || axes->size() != array.extents.size()) fail_shape(name, array, wanted);
  tensor::Shape shape = arrays::shape_of(array.extents, *axes);
  shape.n = wanted.shape.n;
  if (shape != wanted.shape) {
    fail(Exit::bad_data, "'{}' has shape {}, which is not {} in the order {} of data.axes", name,
         formats::extents_text(array.extents), to_text(wanted), forced);
  }
  return *axes;
}

/// If several orders of axes fit a target, it has the order of the input.
arrays::Axes target_axes(const std::string& name, const formats::Hdf5Array& array, const arrays::AxesWanted& wanted,
                         const arrays::Axes& input) {
  const std::vector<arrays::Axes> found = arrays::matching_axes(array.extents, wanted);
  if (found.empty()) fail_shape(name, array, wanted);
  const auto alike = std::find_if(found.begin(), found.end(), [&](const arrays::Axes& axes) {
    return channels_first(axes) == channels_first(input);
  });
  return alike == found.end() ? found.front() : *alike;
}

Box at_sample(Box box, std::int64_t sample) {
  box.set(tensor::Dim::n, {sample, sample + 1});
  return box;
}

}  // namespace

Hdf5Dataset::Hdf5Dataset(std::vector<formats::Hdf5Outline> outlines, const Hdf5Options& options,
                         const SampleShape& shape)
    : classes_(shape.classes), outlines_(std::move(outlines)) {
  if (outlines_.empty()) fail(Exit::bad_data, "the data has no samples; name at least one file");
  const Hdf5Options keys = with_keys(options, outlines_.front(), shape.labels);
  files_.reserve(outlines_.size());
  for (const formats::Hdf5Outline& outline : outlines_) add(outline, keys, shape);
}

void Hdf5Dataset::add(const formats::Hdf5Outline& outline, const Hdf5Options& options, const SampleShape& shape) {
  const formats::Hdf5Array& input = formats::array_named(outline, options.input_key);
  const arrays::Axes axes = input_axes(outline.path + ":" + input.name, input,
                                       {.shape = shape.input, .spatial_count = shape.spatial_count}, options.axes);
  files_.push_back({samples_, outline.path, formats::Hdf5Reader(outline, input, axes), std::nullopt});
  SampleFile& file = files_.back();
  samples_ += file.input.shape().n;
  if (!options.targets) return;
  const formats::Hdf5Array& target = formats::array_named(outline, options.target_key);
  const arrays::Axes of_target = target_axes(outline.path + ":" + target.name, target,
                                             {.shape = shape.target, .spatial_count = shape.spatial_count}, axes);
  file.target.emplace(outline, target, of_target);
  if (file.input.shape().n != file.target->shape().n) {
    fail(Exit::bad_data, "'{}' holds {} samples of '{}' but {} of '{}'; they must match", outline.path,
         file.input.shape().n, input.name, file.target->shape().n, target.name);
  }
  if (shape.labels && !arrays::is_integer(target.type)) {
    fail(Exit::bad_data, "'{}' has {} numbers, but labels must be integers", file.target->name(),
         arrays::name_of(target.type));
  }
}

std::string Hdf5Dataset::name(std::int64_t sample) const {
  const SampleFile& file = file_of(sample);
  return file.input.shape().n == 1 ? file.path : fmt::format("{}[{}]", file.path, sample - file.first);
}

const Hdf5Dataset::SampleFile& Hdf5Dataset::file_of(std::int64_t sample) const {
  const auto after = std::upper_bound(files_.begin(), files_.end(), sample,
                                      [](std::int64_t wanted, const SampleFile& file) { return wanted < file.first; });
  return *(after - 1);
}

void Hdf5Dataset::read_input(std::int64_t sample, const Box& box, std::span<float> into) const {
  const SampleFile& file = file_of(sample);
  bytes_read_ += file.input.read(at_sample(box, sample - file.first), into);
}

void Hdf5Dataset::read_values(std::int64_t sample, const Box& box, std::span<float> into) const {
  const SampleFile& file = file_of(sample);
  if (!file.target) return std::fill(into.begin(), into.end(), 0.0F);
  bytes_read_ += file.target->read(at_sample(box, sample - file.first), into);
}

void Hdf5Dataset::read_labels(std::int64_t sample, const Box& box, std::span<std::int32_t> into) const {
  const SampleFile& file = file_of(sample);
  if (!file.target) return std::fill(into.begin(), into.end(), 0);
  bytes_read_ += file.target->read_labels(at_sample(box, sample - file.first), classes_, into);
}

}  // namespace orthant::data::sets
