// What the schedules of a network say that its ranks send in one training step, per strategy, as a Markdown table:
// volumes MODEL INPUT MINI_BATCH RANKS...

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/network.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/schedule/schedule.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <exception>

namespace orthant {
namespace {

using schedule::Kind;
using schedule::Volume;

constexpr std::array kinds{Kind::halo,       Kind::gather, Kind::redistribution, Kind::gradient, Kind::weights,
                           Kind::statistics, Kind::loss};

std::string megabytes(std::int64_t bytes) {
  const double value = static_cast<double>(bytes) * 1e-6;
  if (bytes == 0) return "";
  if (value < 0.001) return "<0.001";
  return value < 100 ? fmt::format("{:.3g}", value) : fmt::format("{:.0f}", value);
}

/// All ranks together, but for the last entry: bytes of the rank that sends most.
struct Totals {
  std::array<Volume, kinds.size()> of_kind{};
  std::int64_t messages = 0, bytes = 0, most_bytes = 0;
};

Totals totals(const model::Graph& graph, const plan::Plan& plan) {
  Totals result;
  for (int rank = 0; rank < plan.ranks; ++rank) {
    const schedule::Schedule schedule = schedule::lower(graph, plan, rank, {});
    std::int64_t bytes = 0;
    for (std::size_t i = 0; i < kinds.size(); ++i) {
      const Volume volume = sent(schedule, kinds[i]);
      result.of_kind[i].bytes += volume.bytes;
      result.messages += volume.messages;
      bytes += volume.bytes;
    }
    result.bytes += bytes;
    result.most_bytes = std::max(result.most_bytes, bytes);
  }
  return result;
}

void print_row(const model::Graph& graph, const std::string& strategy, int ranks) {
  try {
    const plan::CompactGrid grid = plan::strategy_grid(graph, strategy, ranks);
    const Totals sums = totals(graph, plan::make_plan(graph, grid));
    std::string row = fmt::format("| {} | {} | `{}` |", ranks, strategy, plan::to_text(grid));
    for (const Volume& volume : sums.of_kind) row += fmt::format(" {} |", megabytes(volume.bytes));
    fmt::print("{} {} | {} | {} |\n", row, megabytes(sums.bytes), megabytes(sums.most_bytes), sums.messages);
  } catch (const base::Error& error) {
    fmt::print(stderr, "{} at {} ranks: {}\n", strategy, ranks, error.what());
  }
}

void print_table(int argc, char** argv) {
  if (argc < 5) base::fail(base::Exit::usage, "volumes MODEL INPUT MINI_BATCH RANKS...");
  const model::Graph graph =
      model::load_network(argv[1], {.input = argv[2], .mini_batch = std::atoi(argv[3]), .settings = {}});
  fmt::print("| ranks | strategy | grid |");
  for (const Kind kind : kinds) fmt::print(" {} |", schedule::name_of(kind));
  fmt::print(" all | rank that sends most | messages |\n|---|---|---|");
  for (std::size_t i = 0; i < kinds.size() + 3; ++i) fmt::print("---|");
  fmt::print("\n");
  for (int i = 4; i < argc; ++i) {
    for (const std::string& strategy : plan::strategy_names()) print_row(graph, strategy, std::atoi(argv[i]));
  }
}

}  // namespace
}  // namespace orthant

int main(int argc, char** argv) {
  try {
    orthant::print_table(argc, argv);
    return 0;
  } catch (const orthant::base::Error& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(error.code());
  } catch (const std::exception& error) {
    fmt::print(stderr, "error: {}\n", error.what());
    return static_cast<int>(orthant::base::Exit::internal);
  }
}
