#include "orthant/data/sets/npy_dataset.hpp"

#include "orthant/base/error.hpp"

#include <algorithm>
#include <utility>

namespace orthant::data::sets {
namespace {

using base::Exit;
using base::fail;
using tensor::Box;

std::vector<std::int64_t> trimmed(std::vector<std::int64_t> extents) {
  while (extents.size() > 1 && extents.back() == 1) extents.pop_back();
  return extents;
}

std::vector<std::int64_t> file_extents(const tensor::Shape& shape, int spatial_count, bool channels,
                                       std::int64_t samples) {
  std::vector<std::int64_t> extents{samples};
  if (channels) extents.push_back(shape.c);
  for (const tensor::Dim dim : tensor::named_dims(spatial_count)) extents.push_back(shape[dim]);
  return extents;
}

/// `wanted` are the extents of one sample; the first dim of the file may be any number of samples.
void check_extents(const formats::NpyFile& file, std::vector<std::int64_t> wanted, const char* what) {
  const std::vector<std::int64_t>& have = file.extents();
  wanted.front() = have.empty() ? 0 : have.front();
  if (wanted.front() > 0 && trimmed(have) == trimmed(wanted)) return;
  std::string text = "N";
  wanted = trimmed(wanted);
  for (std::size_t i = 1; i < wanted.size(); ++i) text += "x" + std::to_string(wanted[i]);
  fail(Exit::bad_data, "'{}' has shape {}, but the network wants {} of shape {}", file.path(),
       formats::extents_text(have), what, text);
}

/// The layout of all samples of a file.
tensor::Layout file_layout(const formats::NpyFile& file, tensor::Shape sample) {
  sample.n = file.extents().front();
  return tensor::channels_first(sample);
}

Box at_sample(Box box, std::int64_t sample) {
  box.set(tensor::Dim::n, {sample, sample + 1});
  return box;
}

}  // namespace

std::vector<std::int64_t> input_extents(const SampleShape& shape, std::int64_t samples) {
  return file_extents(shape.input, shape.spatial_count, true, samples);
}

std::vector<std::int64_t> target_extents(const SampleShape& shape, std::int64_t samples) {
  return file_extents(shape.target, shape.spatial_count, !shape.labels, samples);
}

void check_inputs(const formats::NpyFile& file, const SampleShape& shape) {
  check_extents(file, input_extents(shape, 1), "inputs");
}

void check_targets(const formats::NpyFile& file, const SampleShape& shape) {
  check_extents(file, target_extents(shape, 1), shape.labels ? "labels" : "targets");
}

NpyDataset::NpyDataset(const std::vector<std::string>& inputs, const SampleShape& shape) : shape_(shape) {
  for (const std::string& path : inputs) {
    const formats::NpyFile file(path);
    check_inputs(file, shape);
    inputs_.push_back({path, file.extents().front()});
    samples_ += file.extents().front();
  }
}

NpyDataset::NpyDataset(const std::vector<std::string>& inputs, const std::vector<std::string>& targets,
                       const SampleShape& shape)
    : NpyDataset(inputs, shape) {
  std::int64_t target_samples = 0;
  for (const std::string& path : targets) {
    const formats::NpyFile file(path);
    check_targets(file, shape);
    targets_.push_back({path, file.extents().front()});
    target_samples += file.extents().front();
  }
  if (samples_ != target_samples)
    fail(Exit::bad_data, "the inputs hold {} samples but the targets {}; they must match", samples_, target_samples);
  if (samples_ == 0) fail(Exit::bad_data, "the data has no samples; name at least one input and one target file");
}

NpyDataset::FoundSample NpyDataset::find(const std::vector<SampleFile>& files, std::int64_t sample) {
  for (const SampleFile& listed : files) {
    if (sample >= listed.samples) {
      sample -= listed.samples;
      continue;
    }
    formats::NpyFile file(listed.path);
    if (file.extents().empty() || file.extents().front() != listed.samples) {
      fail(Exit::bad_data, "'{}' has changed since the run began", listed.path);
    }
    return {std::move(file), sample};
  }
  fail(Exit::internal, "sample {} past the end of the data", sample);
}

std::string NpyDataset::name(std::int64_t sample) const {
  for (const SampleFile& listed : inputs_) {
    if (sample < listed.samples) return listed.path + "[" + std::to_string(sample) + "]";
    sample -= listed.samples;
  }
  return "";
}

void NpyDataset::read_input(std::int64_t sample, const Box& box, std::span<float> into) const {
  const FoundSample found = find(inputs_, sample);
  check_inputs(found.file, shape_);
  bytes_read_ += found.file.read(file_layout(found.file, shape_.input), at_sample(box, found.sample), into);
}

void NpyDataset::read_values(std::int64_t sample, const Box& box, std::span<float> into) const {
  if (targets_.empty()) return std::fill(into.begin(), into.end(), 0.0F);
  const FoundSample found = find(targets_, sample);
  check_targets(found.file, shape_);
  bytes_read_ += found.file.read(file_layout(found.file, shape_.target), at_sample(box, found.sample), into);
}

void NpyDataset::read_labels(std::int64_t sample, const Box& box, std::span<std::int32_t> into) const {
  if (targets_.empty()) return std::fill(into.begin(), into.end(), 0);
  const FoundSample found = find(targets_, sample);
  check_targets(found.file, shape_);
  bytes_read_ += found.file.read_labels(file_layout(found.file, shape_.target), at_sample(box, found.sample),
                                        shape_.classes, into);
}

}  // namespace orthant::data::sets
