#include "orthant/wrapper/cost_store.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"

namespace orthant::wrapper {
namespace {

// Costs are two entries of the file's list, limits one.
constexpr const char* once = " once";
constexpr const char* limit = "limit";

bool take_off(std::string& text, const std::string& end) {
  if (!text.ends_with(end)) return false;
  text.resize(text.size() - end.size());
  return true;
}

Known known_from(const std::vector<microbatch::Measured>& entries) {
  Known known;
  for (const microbatch::Measured& entry : entries) {
    std::string label = entry.algorithm;
    const bool is_once = take_off(label, once);
    const Label read = read_label(label);
    if (read.kind == limit) {
      known.limits[to_text(read.cut)] = entry.workspace_bytes;
      continue;
    }
    Cost& cost = known.costs[label];
    cost.workspace_bytes = entry.workspace_bytes;
    (is_once ? cost.once_seconds : cost.piece_seconds) = entry.seconds;
  }
  return known;
}

std::vector<microbatch::Measured> entries_of(const Known& known) {
  std::vector<microbatch::Measured> entries;
  for (const auto& [label, cost] : known.costs) {
    entries.push_back({label, cost.piece_seconds, cost.workspace_bytes});
    entries.push_back({label + once, cost.once_seconds, cost.workspace_bytes});
  }
  for (const auto& [cut, bytes] : known.limits) entries.push_back({fmt::format("{}@{}", limit, cut), 0, bytes});
  return entries;
}

}  // namespace

CostStore::CostStore(const std::string& path, const std::string& machine,
                     const std::function<void(const std::string&)>& complain)
    : store_(path, machine), records_(store_.load()) {
  if (const std::string why = store_.trouble(); !why.empty())
    complain(fmt::format("measurements in {} are ignored: {}", path, why));
}

Known CostStore::find(const std::string& problem) {
  const std::lock_guard lock(mutex_);
  const auto found = records_.find(problem);
  if (found == records_.end()) return {};
  try {
    return known_from(found->second);
  } catch (const base::Error&) {
    return {};  // of another program that uses the same file
  }
}

void CostStore::put(const std::string& problem, const Known& known) {
  const std::lock_guard lock(mutex_);
  records_[problem] = entries_of(known);
  static_cast<void>(store_.add({{problem, records_[problem]}}));  // what cannot be written is measured again next time
}

}  // namespace orthant::wrapper
