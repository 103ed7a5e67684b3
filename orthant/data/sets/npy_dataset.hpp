#pragma once

#include "orthant/data/formats/npy.hpp"
#include "orthant/data/sets/dataset.hpp"
#include "orthant/tensor/shape.hpp"

#include <atomic>
#include <string>
#include <vector>

namespace orthant::data::sets {

/// The extents of `samples` sources or targets in files: N x C x D x H x W, without C for labels. Trailing dims of one
/// cell may be left out.
std::vector<std::int64_t> input_extents(const SampleShape& shape, std::int64_t samples);
std::vector<std::int64_t> target_extents(const SampleShape& shape, std::int64_t samples);

/// Throws Error unless the file holds one or more samples of what the network wants.
void check_inputs(const formats::NpyFile& file, const SampleShape& shape);
void check_targets(const formats::NpyFile& file, const SampleShape& shape);

/// Samples of npy files whose first dim counts samples, one file after the other. Files are opened when they are
/// read, so that there may be any number of them.
class NpyDataset final : public Dataset {
 public:
  NpyDataset(const std::vector<std::string>& inputs, const std::vector<std::string>& targets, const SampleShape& shape);
  /// Without targets: reading them gives zeros.
  NpyDataset(const std::vector<std::string>& inputs, const SampleShape& shape);

  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const override;
  [[nodiscard]] std::string name(std::int64_t sample) const override;
  [[nodiscard]] std::int64_t bytes_read() const override { return bytes_read_; }

 private:
  struct SampleFile {
    std::string path;
    std::int64_t samples = 0;
  };
  struct FoundSample {
    formats::NpyFile file;
    std::int64_t sample;  ///< in the file
  };
  static FoundSample find(const std::vector<SampleFile>& files, std::int64_t sample);

  SampleShape shape_;
  std::vector<SampleFile> inputs_;
  std::vector<SampleFile> targets_;
  std::int64_t samples_ = 0;
  mutable std::atomic<std::int64_t> bytes_read_ = 0;
};

}  // namespace orthant::data::sets
