#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/auto_plan.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/kernel_options.hpp"
#include "orthant/cli/network_options.hpp"
#include "orthant/cli/parallel.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/data/sets/npy_dataset.hpp"
#include "orthant/engine/session.hpp"
#include "orthant/train/loader.hpp"
#include "orthant/train/open_data.hpp"
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

/// The network for the mini-batch that the input file holds: N x C x D x H x W, N x C x H x W or N x C x W.
model::Graph network_for(const StepArguments& arguments) {
  const std::vector<std::int64_t> extents = data::formats::NpyFile(arguments.input).extents();
  if (extents.size() < 3 || extents.size() > 5) {
    fail(Exit::bad_data, "'{}' has shape {}; an input is NxCxDxHxW, NxCxHxW or NxCxW", arguments.input,
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

schedule::LowerOptions lowering(const StepArguments& arguments) {
  return {.mode = arguments.evaluate ? schedule::Mode::evaluate : schedule::Mode::train,
          .optimizer = {},
          .update = false,
          .input_gradient = arguments.input_gradient,
          .keep_output = true};
}

Json result_json(const engine::Engine& engine, const model::Graph& graph, const StepArguments& arguments) {
  const std::span<const double> losses = engine.losses();
  Json terms = Json::array();
  for (std::size_t i = 0; i < graph.loss.terms.size(); ++i) {
    const model::LossTerm& term = graph.loss.terms[i];
    terms.push_back({{"kind", model::name_of(term.kind)}, {"weight", term.weight}, {"loss", losses[i]}});
  }
  return {{"network", graph.name},
          {"output", graph.nodes.back().name},
          {"mode", arguments.evaluate ? "evaluate" : "train"},
          {"mini_batch", graph.nodes.front().shape.n},
          {"loss", losses.back()},
          {"terms", terms},
          {"arena_bytes", engine.placement().arena_bytes}};
}

void run_step(const StepArguments& arguments, comm::Comm& comm) {
  const auto graph = comm::agree(comm, [&] { return network_for(arguments); });
  const auto plan = common_plan(arguments.parallel, graph, {}, comm);
  const auto dataset = comm::agree(comm, [&] {
    return std::make_unique<data::sets::NpyDataset>(std::vector{arguments.input}, std::vector{arguments.target},
                                                    train::sample_shape(graph));
  });
  engine::Session session(graph, plan, comm,
                          {.lowering = lowering(arguments),
                           .threads = threads_per_rank(arguments.parallel),
                           .kernels = kernel_options(arguments.parallel, comm)});
  engine::Engine& engine = session.engine();
  comm::agree(comm, [&] {
    arguments.weights.empty() ? session.initialise_weights(arguments.seed)
                              : train::load_weights(session, arguments.weights);
    train::Loader(train::MiniBatches(*dataset, graph, {})).load(1, engine);
  });
  engine.run({.step = 1, .seed = arguments.seed, .learning_rate = 0});

  const Json result = result_json(engine, graph, arguments);
  comm::agree(comm, [&] {
    if (comm.rank() != 0) return;
    data::io::make_directories(arguments.dump);
    data::io::write_text(arguments.dump + "/result.json", result.dump(2) + "\n");
  });
  train::save_output(session, arguments.dump + "/outputs.safetensors");
  if (!arguments.evaluate) train::save_gradients(session, arguments.dump + "/gradients.safetensors");
  const double loss = engine.losses().back();
  if (comm.rank() == 0) {
    if (arguments.json) {
      fmt::print("{}\n", result.dump(2));
    } else {
      if (graph.outputs.size() > 1) fmt::print("network {}\n", model::title_of(graph));
      for (const std::string& remark : graph.remarks) fmt::print("network {}\n", remark);
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
  command->add_option("--input", arguments->input, "Input (npy): NxCxDxHxW, NxCxHxW or NxCxW")->required();
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
        arguments->parallel, [&](int ranks) { check_plan(arguments->parallel, network_for(*arguments), ranks); },
        [&](comm::Comm& comm) { run_step(*arguments, comm); });
  });
}

}  // namespace orthant::cli
