#pragma once

#include "orthant/data/generate/universe.hpp"
#include "orthant/data/io/set_directory.hpp"

#include <string>

namespace orthant::data::generate {

/// Universes as files: `full` [d][h][w][redshift], `unitPar` and `physPar` as the CosmoFlow sets have them.
struct UniverseSet {
  UniverseSettings settings;
  std::int64_t universes = 1;
  std::int64_t split = 0;  ///< cubes of this side are cut out of each universe; 0: one file per universe
  int gzip = 0;            ///< level; 0: not compressed
  std::string directory;
  bool overwrite = false;

  [[nodiscard]] std::int64_t cube() const { return split > 0 ? split : settings.size; }
  [[nodiscard]] std::int64_t files() const;
  [[nodiscard]] io::SetDirectory set_directory() const;
};

/// Throws Error for settings that are not possible.
void check_set(const UniverseSet& set);

/// "universe_00012.h5", or "universe_00012_d0_h1_w3.h5" for one of its cubes.
std::string universe_file(const UniverseSet& set, std::int64_t universe, std::int64_t d, std::int64_t h,
                          std::int64_t w);

/// Collective. Rank 0 writes the planes of all ranks, some at a time.
void write_universe(comm::Comm& comm, const UniverseSet& set, const UniverseParameters& parameters,
                    std::int64_t universe, std::span<const std::byte> planes);

/// The memory that rank 0 needs to write a universe.
std::int64_t writing_bytes(const UniverseSet& set);

}  // namespace orthant::data::generate
