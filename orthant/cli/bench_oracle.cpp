#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/bench.hpp"
#include "orthant/cli/oracle_cases.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/comm/command.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/oracle/predict.hpp"
#include "orthant/plan/strategy.hpp"
#include "orthant/planner/planner.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;

struct BenchOracleArguments {
  std::string results = "oracle.json", profile, hosts, link = "inside";
  std::vector<std::string> models, strategies;
  int steps = 5;
  int ranks = 2;
  bool calibrates = true;
  bool again = false;
  bool json = false;
};

/// This program, as a child: the words after its name.
Json answer_of(std::vector<std::string> words) {
  constexpr std::chrono::seconds patience{3600};
  words.insert(words.begin(), std::filesystem::read_symlink("/proc/self/exe").string());
  const comm::Answer answer = comm::run_command(words, patience, comm::Errors::dropped);
  if (answer.code != 0)
    base::fail(base::Exit::io, "`{}` ended with code {}; run it by hand to see why", fmt::join(words, " "),
               answer.code);
  return base::parse_json(answer.text, words[1]);
}

/// Where and how ranks are started, as words of a command line.
std::vector<std::string> ranks_words(const BenchOracleArguments& arguments, int ranks) {
  if (ranks == 1) return {};
  std::vector<std::string> words{"--ranks", std::to_string(ranks)};
  if (!arguments.hosts.empty()) words.insert(words.end(), {"--hosts", arguments.hosts, "--threads", "1"});
  return words;
}

std::vector<std::string> network_words(const OracleCase& one) {
  return {one.model, "--input", one.input, "--batch", std::to_string(one.mini_batch)};
}

template <class... Lists>
std::vector<std::string> joined(std::vector<std::string> first, const Lists&... rest) {
  (first.insert(first.end(), rest.begin(), rest.end()), ...);
  return first;
}

oracle::StepOptions options_for(const BenchOracleArguments& arguments, const oracle::Profile& profile, int ranks) {
  const bool on_hosts = ranks > 1 && !arguments.hosts.empty();
  const int threads = profile.threads_per_rank * profile.ranks_per_machine;
  return {.threads = std::max(1, threads / ranks), .ranks_per_machine = on_hosts ? 1 : ranks};
}

Json parts_json(const oracle::Prediction& prediction) {
  Json parts = Json::object();
  for (std::size_t i = 0; i < oracle::part_count; ++i)
    parts[oracle::name_of(static_cast<oracle::Part>(i))] = prediction.parts[i];
  return parts;
}

/// Runs whose median is far from their best were disturbed by others. Of up to three, the one with the least median.
Json quietest_run(const std::vector<std::string>& words) {
  constexpr int most_runs = 3;
  constexpr double disturbed = 1.1;
  Json quietest;
  for (int i = 0; i < most_runs; ++i) {
    const Json run = answer_of(words);
    const double median = run.at("seconds_median").get<double>();
    if (quietest.is_null() || median < quietest.at("seconds_median").get<double>()) quietest = run;
    if (median <= disturbed * run.at("seconds_best").get<double>()) break;
  }
  return quietest;
}

oracle::Profile profile_of(const BenchOracleArguments& arguments) {
  return oracle::profile_from_json(data::io::read_text(arguments.profile), arguments.profile);
}

/// The planner needs a profile, so its plan comes after those of named strategies, whose kernels have been measured.
plan::Plan plan_for_case(const BenchOracleArguments& arguments, const OracleCase& one, const model::Graph& graph) {
  if (one.strategy != "auto") return plan_of(one, graph);
  const oracle::Profile profile = profile_of(arguments);
  const oracle::StepOptions step = options_for(arguments, profile, one.ranks);
  return planner::plan_best(graph, profile, {.ranks = one.ranks, .step = step}).best.plan;
}

/// Measures the kernels that a case needs alone, predicts its step, and then measures that.
Json run_case(const BenchOracleArguments& arguments, const OracleCase& one) {
  const model::Graph graph = load(one);
  const std::string plan_path = arguments.results + ".plan.json";
  const plan::Plan plan = plan_for_case(arguments, one, graph);
  data::io::write_text(plan_path, plan::to_json(plan) + "\n");
  const std::vector<std::string> where = ranks_words(arguments, one.ranks);
  if (arguments.calibrates) {
    std::vector<std::string> how{"--plan", plan_path, "-o", arguments.profile, "--json"};
    if (arguments.again) how.emplace_back("--again");
    answer_of(joined({"calibrate"}, network_words(one), where, how));
  }
  const oracle::Profile profile = profile_of(arguments);
  const oracle::StepOptions options = options_for(arguments, profile, one.ranks);
  const oracle::Prices prices(profile, options.threads, options.ranks_per_machine);
  const oracle::Prediction predicted = oracle::predict(graph, plan, prices, options);
  data::io::write_text(plan_path, plan::to_json(oracle::with_kernels(graph, plan, prices, options)) + "\n");
  const Json measured =
      quietest_run(joined({"bench", "step"}, network_words(one), where,
                          std::vector<std::string>{"--plan", plan_path, "--steps", std::to_string(arguments.steps),
                                                   "--warmup", "1", "--json"}));
  const double seconds = measured.at("seconds_median").get<double>();
  return {{"model", one.model},
          {"strategy", one.strategy},
          {"ranks", one.ranks},
          {"mini_batch", one.mini_batch},
          {"link", one.ranks == 1 ? "none" : arguments.link},
          {"grid", plan::to_text(plan::main_grid(plan, graph))},
          {"predicted_seconds", predicted.seconds},
          {"predicted_error", predicted.error},
          {"measured_seconds", seconds},
          {"measured_best_seconds", measured.at("seconds_best")},
          {"accuracy", 1 - std::abs(predicted.seconds - seconds) / seconds},
          {"predicted_exposed_seconds", predicted.exposed_seconds},
          {"measured_exposed_seconds", measured.at("exposed_communication_seconds")},
          {"predicted_bytes", predicted.memory.arena_bytes},
          {"measured_bytes", measured.at("arena_bytes")},
          {"predicted_rss_bytes", predicted.memory.resident()},
          {"measured_rss_bytes", measured.at("peak_rss_bytes")},
          {"measured_share_of_kernels", predicted.known[0]},
          {"parts", parts_json(predicted)}};
}

std::string name_of(const OracleCase& one, const std::string& link) {
  return fmt::format("{} {} {}", one.model, one.strategy, one.ranks == 1 ? "none" : link);
}

std::string name_of(const Json& one) {
  return fmt::format("{} {} {}", one.at("model").get<std::string>(), one.at("strategy").get<std::string>(),
                     one.at("link").get<std::string>());
}

/// Pairs of strategies of the same network and link whose measured times differ by more than a tenth, and how many of
/// them are predicted in the wrong order.
struct Order {
  int pairs = 0, wrong = 0;
};
Order order_of(const Json& cases) {
  Order order;
  for (const Json& a : cases) {
    for (const Json& b : cases) {
      const double faster = a.at("measured_seconds"), slower = b.at("measured_seconds");
      if (a.at("model") != b.at("model") || a.at("link") != b.at("link") || slower <= 1.1 * faster) continue;
      ++order.pairs;
      if (a.at("predicted_seconds").get<double>() >= b.at("predicted_seconds").get<double>()) ++order.wrong;
    }
  }
  return order;
}

void print_table(const Json& cases) {
  using Align = Table::Align;
  Table table({{"network", Align::left},
               {"strategy", Align::left},
               {"link", Align::left},
               {"predicted"},
               {"measured"},
               {"accuracy"},
               {"waiting"},
               {"measured"},
               {"arena"},
               {"resident, predicted"},
               {"measured"}});
  for (const Json& one : cases) {
    const bool equal = one.at("predicted_bytes") == one.at("measured_bytes");
    table.add({one.at("model"), one.at("strategy"), one.at("link"),
               fmt::format("{} ±{:.0f} %", seconds_text(one.at("predicted_seconds")),
                           100 * one.at("predicted_error").get<double>()),
               seconds_text(one.at("measured_seconds")), fmt::format("{:.3f}", one.at("accuracy").get<double>()),
               seconds_text(one.at("predicted_exposed_seconds")), seconds_text(one.at("measured_exposed_seconds")),
               equal ? "equal"
                     : bytes_text(one.at("predicted_bytes").get<std::int64_t>() -
                                  one.at("measured_bytes").get<std::int64_t>()),
               bytes_text(one.at("predicted_rss_bytes")), bytes_text(one.at("measured_rss_bytes"))});
  }
  fmt::print("{}", table.text());
}

Json summary_of(const Json& cases) {
  double sum = 0, worst = 1;
  for (const Json& one : cases) {
    sum += one.at("accuracy").get<double>();
    worst = std::min(worst, one.at("accuracy").get<double>());
  }
  const Order order = order_of(cases);
  return {{"mean_accuracy", cases.empty() ? 0 : sum / static_cast<double>(cases.size())},
          {"least_accuracy", worst},
          {"ordered_pairs", order.pairs},
          {"wrong_pairs", order.wrong},
          {"cases", cases}};
}

/// What an earlier call has measured already.
Json earlier_cases(const std::string& path) {
  if (!std::filesystem::exists(path)) return Json::array();
  const Json document = base::parse_json(data::io::read_text(path), path);
  if (!document.is_object() || !document.contains("cases") || !document.at("cases").is_array())
    base::fail(base::Exit::bad_data, "{}: not a file of `bench oracle`; name another one with --results", path);
  return document.at("cases");
}

void run_bench_oracle(BenchOracleArguments arguments) {
  if (arguments.profile.empty()) arguments.profile = arguments.results + ".profile.json";
  Json cases = earlier_cases(arguments.results);
  std::vector<OracleCase> wanted = oracle_cases(arguments.ranks);
  std::erase_if(wanted, [&](const OracleCase& one) {
    const auto names = [](const std::vector<std::string>& list, const std::string& name) {
      return list.empty() || std::find(list.begin(), list.end(), name) != list.end();
    };
    return !names(arguments.models, one.model) || !names(arguments.strategies, one.strategy) ||
           (one.ranks == 1 && !arguments.hosts.empty());
  });
  if (wanted.empty())
    base::fail(base::Exit::usage,
               "no case has one of these networks and strategies; networks are cosmoflow, resnet50, vgg16 and unet3d, "
               "strategies serial, data, spatial, filter, channel, pipeline and mixed, with blanks between them");
  std::size_t done = 0;
  for (const OracleCase& one : wanted) {
    const std::string name = name_of(one, arguments.link);
    ++done;
    const bool known =
        std::any_of(cases.begin(), cases.end(), [&](const Json& other) { return name_of(other) == name; });
    if (known) continue;
    fmt::print(stderr, "case {} of {}: {}\n", done, wanted.size(), name);
    cases.push_back(run_case(arguments, one));
    data::io::write_text(arguments.results, summary_of(cases).dump(1) + "\n");
  }
  const Json summary = summary_of(cases);
  if (arguments.json) {
    fmt::print("{}\n", summary.dump(2));
    return;
  }
  print_table(cases);
  fmt::print("mean accuracy {:.3f}, least {:.3f}; {} of {} pairs in the wrong order\n",
             summary.at("mean_accuracy").get<double>(), summary.at("least_accuracy").get<double>(),
             summary.at("wrong_pairs").get<int>(), summary.at("ordered_pairs").get<int>());
}

}  // namespace

void add_bench_oracle(CLI::App& bench) {
  CLI::App* command = bench.add_subcommand(
      "oracle", "How far predicted steps are from measured ones: networks by strategies, on one and several ranks");
  const auto arguments = std::make_shared<BenchOracleArguments>();
  command->add_option("--results", arguments->results, "File of results; what it has already is not measured again")
      ->capture_default_str();
  command->add_option("--profile", arguments->profile, "Profile to predict with; measured where it lacks something");
  command->add_option("--models", arguments->models, "Only these networks");
  command->add_option("--strategies", arguments->strategies, "Only these strategies");
  command->add_option("--ranks", arguments->ranks, "Ranks of all strategies but serial")
      ->check(CLI::Range(2, 64))
      ->capture_default_str();
  command->add_option("--hosts", arguments->hosts, "Hosts to start them on, as for `bench step`");
  command->add_option("--link", arguments->link, "What to call the link between the ranks in the table")
      ->capture_default_str();
  command->add_option("--steps", arguments->steps, "Measured steps, of which the median counts")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  command->add_flag("!--no-calibrate", arguments->calibrates, "Predict with the profile as it is");
  command->add_flag("--again", arguments->again,
                    "Measure kernels right before each case even if the profile has them: machines change their pace");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_bench_oracle(*arguments); });
}

}  // namespace orthant::cli
