#include "orthant/engine/tune.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/printable.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/engine/memory.hpp"
#include "orthant/microbatch/store.hpp"

#include <memory>
#include <optional>

namespace orthant::cli {
namespace {

using base::Json;
using engine::Tuned;
using engine::TunedKernel;
using engine::Way;
using Of = engine::WorkspaceLimit::Of;

struct TuneArguments {
  NetworkArguments network;
  int threads = 0;
  std::optional<std::int64_t> workspace, total, memory;
  std::string policy = "powerOfTwo", error = "exact", optimizer = "sgd", output;
  bool json = false;
};

constexpr std::array policies{"undivided", "powerOfTwo", "all"};

engine::WorkspaceLimit limit_of(const TuneArguments& arguments) {
  if (arguments.total) return {.of = Of::total, .bytes = *arguments.total};
  if (arguments.memory) return {.of = Of::memory, .bytes = *arguments.memory};
  if (arguments.workspace) return {.of = Of::kernel, .bytes = *arguments.workspace};
  base::fail(base::Exit::usage,
             "orthant tune: within which limit? Give --workspace (of each convolution), --total (of all together) or "
             "--memory (of the whole step)");
}

engine::TableOptions options_of(const TuneArguments& arguments) {
  const auto policy = std::find(policies.begin(), policies.end(), arguments.policy) - policies.begin();
  engine::TableOptions options{.threads = thread_count(arguments.threads),
                               .policy = static_cast<microbatch::Policy>(policy),
                               .error = errors_named(arguments.error),
                               .cache_path = microbatch::store_path(),
                               .most_bytes = engine::available_memory_bytes()};
  // Shared, because the functions below are copied together with the options.
  const auto progress = std::make_shared<std::unique_ptr<FileProgress>>();
  options.progress = [progress](int done, int all, double seconds_left) {
    if (!*progress) {
      fmt::print(stderr, "measuring {} sizes of convolutions on this machine, once\n", all);
      *progress = std::make_unique<FileProgress>("measuring", "sizes");
    }
    (*progress)->update(done, all, seconds_left);
    if (done == all) progress->reset();
  };
  options.ignored = [path = options.cache_path](const std::string& why) {
    fmt::print(stderr, "ignoring the measured kernels in '{}': {}\n", base::one_line(path), why);
  };
  options.forgotten = [path = options.cache_path] {
    fmt::print(stderr, "cannot write '{}': the next run will measure again\n", base::one_line(path));
  };
  return options;
}

std::int64_t samples_of(const TunedKernel& kernel) { return kernel.kernel.task.src.extents.n; }

std::string error_text(double error) { return error > 0 ? fmt::format("{:.1e}", error) : ""; }

void add_way(std::vector<std::string>& cells, const std::optional<Way>& way, std::int64_t samples) {
  if (!way) {
    cells.insert(cells.end(), {"does not fit", "", "", ""});
    return;
  }
  cells.insert(cells.end(), {engine::to_text(way->pieces, samples), fmt::format("{:.3f}", way->seconds * 1e3),
                             bytes_text(way->workspace_bytes), error_text(way->error)});
}

std::string table_of(const Tuned& tuned) {
  using Align = Table::Align;
  Table table({{"convolution", Align::left},
               {"undivided", Align::left},
               {"ms"},
               {"workspace"},
               {"error"},
               {"tuned", Align::left},
               {"ms"},
               {"workspace"},
               {"error"}});
  for (const TunedKernel& kernel : tuned.kernels) {
    std::vector<std::string> cells{kernel.kernel.name};
    add_way(cells, kernel.before, samples_of(kernel));
    add_way(cells, kernel.after, samples_of(kernel));
    table.add(std::move(cells));
  }
  table.add_line();
  const std::string before =
      tuned.undivided_seconds ? fmt::format("{:.3f}", *tuned.undivided_seconds * 1e3) : "does not fit";
  table.add({"all of a step", "", before, "", "", "", fmt::format("{:.3f}", tuned.seconds * 1e3),
             bytes_text(tuned.total_bytes), ""});
  return table.text();
}

Json to_json(const Way& way, std::int64_t samples) {
  Json pieces = Json::array();
  for (const model::ConvPiece& piece : way.pieces)
    pieces.push_back(
        {{"algorithm", model::name_of(piece.algorithm)}, {"samples", piece.samples}, {"slabs", piece.slabs}});
  return {{"way", engine::to_text(way.pieces, samples)},
          {"pieces", pieces},
          {"seconds", way.seconds},
          {"workspace_bytes", way.workspace_bytes},
          {"relative_error", way.error}};
}

Json front_json(const std::vector<microbatch::Division>& front) {
  Json list = Json::array();
  for (const microbatch::Division& one : front)
    list.push_back({{"seconds", one.seconds}, {"workspace_bytes", one.workspace_bytes}, {"pieces", one.pieces.size()}});
  return list;
}

Json to_json(const TuneArguments& arguments, const model::Graph& graph, const Tuned& tuned) {
  constexpr std::array kinds{"workspace", "total", "memory"};
  const engine::WorkspaceLimit limit = limit_of(arguments);
  Json layers = Json::array();
  for (std::size_t i = 0; i < tuned.kernels.size(); ++i) {
    const TunedKernel& kernel = tuned.kernels[i];
    layers.push_back({{"name", kernel.kernel.name},
                      {"times", kernel.kernel.times},
                      {"samples", samples_of(kernel)},
                      {"undivided", kernel.before ? to_json(*kernel.before, samples_of(kernel)) : Json()},
                      {"tuned", to_json(kernel.after, samples_of(kernel))},
                      {"front", front_json(tuned.fronts[i])}});
  }
  return {{"network", graph.name},
          {"mini_batch", graph.nodes.front().shape.n},
          {"threads", thread_count(arguments.threads)},
          {"policy", arguments.policy},
          {"error", arguments.error},
          {"limit", kinds[static_cast<std::size_t>(limit.of)]},
          {"limit_bytes", limit.bytes},
          {"undivided_seconds", tuned.undivided_seconds ? Json(*tuned.undivided_seconds) : Json()},
          {"tuned_seconds", tuned.seconds},
          {"workspace_bytes", tuned.workspace_bytes},
          {"total_workspace_bytes", tuned.total_bytes},
          {"arena_bytes", tuned.arena_bytes},
          {"measured", tuned.measured},
          {"optimiser_seconds", tuned.optimiser_seconds},
          {"layers", std::move(layers)}};
}

void print_text(const TuneArguments& arguments, const Tuned& tuned) {
  fmt::print("{}\n", table_of(tuned));
  if (tuned.undivided_seconds)
    fmt::print("convolutions  {} undivided, {} tuned: {:.2f} times as fast\n", seconds_text(*tuned.undivided_seconds),
               seconds_text(tuned.seconds), *tuned.undivided_seconds / tuned.seconds);
  fmt::print("workspace     {} at most, {} of all convolutions together\n", bytes_text(tuned.workspace_bytes),
             bytes_text(tuned.total_bytes));
  fmt::print("arena         {} bytes ({})\n", tuned.arena_bytes, bytes_text(tuned.arena_bytes));
  if (!arguments.output.empty()) fmt::print("plan          written to {}\n", arguments.output);
}

void run_tune(const TuneArguments& arguments) {
  const engine::WorkspaceLimit limit = limit_of(arguments);
  const model::Graph graph = load(arguments.network);
  model::Optimizer optimizer{.kind = model::OptimizerKind::sgd, .momentum = 0.9};
  if (arguments.optimizer == "adam") optimizer = {.kind = model::OptimizerKind::adam};
  const Tuned tuned =
      engine::tune(graph, plan::serial_plan(graph), {.optimizer = optimizer}, options_of(arguments), limit);
  if (!arguments.output.empty()) data::io::write_text(arguments.output, plan::to_json(tuned.plan) + "\n");
  if (arguments.json) {
    fmt::print("{}\n", to_json(arguments, graph, tuned).dump(2));
  } else {
    print_text(arguments, tuned);
  }
}

std::int64_t bytes_from(const std::string& option, const std::string& word) {
  constexpr std::uint64_t most = std::uint64_t{1} << 60U;
  try {
    std::string number = word;
    const bool is_number = CLI::AsSizeValue(true)(number).empty() && !word.empty();
    if (const std::uint64_t bytes = is_number ? std::stoull(number) : most + 1; bytes <= most)
      return static_cast<std::int64_t>(bytes);
  } catch (const std::exception&) {
    // CLI11 refuses words by exceptions that do not name the option.
  }
  base::fail(base::Exit::usage, "{}: '{}' is no number of bytes; write for example 64MiB, 1GB or 0", option,
             base::one_line(word));
}

/// Bytes, with the units of --memory everywhere: 64MiB, 1GB, or a number.
CLI::Option* add_bytes(CLI::App& command, const std::string& name, std::optional<std::int64_t>& bytes,
                       const std::string& text) {
  return command
      .add_option_function<std::string>(
          name, [&bytes, name](const std::string& word) { bytes = bytes_from(name, word); }, text)
      ->type_name("BYTES");
}

}  // namespace

void add_tune(CLI::App& app) {
  CLI::App* command = app.add_subcommand(
      "tune", "Divide convolutions into pieces, each with the algorithm that is fastest within a workspace limit");
  const auto arguments = std::make_shared<TuneArguments>();
  add_model(*command, arguments->network);
  add_shape(*command, arguments->network);
  add_threads(*command, arguments->threads);
  CLI::Option* workspace =
      add_bytes(*command, "--workspace", arguments->workspace, "Limit of each convolution's workspace, such as 64MiB");
  CLI::Option* total =
      add_bytes(*command, "--total", arguments->total, "Limit of the workspaces of all convolutions together");
  CLI::Option* memory =
      add_bytes(*command, "--memory", arguments->memory, "Limit of the step's arena: tensors and workspaces");
  workspace->excludes(total)->excludes(memory);
  total->excludes(memory);
  command->add_option("--policy", arguments->policy, "Sizes of pieces that are tried: undivided, powerOfTwo or all")
      ->check(CLI::IsMember(policies))
      ->capture_default_str();
  command
      ->add_option("--error", arguments->error,
                   "Algorithms to choose among: exact, within twice the error of direct sums, or fast, within ten "
                   "times of it")
      ->check(CLI::IsMember({"exact", "fast"}))
      ->capture_default_str();
  command->add_option("--optimizer", arguments->optimizer, "sgd (with momentum) or adam")
      ->check(CLI::IsMember({"sgd", "adam"}))
      ->capture_default_str();
  command->add_option("-o,--output", arguments->output, "Write the plan to this file, for `train --plan`");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_tune(*arguments); });
}

}  // namespace orthant::cli
