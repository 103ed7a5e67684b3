#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/data/generate/displacement.hpp"

namespace orthant::data::generate {

/// Particles in a cell, in units of 1 / particle_unit: whole numbers, whose sums do not depend on their order.
inline constexpr std::uint32_t particle_unit = 1U << 16U;

struct Growth {
  double first = 1, second = -3.0 / 7;
};

/// Moves particles, of which every cell has one at first, by their displacements, and distributes each among the eight
/// cells around it (cloud in cell). The box is periodic.
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
  /// The planes that the particles of a rank can reach, modulo the size of the box.
  struct Reach {
    std::int64_t first = 0, planes = 0;
  };
  [[nodiscard]] Reach reach_of(int rank) const;
  [[nodiscard]] std::int64_t slot_of(const Reach& reach, std::int64_t d) const;
  [[nodiscard]] std::span<std::uint32_t> slot(std::int64_t index);
  void place_mine(const Displacements& displacements, const Growth& growth);
  /// Deposits only what falls into these slots: each thread has slots of its own, and visits all particles that can
  /// reach them.
  void place_into(const tensor::Range& slots, const Displacements& displacements, const Growth& growth);
  /// True if particles that start in plane d can reach these slots.
  [[nodiscard]] bool can_reach(std::int64_t d, const tensor::Range& slots) const;
  /// Collective. Adds what particles of other ranks deposited in planes of this rank.
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
