#pragma once

#include "orthant/comm/comm.hpp"
#include "orthant/schedule/schedule.hpp"

#include <map>
#include <memory>
#include <span>
#include <vector>

namespace orthant::engine {

/// The memory that the ranks of a machine share, as their schedules say: gradients that one reads in the arena of
/// another, and weights that they have in common.
class SharedMemory {
 public:
  /// Makes the arena's first pages fit to be shared; their contents are lost. Nothing is sent.
  SharedMemory(const schedule::Schedule& schedule, const schedule::Placement& placement, std::byte* arena,
               comm::Comm& comm);

  /// Collective among the ranks that share memory. Puts common weights in their place: the first holder's contents
  /// remain. Finds what other ranks keep.
  void connect();
  /// Where a buffer lies that another rank keeps.
  [[nodiscard]] const std::byte* kept(int buffer) const { return views_.at(buffer).data(); }

 private:
  /// Where a piece of shared memory lies, by the tag of the exchange that announces it.
  struct Entry {
    int tag = 0;
    comm::SharedPages::Place place;
  };
  using Entries = std::vector<Entry>;

  [[nodiscard]] std::vector<int> peers() const;
  [[nodiscard]] Entries entries_for(int peer) const;
  void take(int peer, const Entries& entries);
  [[nodiscard]] std::span<std::byte> common_pages(const schedule::Bucket& bucket) const;
  [[nodiscard]] comm::SharedPages::Place place_of(std::span<const std::byte> memory) const;

  const schedule::Schedule& schedule_;
  const schedule::Placement& placement_;
  std::byte* arena_;
  comm::Comm& comm_;
  std::unique_ptr<comm::SharedPages> pages_;  ///< null if there is nobody to share them with
  std::map<int, comm::SharedView> views_;     ///< by buffer
};

}  // namespace orthant::engine
