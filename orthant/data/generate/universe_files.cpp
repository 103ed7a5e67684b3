#include "orthant/data/generate/universe_files.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/formats/hdf5_write.hpp"

#include <algorithm>
#include <cmath>
#include <optional>

namespace orthant::data::generate {
namespace {

using base::Exit;
using base::fail;

/// The bytes of a file in addition to its numbers.
constexpr std::int64_t header_bytes = 8192;

std::int64_t pixel_bytes(const UniverseSet& set) {
  return static_cast<std::int64_t>(set.settings.redshifts.size()) * bytes_of(set.settings.type);
}

std::int64_t plane_bytes(const UniverseSet& set) { return set.settings.size * set.settings.size * pixel_bytes(set); }

/// Planes that are written at a time: a layer of cubes, or a few of a file that stays open.
std::int64_t planes_at_once(const UniverseSet& set) {
  return set.split > 0 ? set.split : std::min<std::int64_t>(set.settings.size, 8);
}

/// Writes the cubes of one universe from the first plane to the last.
class CubeFiles {
 public:
  CubeFiles(const UniverseSet& set, const UniverseParameters& parameters, std::int64_t universe)
      : set_(set), parameters_(parameters), universe_(universe) {}

  void add(std::int64_t first, std::span<const std::byte> planes) {
    const std::int64_t per_side = set_.settings.size / set_.cube();
    for (std::int64_t h = 0; h < per_side; ++h)
      for (std::int64_t w = 0; w < per_side; ++w) add_to_cube({first / set_.cube(), h, w}, first, planes);
  }

 private:
  using CubeIndex = std::array<std::int64_t, 3>;

  void add_to_cube(const CubeIndex& cube, std::int64_t first, std::span<const std::byte> planes) {
    if (first % set_.cube() == 0) begin(cube);
    const std::int64_t count = static_cast<std::int64_t>(planes.size()) / plane_bytes(set_);
    file_->append("full", set_.split > 0 ? cut(cube, planes) : planes);
    if (first % set_.cube() + count == set_.cube()) {
      file_->commit();
      file_.reset();
    }
  }

  void begin(const CubeIndex& cube) {
    file_.emplace(set_.directory + "/" + universe_file(set_, universe_, cube[0], cube[1], cube[2]));
    const std::int64_t side = set_.cube(), channels = static_cast<std::int64_t>(set_.settings.redshifts.size());
    formats::Hdf5Extents full{.type = set_.settings.type, .extents = {side, side, side, channels}};
    if (set_.gzip > 0) {
      full.chunk = {std::min<std::int64_t>(side, 16), side, side, channels};
      // A chunk stays below a few megabytes.
      for (const std::size_t dim : {1U, 2U}) full.chunk[dim] = std::min<std::int64_t>(side, 128);
      full.gzip = set_.gzip;
    }
    file_->create("full", full);
    if (set_.settings.type == arrays::NumberType::i16)
      file_->attribute("full", "scale", std::int64_t{counts_per_particle});
    write_parameters("unitPar", parameters_.unit);
    write_parameters("physPar", parameters_.physical);
    write_attributes(cube);
  }

  void write_parameters(const std::string& name, const std::array<double, 4>& numbers) {
    std::array<float, 4> floats{};
    std::transform(numbers.begin(), numbers.end(), floats.begin(), [](double x) { return static_cast<float>(x); });
    file_->create(name, {.type = arrays::NumberType::f32, .extents = {4}});
    file_->append(name, std::as_bytes(std::span(floats)));
  }

  void write_attributes(const CubeIndex& cube) {
    const UniverseSettings& settings = set_.settings;
    file_->attribute("", "made_by", std::string("orthant data make cosmology"));
    file_->attribute("", "parameters", std::string("Omega_m sigma_8 n_s H_0"));
    file_->attribute("", "spectrum", transfer_names()[static_cast<std::size_t>(settings.transfer)]);
    file_->attribute("", "redshifts", settings.redshifts);
    const double cell = settings.box / static_cast<double>(settings.size);
    file_->attribute("", "box_mpc_per_h", std::span(&settings.box, 1));
    file_->attribute("", "cell_mpc_per_h", std::span(&cell, 1));
    file_->attribute("", "universe_size", settings.size);
    file_->attribute("", "seed", static_cast<std::int64_t>(settings.seed));
    file_->attribute("", "universe", universe_);
    const std::array<double, 3> origin{static_cast<double>(cube[0] * set_.cube()),
                                       static_cast<double>(cube[1] * set_.cube()),
                                       static_cast<double>(cube[2] * set_.cube())};
    file_->attribute("", "origin", origin);
  }

  /// The part of whole planes that belongs to a cube.
  std::span<const std::byte> cut(const CubeIndex& cube, std::span<const std::byte> planes) {
    const auto row = static_cast<std::size_t>(set_.settings.size * pixel_bytes(set_));
    const auto part = static_cast<std::size_t>(set_.cube() * pixel_bytes(set_));
    const std::size_t planes_count = planes.size() / static_cast<std::size_t>(plane_bytes(set_));
    cube_.resize(planes_count * static_cast<std::size_t>(set_.cube()) * part);
    std::byte* into = cube_.data();
    for (std::size_t d = 0; d < planes_count; ++d) {
      const std::byte* from = planes.data() + d * static_cast<std::size_t>(plane_bytes(set_)) +
                              static_cast<std::size_t>(cube[1] * set_.cube()) * row +
                              static_cast<std::size_t>(cube[2]) * part;
      for (std::int64_t h = 0; h < set_.cube(); ++h, into += part, from += row) std::copy_n(from, part, into);
    }
    return cube_;
  }

  const UniverseSet& set_;
  const UniverseParameters& parameters_;
  std::int64_t universe_;
  std::optional<formats::Hdf5Writer> file_;
  std::vector<std::byte> cube_;
};

/// Collects the planes [lo, hi) of all ranks on rank 0.
void gather_planes(comm::Comm& comm, const UniverseSet& set, const tensor::Range& wanted,
                   std::span<const std::byte> mine, std::vector<std::byte>& into) {
  const Slabs slabs{.size = set.settings.size, .ranks = comm.size()};
  const auto bytes = static_cast<std::size_t>(plane_bytes(set));
  if (comm.rank() == 0) into.resize(static_cast<std::size_t>(wanted.hi - wanted.lo) * bytes);
  for (int rank = 0; rank < comm.size(); ++rank) {
    const tensor::Range own = slabs.planes(rank);
    const std::int64_t lo = std::max(wanted.lo, own.lo), hi = std::min(wanted.hi, own.hi);
    if (lo >= hi) continue;
    const auto length = static_cast<std::size_t>(hi - lo) * bytes;
    const std::span<const std::byte> part =
        rank == comm.rank() ? mine.subspan(static_cast<std::size_t>(lo - own.lo) * bytes, length) : mine.first(0);
    std::byte* place = into.data() + static_cast<std::size_t>(lo - wanted.lo) * bytes;
    if (comm.rank() == 0 && rank == 0) std::copy(part.begin(), part.end(), place);
    if (comm.rank() == 0 && rank != 0) comm.receive({place, length}, rank);
    if (comm.rank() == rank && rank != 0) comm.send(part, 0);
  }
}

}  // namespace

std::int64_t UniverseSet::files() const {
  const std::int64_t per_side = settings.size / cube();
  return base::checked_product({universes, per_side, per_side, per_side});
}

io::SetDirectory UniverseSet::set_directory() const {
  const std::int64_t numbers = base::checked_product({universes, settings.size, plane_bytes(*this)});
  return {.path = directory,
          .prefix = "universe_",
          .bytes = base::checked_add(numbers, base::checked_mul(files(), header_bytes)),
          .overwrite = overwrite};
}

void check_set(const UniverseSet& set) {
  const UniverseSettings& settings = set.settings;
  if (settings.size < 8) fail(Exit::usage, "--size {}: a universe has at least 8 cells along each side", settings.size);
  if (set.split != 0 && (set.split < 4 || set.split > settings.size || settings.size % set.split != 0)) {
    fail(Exit::usage, "--split {}: the side of a cube must divide --size {}, and be at least 4", set.split,
         settings.size);
  }
  if (!(settings.box > 0) || !std::isfinite(settings.box))
    fail(Exit::usage, "--box {}: the side of a universe in Mpc/h must be above 0", settings.box);
  if (settings.redshifts.empty()) fail(Exit::usage, "--redshifts: at least one is needed");
  for (const double z : settings.redshifts) {
    if (!(z >= 0 && z <= 100)) fail(Exit::usage, "--redshifts: {} is not between 0 and 100", z);
  }
}

std::string universe_file(const UniverseSet& set, std::int64_t universe, std::int64_t d, std::int64_t h,
                          std::int64_t w) {
  if (set.split == 0) return fmt::format("universe_{:05}.h5", universe);
  return fmt::format("universe_{:05}_d{}_h{}_w{}.h5", universe, d, h, w);
}

void write_universe(comm::Comm& comm, const UniverseSet& set, const UniverseParameters& parameters,
                    std::int64_t universe, std::span<const std::byte> planes) {
  CubeFiles files(set, parameters, universe);
  std::vector<std::byte> gathered;
  for (std::int64_t first = 0; first < set.settings.size; first += planes_at_once(set)) {
    const tensor::Range range{first, std::min(set.settings.size, first + planes_at_once(set))};
    gather_planes(comm, set, range, planes, gathered);
    comm::on_root(comm, [&] { files.add(first, gathered); });
  }
}

std::int64_t writing_bytes(const UniverseSet& set) {
  const std::int64_t gathered = planes_at_once(set) * plane_bytes(set);
  return gathered + (set.split > 0 ? set.cube() * set.cube() * set.cube() * pixel_bytes(set) : 0);
}

}  // namespace orthant::data::generate
