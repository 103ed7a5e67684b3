#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/generate/displacement.hpp"

namespace orthant::data::generate {

/// Particles in a cell, in units of 1 / particle_unit: whole numbers, whose sums do not depend on their order.
inline constexpr std::uint32_t particle_unit = 1U << 16U;

struct Growth {
  double first = 1, second = -3.0 / 7;
};

/// Puts particles, one per cell at first, where displacements bring them, and shares each out among the eight cells
/// around it (cloud in cell). The box is periodic.
class Deposit {
 public:
  Deposit(comm::Comm& comm, const Slabs& slabs, int threads);

  /// Collective. Replaces what was there before.
  void place(const Displacements& displacements, const Growth& growth);
  /// One of this rank's planes, [h][w].
  [[nodiscard]] std::span<const std::uint32_t> plane(std::int64_t d) const;

  /// The most a rank can allocate if no particle moves farther along depth than `reach` cells.
  static std::int64_t bytes(const Slabs& slabs, int rank, std::int64_t reach);

 private:
  /// Planes that a rank's particles can reach, modulo the box.
  struct Reach {
    std::int64_t first = 0, planes = 0;
  };
  [[nodiscard]] Reach reach_of(int rank) const;
  [[nodiscard]] std::int64_t slot_of(const Reach& reach, std::int64_t d) const;
  [[nodiscard]] std::span<std::uint32_t> slot(std::int64_t index);
  void place_mine(const Displacements& displacements, const Growth& growth);
  /// Only what comes into these slots: each thread has slots of its own, and looks at all particles that may get there.
  void place_into(const tensor::Range& slots, const Displacements& displacements, const Growth& growth);
  /// True if particles that start in plane d may get into these slots.
  [[nodiscard]] bool can_reach(std::int64_t d, const tensor::Range& slots) const;
  /// Collective. Adds what other ranks' particles brought to planes of this one.
  void exchange();
  void exchange_with(int to, int from);
  void check_mass();

  comm::Comm& comm_;
  Slabs slabs_;
  int threads_;
  std::int64_t farthest_ = 0;  ///< cells that a particle of any rank moves along d, rounded up
  std::vector<std::uint32_t> cells_;
};

}  // namespace orthant::data::generate
