#include "orthant/train/weights.hpp"

#include "orthant/data/formats/safetensors.hpp"
#include "tests/data/temporary.hpp"
#include "tests/train/small_network.hpp"

#include <algorithm>

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

}  // namespace
}  // namespace orthant::train
