#include "orthant/train/weights.hpp"

#include "orthant/data/formats/safetensors.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/plan/strategy.hpp"
#include "tests/data/temporary.hpp"
#include "tests/support/thread_comm.hpp"
#include "tests/train/small_network.hpp"

#include <algorithm>
#include <array>

namespace orthant::train {
namespace {

using base::Exit;
using data::formats::TensorSource;
using test::expect_error;

/// Tensors that fit the small network; each item counts up so that a wrong order shows.
std::vector<TensorSource> fitting_tensors(const model::Graph& graph) {
  std::vector<TensorSource> tensors;
  for (const model::Parameter& parameter : model::parameters(graph)) {
    tensors.push_back({parameter.name, parameter.extents, [](std::span<float> into) {
                         for (std::size_t i = 0; i < into.size(); ++i) into[i] = static_cast<float>(i) + 1;
                       }});
  }
  return tensors;
}

TEST(Weights, SurviveALoadAndASave) {
  const test::TemporaryDirectory folder;
  const model::Graph graph = test::small_graph();
  engine::Session session = test::small_session(graph);
  const std::vector<TensorSource> tensors = fitting_tensors(graph);
  data::formats::write_safetensors(folder.file("in"), tensors);

  load_weights(session, folder.file("in"));
  save_weights(session, folder.file("out"));

  const data::formats::SafetensorsFile out(folder.file("out"));
  ASSERT_EQ(out.tensors().size(), tensors.size());
  for (const TensorSource& tensor : tensors) {
    ASSERT_EQ(out.tensors().at(tensor.name).extents, tensor.extents);
    std::vector<float> items(
        static_cast<std::size_t>((out.tensors().at(tensor.name).end - out.tensors().at(tensor.name).begin) / 4));
    std::vector<float> expected(items.size());
    out.read(tensor.name, items);
    tensor.fill(expected);
    EXPECT_EQ(items, expected) << tensor.name;
  }
}

TEST(Weights, CountersOfBatchesAreIgnored) {
  const test::TemporaryDirectory folder;
  const model::Graph graph = test::small_graph();
  engine::Session session = test::small_session(graph);
  std::vector<TensorSource> tensors = fitting_tensors(graph);
  tensors.push_back({"norm1.num_batches_tracked", {}, [](std::span<float>) {}});
  data::formats::write_safetensors(folder.file("in"), tensors);

  load_weights(session, folder.file("in"));
}

TEST(Weights, NamesWhatDoesNotFit) {
  const test::TemporaryDirectory folder;
  const model::Graph graph = test::small_graph();
  engine::Session session = test::small_session(graph);
  const std::string path = folder.file("in");
  std::vector<TensorSource> tensors = fitting_tensors(graph);

  tensors.push_back({"fc2.weight", {1}, [](std::span<float>) {}});
  data::formats::write_safetensors(path, tensors);
  expect_error(Exit::bad_data, "has tensors that small does not have: fc2.weight",
               [&] { load_weights(session, path); });

  tensors.pop_back();
  std::swap(tensors.front().extents[0], tensors.front().extents[1]);
  data::formats::write_safetensors(path, tensors);
  expect_error(Exit::bad_data, "tensor 'conv1.weight' has shape 2x4x3x3x3, but small wants 4x2x3x3x3",
               [&] { load_weights(session, path); });

  tensors.erase(tensors.begin());
  data::formats::write_safetensors(path, tensors);
  expect_error(Exit::bad_data, "lacks a tensor of small: conv1.weight", [&] { load_weights(session, path); });
}

TEST(Weights, OutputsAndGradientsAreInTheOrderOfFiles) {
  const test::TemporaryDirectory folder;
  const model::Graph graph = test::small_graph();
  engine::Session session = test::small_session(graph, {.update = false, .input_gradient = true, .keep_output = true});
  session.initialise_weights(1);
  session.engine().run({});

  save_output(session, folder.file("outputs"));
  save_gradients(session, folder.file("gradients"));

  EXPECT_EQ(data::formats::SafetensorsFile(folder.file("outputs")).tensors().at("output").extents,
            (std::vector<std::int64_t>{2, 3}));
  const data::formats::SafetensorsFile gradients(folder.file("gradients"));
  EXPECT_EQ(gradients.tensors().at("input").extents, (std::vector<std::int64_t>{2, 2, 4, 4, 4}));
  EXPECT_EQ(gradients.tensors().size(), 7U);
  EXPECT_FALSE(gradients.tensors().contains("norm1.running_mean"));
}

/// Numbers that tell all cells of all samples apart.
void fill(engine::Engine& engine, const std::vector<schedule::Port>& ports, const tensor::Shape& whole) {
  for (const schedule::Port& port : ports) {
    if (port.buffer < 0) continue;
    const std::span<float> items = engine.floats(port.buffer);
    const tensor::Layout into = tensor::box_of(tensor::channels_last(whole), port.box);
    const tensor::Shape& size = into.extents;
    for (std::int64_t i = 0; i < tensor::volume(size); ++i) {
      const tensor::Shape at{.n = i / (size.c * size.d * size.h * size.w),
                             .c = i % size.c,
                             .d = i / (size.c * size.w * size.h) % size.d,
                             .h = i / (size.c * size.w) % size.h,
                             .w = i / size.c % size.w};
      const auto place = [&](const tensor::Layout& layout) {
        return layout.offset + at.n * layout.strides.n + at.c * layout.strides.c + at.d * layout.strides.d +
               at.h * layout.strides.h + at.w * layout.strides.w;
      };
      items[static_cast<std::size_t>(place(port.layout))] = static_cast<float>(place(into));
    }
  }
}

/// What ranks write together: weights, gradients and output of one pass.
std::array<std::string, 3> files_of(const model::Graph& graph, const plan::Plan& plan) {
  const test::TemporaryDirectory folder;
  test::run_threads(plan.ranks, [&](comm::Comm& comm) {
    engine::Session session(graph, plan, comm,
                            {.lowering = {.update = false, .input_gradient = true, .keep_output = true}});
    session.initialise_weights(7);
    fill(session.engine(), session.schedule().inputs, graph.nodes.front().shape);
    for (const schedule::Port& port : session.schedule().targets)
      if (port.buffer >= 0) std::ranges::fill(session.engine().floats(port.buffer), 1.0F);
    save_weights(session, folder.file("weights"));
    session.engine().run({});
    save_gradients(session, folder.file("gradients"));
    save_output(session, folder.file("output"));
  });
  return {data::io::read_text(folder.file("weights")), data::io::read_text(folder.file("gradients")),
          data::io::read_text(folder.file("output"))};
}

TEST(Weights, OfManyRanksMakeTheFileOfOne) {
  const model::Graph graph = test::small_graph(4);
  const std::string expected = files_of(graph, plan::serial_plan(graph))[0];
  for (const char* grid : {"n2", "d2", "n2d2", "f2", "n2f2", "f2d2", "c2", "c2f2", "p2", "n2p2"}) {
    const std::string found = files_of(graph, plan::make_plan(graph, plan::parse_grid(grid)))[0];
    EXPECT_TRUE(found == expected) << grid;
  }
}

TEST(Weights, OutputsAndGradientsOfManyRanksMakeTheFilesOfOne) {
  model::GraphBuilder builder("twice", 3, {.n = 4, .c = 2, .d = 4, .h = 6, .w = 4});
  builder.add("once", model::Scale{2});
  builder.add("again", model::Scale{2});
  const model::Graph graph = builder.finish({{{model::LossKind::mean_squared_error, 1}}});
  const auto expected = files_of(graph, plan::serial_plan(graph));
  for (const char* grid : {"n2", "d2", "n2d2", "d2h3", "n2w2", "h2"}) {
    const auto found = files_of(graph, plan::make_plan(graph, plan::parse_grid(grid), 2));
    EXPECT_TRUE(found[1] == expected[1]) << grid << ": gradients differ";
    EXPECT_TRUE(found[2] == expected[2]) << grid << ": outputs differ";
  }
}

}  // namespace
}  // namespace orthant::train
