#include "orthant/model/stored.hpp"

#include <algorithm>
#include <cassert>

namespace orthant::model {
namespace {

/// visit(place in the parameter, place in the file's tensor).
template <class Visit>
void walk(const Stored& stored, Visit visit) {
  std::vector<std::int64_t> position(stored.view.size(), 0);
  std::int64_t count = 1;
  for (const std::int64_t extent : stored.view) count *= extent;
  std::int64_t at = 0;
  for (std::int64_t i = 0; i < count; ++i) {
    visit(static_cast<std::size_t>(i), static_cast<std::size_t>(at));
    for (std::size_t dim = position.size(); dim-- > 0;) {
      at += stored.strides[dim];
      if (++position[dim] < stored.view[dim]) break;
      at -= stored.strides[dim] * stored.view[dim];
      position[dim] = 0;
    }
  }
}

}  // namespace

const Stored* stored_of(const Graph& graph, const Parameter& parameter) {
  const std::vector<Stored>& all = graph.nodes[static_cast<std::size_t>(parameter.node)].stored;
  const auto found =
      std::find_if(all.begin(), all.end(), [&](const Stored& one) { return one.role == parameter.role; });
  return found == all.end() ? nullptr : &*found;
}

std::vector<std::int64_t> file_extents(const Graph& graph, const Parameter& parameter) {
  const Stored* stored = stored_of(graph, parameter);
  return stored == nullptr ? parameter.extents : stored->extents;
}

bool is_in_files(const Graph& graph, const Parameter& parameter) {
  const Stored* stored = stored_of(graph, parameter);
  return stored == nullptr || !stored->constant;
}

void from_stored(const Stored& stored, std::span<const float> file, std::span<float> items) {
  walk(stored, [&](std::size_t item, std::size_t at) { items[item] = file[at]; });
}

void to_stored(const Stored& stored, std::span<const float> items, std::span<float> file) {
  assert(file.size() == items.size());
  walk(stored, [&](std::size_t item, std::size_t at) { file[at] = items[item]; });
}

}  // namespace orthant::model
