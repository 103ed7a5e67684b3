#pragma once

#include "orthant/data/formats/volume_file.hpp"
#include "orthant/data/sets/dataset.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/train/scores.hpp"

#include <string>
#include <vector>

namespace orthant::train {

struct PredictionOptions {
  std::string directory;
  bool nifti = false;   ///< else HDF5
  bool labels = false;  ///< the most likely class of every pixel instead of the output
};

/// The path of every sample's prediction, which is named after the sample. Throws Error if two paths would be equal.
std::vector<std::string> prediction_paths(const data::sets::Dataset& dataset, const PredictionOptions& options);

/// Writes whole predicted volumes, one file per sample, assembled from the boxes of all ranks.
class PredictionFiles {
 public:
  /// Collective. The session keeps its predictions, and must outlive this.
  PredictionFiles(engine::Session& session, std::vector<std::string> paths, PredictionOptions options);

  /// Collective. Rank 0 writes the volumes of a mini-batch. The other ranks send it one plane at a time.
  void write(const EvaluatedBatch& batch);

 private:
  /// The box of a sample that a rank has predicted; `port` is its index among the rank's predictions.
  struct Part {
    int rank = 0;
    std::size_t port = 0;
    tensor::Box box;
  };

  [[nodiscard]] std::unique_ptr<data::formats::VolumeFile> open(const std::string& path) const;
  void write_sample(std::int64_t n, data::formats::VolumeFile* file);
  void pack_plane(std::size_t index, std::int64_t n, std::int64_t d);

  engine::Session& session_;
  std::vector<std::string> paths_;
  PredictionOptions options_;
  /// Per sample of a mini-batch, in the order in which rank 0 writes them: its parts on all ranks, on other ranks their
  /// own ones.
  std::vector<std::vector<Part>> parts_;
  std::vector<std::byte> plane_;
};

}  // namespace orthant::train
