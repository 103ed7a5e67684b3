#include "orthant/data/generate/organ_files.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/formats/hdf5_write.hpp"

#include <algorithm>
#include <cmath>

namespace orthant::data::generate {
namespace {

constexpr std::int64_t header_bytes = 8192;

std::vector<std::int16_t> as_counts(std::span<const float> brightness) {
  std::vector<std::int16_t> counts(brightness.size());
  std::transform(brightness.begin(), brightness.end(), counts.begin(), [](float x) {
    return static_cast<std::int16_t>(std::lround(std::clamp(x * counts_per_brightness, -32768.0F, 32767.0F)));
  });
  return counts;
}

formats::Hdf5Extents format_of(const OrganSet& set, arrays::NumberType type) {
  const std::int64_t size = set.settings.size;
  formats::Hdf5Extents format{.type = type, .extents = {size, size, size, 1}, .gzip = set.gzip};
  if (set.gzip > 0) {
    const std::int64_t side = std::min<std::int64_t>(size, 128);
    format.chunk = {planes_at_once(set.settings), side, side, 1};
  }
  return format;
}

}  // namespace

io::SetDirectory OrganSet::set_directory() const {
  const std::int64_t voxels = base::checked_product({settings.size, settings.size, settings.size});
  const std::int64_t each = base::checked_add(base::checked_mul(voxels, bytes_of(type) + 1), header_bytes);
  return {.path = directory, .prefix = "organs_", .bytes = base::checked_mul(volumes, each), .overwrite = overwrite};
}

std::int64_t planes_at_once(const OrganSettings& settings) { return std::min<std::int64_t>(settings.size, 16); }

std::int64_t steps_of_volume(const OrganSettings& settings) {
  return (settings.size + planes_at_once(settings) - 1) / planes_at_once(settings);
}

std::int64_t volume_bytes(const OrganSet& set) {
  const std::int64_t voxels =
      base::checked_product({set.settings.size, set.settings.size, planes_at_once(set.settings)});
  return voxels * (static_cast<std::int64_t>(sizeof(float)) + 1 + (set.type == arrays::NumberType::i16 ? 2 : 0));
}

std::string organ_file(std::int64_t sample) { return fmt::format("organs_{:05}.h5", sample); }

struct OrganFile::State {
  State(const OrganSet& all, std::int64_t sample, int thread_count)
      : set(all), threads(thread_count), organs(all.settings, sample), file(all.directory + "/" + organ_file(sample)) {}

  const OrganSet& set;
  int threads;
  OrganScene organs;
  formats::Hdf5Writer file;
  std::int64_t planes_done = 0;
};

OrganFile::OrganFile(const OrganSet& set, std::int64_t sample, int threads)
    : state_(std::make_unique<State>(set, sample, threads)) {
  formats::Hdf5Writer& file = state_->file;
  file.create("volume", format_of(set, set.type));
  file.create("segmentation", format_of(set, arrays::NumberType::u8));
  if (set.type == arrays::NumberType::i16) file.attribute("volume", "scale", std::int64_t{counts_per_brightness});
  file.attribute("segmentation", "classes", std::int64_t{set.settings.classes});
  file.attribute("", "made_by", std::string("orthant data make organs"));
  file.attribute("", "seed", static_cast<std::int64_t>(set.settings.seed));
  file.attribute("", "sample", sample);
}

OrganFile::~OrganFile() = default;

void OrganFile::step() {
  const OrganSettings& settings = state_->set.settings;
  const tensor::Range planes{state_->planes_done,
                             std::min(settings.size, state_->planes_done + planes_at_once(settings))};
  const auto voxels = static_cast<std::size_t>((planes.hi - planes.lo) * settings.size * settings.size);
  std::vector<float> volume(voxels);
  std::vector<std::uint8_t> labels(voxels);
  state_->organs.draw(planes, state_->threads, volume, labels);
  if (state_->set.type == arrays::NumberType::i16) {
    const std::vector<std::int16_t> counts = as_counts(volume);
    state_->file.append("volume", std::as_bytes(std::span(counts)));
  } else {
    state_->file.append("volume", std::as_bytes(std::span(volume)));
  }
  state_->file.append("segmentation", std::as_bytes(std::span(labels)));
  state_->planes_done = planes.hi;
  if (planes.hi == settings.size) state_->file.commit();
}

}  // namespace orthant::data::generate
