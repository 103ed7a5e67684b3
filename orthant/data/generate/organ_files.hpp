#pragma once

#include "orthant/data/arrays/number.hpp"
#include "orthant/data/generate/organs.hpp"
#include "orthant/data/io/set_directory.hpp"

#include <memory>
#include <string>

namespace orthant::data::generate {

/// Volumes of organs as files: `volume` [d][h][w][1] and `segmentation` [d][h][w][1] (uint8).
struct OrganSet {
  OrganSettings settings;
  std::int64_t volumes = 1;
  arrays::NumberType type = arrays::NumberType::f32;  ///< or i16
  int gzip = 0;                                       ///< level; 0: not compressed
  std::string directory;
  bool overwrite = false;

  [[nodiscard]] io::SetDirectory set_directory() const;
};

/// The value of brightness 1 as an int16.
inline constexpr int counts_per_brightness = 1024;

/// The number of planes that are drawn and written at a time, and how many times that is for one volume.
std::int64_t planes_at_once(const OrganSettings& settings);
std::int64_t steps_of_volume(const OrganSettings& settings);

/// The memory that is needed to make a volume.
std::int64_t volume_bytes(const OrganSet& set);

/// "organs_00012.h5".
std::string organ_file(std::int64_t sample);

/// Writes one volume, with some planes at each call of step().
class OrganFile {
 public:
  OrganFile(const OrganSet& set, std::int64_t sample, int threads);
  OrganFile(const OrganFile&) = delete;
  OrganFile& operator=(const OrganFile&) = delete;
  ~OrganFile();

  /// To be called steps_of_volume() times; the file is complete after the last one.
  void step();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace orthant::data::generate
