#include "orthant/train/prediction_files.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/typed.hpp"

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <set>

namespace orthant::train {
namespace {

using base::Exit;
using base::fail;

/// "dir/a.h5" gives "a", "a.npy[3]" gives "a-000003".
std::string stem_of(const std::string& name) {
  const std::size_t bracket = name.ends_with(']') ? name.rfind('[') : std::string::npos;
  if (bracket == std::string::npos) return std::filesystem::path(name).stem().string();
  const std::string number = name.substr(bracket + 1, name.size() - bracket - 2);
  return fmt::format("{}-{:0>6}", std::filesystem::path(name.substr(0, bracket)).stem().string(), number);
}

/// A depth plane of one sample of a box.
tensor::Box plane_of(tensor::Box box, std::int64_t d) {
  box.set(tensor::Dim::n, {0, 1});
  box.set(tensor::Dim::d, {d, d + 1});
  return box;
}

}  // namespace

std::vector<std::string> prediction_paths(const data::sets::Dataset& dataset, const PredictionOptions& options) {
  std::vector<std::string> paths;
  std::set<std::string> known;
  for (std::int64_t sample = 0; sample < dataset.samples(); ++sample) {
    const std::string name = stem_of(dataset.name(sample)) + (options.nifti ? ".nii.gz" : ".h5");
    if (!known.insert(name).second)
      fail(Exit::bad_data, "two samples would both be written to '{}'; rename one, or take them one after the other",
           name);
    paths.push_back((std::filesystem::path(options.directory) / name).string());
  }
  return paths;
}

PredictionFiles::PredictionFiles(engine::Session& session, std::vector<std::string> paths, PredictionOptions options)
    : session_(session), paths_(std::move(paths)), options_(std::move(options)) {
  std::vector<tensor::Box> mine;
  for (const schedule::Port& port : session.schedule().predictions) mine.push_back(port.box);
  const auto of_ranks = comm::gather(session.comm(), std::span<const tensor::Box>(mine), 0);
  parts_.resize(static_cast<std::size_t>(session.graph().nodes.back().shape.n));
  const auto add = [&](int rank, const std::vector<tensor::Box>& boxes) {
    for (std::size_t port = 0; port < boxes.size(); ++port) {
      if (tensor::is_empty(boxes[port])) continue;
      for (std::int64_t n = boxes[port].lo.n; n < boxes[port].hi.n; ++n)
        parts_[static_cast<std::size_t>(n)].push_back({.rank = rank, .port = port, .box = boxes[port]});
    }
  };
  if (session.comm().rank() != 0) add(session.comm().rank(), mine);
  for (std::size_t rank = 0; rank < of_ranks.size(); ++rank) add(static_cast<int>(rank), of_ranks[rank]);
}

std::unique_ptr<data::formats::VolumeFile> PredictionFiles::open(const std::string& path) const {
  data::formats::VolumeExtents extents{
      .type = options_.labels ? data::arrays::NumberType::u8 : data::arrays::NumberType::f32,
      .shape = session_.graph().nodes.back().shape,
      .spatial_count = session_.graph().spatial_count,
      .has_channels = !options_.labels};
  extents.shape.n = 1;
  if (options_.labels) extents.shape.c = 1;
  return options_.nifti ? data::formats::make_nifti_volume(path, extents)
                        : data::formats::make_hdf5_volume(path, extents);
}

/// Puts a plane of this rank's predictions, or of their classes, into `plane_`.
void PredictionFiles::pack_plane(std::size_t index, std::int64_t n, std::int64_t d) {
  const schedule::Port& port = session_.engine().schedule().predictions[index];
  const auto channels = static_cast<std::size_t>(port.box.hi.c);
  const std::int64_t pixels = (port.box.hi.h - port.box.lo.h) * (port.box.hi.w - port.box.lo.w);
  const std::int64_t depth = port.box.hi.d - port.box.lo.d;
  const std::int64_t first = port.layout.offset + ((n - port.box.lo.n) * depth + d - port.box.lo.d) * pixels *
                                                      static_cast<std::int64_t>(channels);
  const auto items = session_.engine()
                         .floats(port.buffer)
                         .subspan(static_cast<std::size_t>(first), static_cast<std::size_t>(pixels) * channels);
  if (!options_.labels) {
    plane_.resize(items.size_bytes());
    std::memcpy(plane_.data(), items.data(), items.size_bytes());
    return;
  }
  plane_.resize(static_cast<std::size_t>(pixels));
  for (std::size_t pixel = 0; pixel < plane_.size(); ++pixel) {
    const auto scores = items.subspan(pixel * channels, channels);
    plane_[pixel] = static_cast<std::byte>(std::max_element(scores.begin(), scores.end()) - scores.begin());
  }
}

void PredictionFiles::write_sample(std::int64_t n, data::formats::VolumeFile* file) {
  for (const Part& part : parts_[static_cast<std::size_t>(n)]) {
    tensor::Box box = part.box;
    const bool mine = part.rank == session_.comm().rank();
    if (options_.labels) box.set(tensor::Dim::c, {0, 1});
    for (std::int64_t d = box.lo.d; d < box.hi.d; ++d) {
      if (mine) pack_plane(part.port, n, d);
      if (file == nullptr) {
        comm::send(session_.comm(), std::span<const std::byte>(plane_), 0);
        continue;
      }
      const tensor::Box plane = plane_of(box, d);
      if (!mine) {
        plane_.resize(static_cast<std::size_t>(tensor::volume(plane)) * (options_.labels ? 1 : sizeof(float)));
        comm::receive(session_.comm(), std::span<std::byte>(plane_), part.rank);
      }
      file->write(plane, plane_);
    }
  }
}

void PredictionFiles::write(const EvaluatedBatch& batch) {
  for (std::int64_t n = 0; n < batch.samples; ++n) {
    const auto file = session_.comm().rank() == 0 ? open(paths_[static_cast<std::size_t>(batch.first + n)]) : nullptr;
    write_sample(n, file.get());
    if (file) file->commit();
  }
}

}  // namespace orthant::train
