#include "orthant/plan/stages.hpp"

#include "orthant/model/work.hpp"
#include "orthant/plan/groups.hpp"

#include <algorithm>
#include <limits>
#include <utility>

namespace orthant::plan {
namespace {

/// Nodes between two places where the network may be cut.
struct Segment {
  int first = 0;  ///< node
  double flops = 0;
  double border_bytes = 0;  ///< of the tensors that are made before it and read in it or after it
};

/// The last node that reads each node's dst.
std::vector<int> last_readers(const model::Graph& graph) {
  std::vector<int> last(graph.nodes.size(), -1);
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    for (const int src : graph.nodes[node].srcs) last[static_cast<std::size_t>(src)] = static_cast<int>(node);
  }
  return last;
}

std::vector<Segment> segments_of(const model::Graph& graph) {
  const model::GraphWork work = model::work_of(graph);
  const std::vector<bool> borders = stage_borders(graph);
  const std::vector<int> last = last_readers(graph);
  std::vector<Segment> segments;
  for (std::size_t node = 0; node < graph.nodes.size(); ++node) {
    if (segments.empty() || borders[node]) {
      segments.push_back({.first = static_cast<int>(node)});
      for (std::size_t src = 0; src < node; ++src) {
        if (last[src] >= static_cast<int>(node)) {
          segments.back().border_bytes += static_cast<double>(work.nodes[src].activation_bytes);
        }
      }
    }
    segments.back().flops += static_cast<double>(work.nodes[node].flops);
  }
  return segments;
}

/// Flops of the segments before each.
std::vector<double> running_flops(const std::vector<Segment>& segments) {
  std::vector<double> sums{0};
  for (const Segment& segment : segments) sums.push_back(sums.back() + segment.flops);
  return sums;
}

/// The smallest possible flops of the largest of `stages` runs of segments.
double least_largest(const std::vector<double>& sums, int stages) {
  constexpr double none = std::numeric_limits<double>::infinity();
  std::vector<double> best(sums.size(), none);
  best[0] = 0;
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<double> next(sums.size(), none);
    for (std::size_t end = 1; end < sums.size(); ++end) {
      for (std::size_t begin = 0; begin < end; ++begin) {
        next[end] = std::min(next[end], std::max(best[begin], sums[end] - sums[begin]));
      }
    }
    best = std::move(next);
  }
  return best.back();
}

/// Sum of squared flops, then bytes on borders.
using Cost = std::pair<double, double>;

/// Where the runs begin: no run above `limit`, then the least sum of squares, then the fewest bytes on borders.
std::vector<std::size_t> best_begins(const std::vector<Segment>& segments, int stages, double limit) {
  const std::vector<double> sums = running_flops(segments);
  std::vector<std::vector<std::size_t>> from;
  const Cost none{std::numeric_limits<double>::infinity(), 0};
  std::vector<Cost> best(sums.size(), none);
  best[0] = {0, 0};
  for (int stage = 0; stage < stages; ++stage) {
    std::vector<Cost> next(sums.size(), none);
    from.emplace_back(sums.size());
    for (std::size_t end = 1; end < sums.size(); ++end) {
      for (std::size_t begin = 0; begin < end; ++begin) {
        const double flops = sums[end] - sums[begin];
        if (flops > limit) continue;
        const Cost cost{best[begin].first + flops * flops, best[begin].second + segments[begin].border_bytes};
        if (cost < next[end]) {
          next[end] = cost;
          from.back()[end] = begin;
        }
      }
    }
    best = std::move(next);
  }
  std::vector<std::size_t> begins;
  std::size_t end = segments.size();
  for (auto stage = from.rbegin(); stage != from.rend(); ++stage) {
    end = (*stage)[end];
    begins.insert(begins.begin(), end);
  }
  return begins;
}

}  // namespace

int most_stages(const model::Graph& graph) {
  const std::vector<Segment> segments = segments_of(graph);
  const auto working =
      std::count_if(segments.begin(), segments.end(), [](const Segment& segment) { return segment.flops > 0; });
  return std::max(1, static_cast<int>(working));
}

std::vector<int> balanced_stages(const model::Graph& graph, int stages) {
  const std::vector<Segment> segments = segments_of(graph);
  const double limit = least_largest(running_flops(segments), stages);
  std::vector<int> result(graph.nodes.size());
  int stage = 0;
  for (const std::size_t begin : best_begins(segments, stages, limit)) {
    std::fill(result.begin() + segments[begin].first, result.end(), stage++);
  }
  return result;
}

int pipeline_pieces(const model::Graph& graph, int stages, int sample_parts) {
  const bool whole_batch = std::any_of(graph.loss.terms.begin(), graph.loss.terms.end(),
                                       [](const auto& term) { return term.kind == model::LossKind::soft_dice; });
  if (stages == 1 || whole_batch) return 1;
  const std::int64_t samples = graph.nodes.front().shape.n;
  const std::int64_t most = std::clamp<std::int64_t>(samples / sample_parts, 1, std::int64_t{2} * stages);
  for (std::int64_t count = most; count >= std::min<std::int64_t>(stages, most); --count) {
    if (samples % count == 0) return static_cast<int>(count);
  }
  return static_cast<int>(most);
}

}  // namespace orthant::plan
