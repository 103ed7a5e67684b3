#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/data/sets/npy_dataset.hpp"
#include "orthant/engine/engine.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/memory.hpp"
#include "orthant/train/weights.hpp"

#include <cmath>
#include <filesystem>
#include <memory>

namespace orthant::cli {
namespace {

using base::Exit;
using base::fail;
using base::Json;

struct StepArguments {
  NetworkArguments network;
  std::string weights, input, target, dump;
  bool input_gradient = false;
  bool evaluate = false;
  bool json = false;
  ParallelArguments parallel;
  std::uint64_t seed = 1;
};

/// The network for the mini-batch that the input file holds: N x C x D x H x W or N x C x H x W.
model::Graph network_for(const StepArguments& arguments) {
  const std::vector<std::int64_t> extents = data::formats::NpyFile(arguments.input).extents();
  if (extents.size() != 4 && extents.size() != 5) {
    fail(Exit::bad_data, "'{}' has shape {}; an input is NxCxDxHxW or NxCxHxW", arguments.input,
         data::formats::extents_text(extents));
  }
  for (const std::int64_t extent : extents) {
    if (extent < 1)
      fail(Exit::bad_data, "'{}' has shape {}: there is nothing in it", arguments.input,
           data::formats::extents_text(extents));
  }
  NetworkArguments network = arguments.network;
  network.mini_batch = extents.front();
  network.input = data::formats::extents_text({extents.begin() + 1, extents.end()});
  return load(network);
}

schedule::Schedule make_schedule(const StepArguments& arguments, const train::Job& job) {
  const schedule::LowerOptions options{.mode = arguments.evaluate ? schedule::Mode::evaluate : schedule::Mode::train,
                                       .optimizer = {},
                                       .update = false,
                                       .input_gradient = arguments.input_gradient,
                                       .keep_output = true};
  return schedule::lower(job.graph, job.plan, job.comm.rank(), options);
}

Json result_json(const engine::Engine& engine, const model::Graph& graph, const StepArguments& arguments) {
  const std::span<const double> losses = engine.losses();
  Json terms = Json::array();
  for (std::size_t i = 0; i < graph.loss.terms.size(); ++i) {
    const model::LossTerm& term = graph.loss.terms[i];
    terms.push_back({{"kind", model::name_of(term.kind)}, {"weight", term.weight}, {"loss", losses[i]}});
  }
  return {{"network", graph.name},
          {"mode", arguments.evaluate ? "evaluate" : "train"},
          {"mini_batch", graph.nodes.front().shape.n},
          {"loss", losses.back()},
          {"terms", terms},
          {"arena_bytes", engine.placement().arena_bytes}};
}

void run_step(const StepArguments& arguments, comm::Comm& comm) {
  const auto graph = comm::agree(comm, [&] { return network_for(arguments); });
  const auto plan = comm::agree(comm, [&] { return plan_for(arguments.parallel, graph, comm.size()); });
  const train::Job job{graph, plan, comm};
  auto schedule = comm::agree(comm, [&] { return make_schedule(arguments, job); });
  choose_algorithms(arguments.parallel, schedule, comm);
  const engine::EngineOptions options{.threads = threads_per_rank(arguments.parallel, comm.size()),
                                      .before_allocation = train::check_arena};
  const auto engine = comm::agree(comm, [&] {
    const data::sets::NpyDataset dataset({arguments.input}, {arguments.target}, train::sample_shape(graph));
    auto made = std::make_unique<engine::Engine>(std::move(schedule), comm, options);
    if (arguments.weights.empty()) {
      train::initialise_weights(*made, graph, arguments.seed);
    } else {
      train::load_weights(*made, graph, arguments.weights);
    }
    train::Loader(dataset, graph, {}).load(1, *made);
    return made;
  });
  engine->run({.step = 1, .seed = arguments.seed, .learning_rate = 0});

  const Json result = result_json(*engine, graph, arguments);
  comm::agree(comm, [&] {
    if (comm.rank() != 0) return;
    data::io::make_directories(arguments.dump);
    data::io::write_text(arguments.dump + "/result.json", result.dump(2) + "\n");
  });
  train::save_output(*engine, job, arguments.dump + "/outputs.safetensors");
  if (!arguments.evaluate) train::save_gradients(*engine, job, arguments.dump + "/gradients.safetensors");
  const double loss = engine->losses().back();
  if (comm.rank() == 0) {
    if (arguments.json) {
      fmt::print("{}\n", result.dump(2));
    } else {
      fmt::print("loss {:.9g}; written to {}\n", loss, arguments.dump);
    }
  }
  if (std::isfinite(loss)) return;
  throw comm::CollectiveError(Exit::non_finite,
                              fmt::format("the loss is {}; the weights or the input are too large", loss));
}

}  // namespace

void add_step(CLI::App& app) {
  CLI::App* command =
      app.add_subcommand("step", "One forward and backward pass; writes loss, outputs and every gradient");
  const auto arguments = std::make_shared<StepArguments>();
  add_model(*command, arguments->network);
  command->add_option("--weights", arguments->weights, "Weights (safetensors); initial values if not given");
  command->add_option("--input", arguments->input, "Input (npy): NxCxDxHxW or NxCxHxW")->required();
  command->add_option("--target", arguments->target, "Target (npy): values of the output's shape, or labels")
      ->required();
  command->add_option("--dump", arguments->dump, "Directory for result.json, outputs and gradients")->required();
  CLI::Option* gradient =
      command->add_flag("--input-gradient", arguments->input_gradient, "Also the gradient of the input");
  command->add_flag("--evaluate", arguments->evaluate, "Forward only, as in evaluation")->excludes(gradient);
  command->add_option("--seed", arguments->seed, "Seed of initial weights and dropout");
  command->add_flag("--json", arguments->json, "Print result.json");
  add_parallel(*command, arguments->parallel);
  command->callback([arguments] {
    run_on_ranks(
        arguments->parallel, [&](int ranks) { plan_for(arguments->parallel, network_for(*arguments), ranks); },
        [&](comm::Comm& comm) { run_step(*arguments, comm); });
  });
}

}  // namespace orthant::cli
