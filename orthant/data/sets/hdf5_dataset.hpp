#pragma once

#include "orthant/data/formats/hdf5_read.hpp"
#include "orthant/data/sets/dataset.hpp"

#include <atomic>
#include <optional>

namespace orthant::data::sets {

/// What a run file says about HDF5 files. What is empty is found out from the first file.
struct Hdf5Options {
  std::string input_key, target_key;
  std::string axes;     ///< of the input: "DHWC", "CDHW", ...
  bool targets = true;  ///< false: files need no targets, and reading them gives zeros

  bool operator==(const Hdf5Options&) const = default;
};

/// Samples of HDF5 files, one or more in each, in the order of the files. Every read opens the file and reads the
/// bytes of its box.
class Hdf5Dataset final : public Dataset {
 public:
  /// Throws Error if a file does not fit the network.
  Hdf5Dataset(std::vector<formats::Hdf5Outline> outlines, const Hdf5Options& options, const SampleShape& shape);

  [[nodiscard]] std::int64_t samples() const override { return samples_; }
  void read_input(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_values(std::int64_t sample, const tensor::Box& box, std::span<float> into) const override;
  void read_labels(std::int64_t sample, const tensor::Box& box, std::span<std::int32_t> into) const override;
  [[nodiscard]] std::string name(std::int64_t sample) const override;
  [[nodiscard]] std::int64_t bytes_read() const override { return bytes_read_; }

 private:
  struct SampleFile {
    std::int64_t first = 0;  ///< the index of its first sample
    std::string path;
    formats::Hdf5Reader input;
    std::optional<formats::Hdf5Reader> target;  ///< unless the files have none
  };
  [[nodiscard]] const SampleFile& file_of(std::int64_t sample) const;
  void add(const formats::Hdf5Outline& outline, const Hdf5Options& options, const SampleShape& shape);

  std::int64_t classes_;
  std::vector<formats::Hdf5Outline> outlines_;
  std::vector<SampleFile> files_;
  std::int64_t samples_ = 0;
  mutable std::atomic<std::int64_t> bytes_read_ = 0;
};

}  // namespace orthant::data::sets
