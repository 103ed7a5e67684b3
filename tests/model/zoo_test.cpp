#include "tests/model/message.hpp"

#include "orthant/model/network.hpp"
#include "orthant/model/work.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <set>

namespace orthant::model {
namespace {

Graph make(const std::string& name, const std::string& input = "", const SettingValues& settings = {}) {
  return load_network(name, {.input = input, .mini_batch = 1, .settings = settings});
}

const Node& node(const Graph& graph, const std::string& name) {
  return *std::find_if(graph.nodes.begin(), graph.nodes.end(), [&](const Node& n) { return n.name == name; });
}

TEST(Zoo, HasThePublishedParameterCounts) {
  const std::vector<std::pair<std::string, std::int64_t>> counts{
      {"cosmoflow", 9'437'636},      {"cosmoflow-mlperf", 8'907'556}, {"unet3d", 19'070'560},
      {"resnet18", 11'689'512},      {"resnet50", 25'557'032},        {"resnet152", 60'192'808},
      {"wide-resnet50", 68'883'240}, {"vgg16", 138'357'544},          {"alexnet", 61'838'248}};
  for (const auto& [name, count] : counts) EXPECT_EQ(parameter_count(make(name)), count) << name;
  EXPECT_EQ(counts.size(), zoo_entries().size());
}

TEST(Zoo, CountsTheParametersOfTorchvisionsAlexnet) {
  EXPECT_EQ(parameter_count(make("alexnet", "", {{"conv4", "256"}})), 61'100'840);
}

TEST(Zoo, HasThePublishedConvolutionFlops) {
  EXPECT_NEAR(static_cast<double>(work_of(make("cosmoflow")).conv_flops) * 1e-9, 55.55, 0.005);
  EXPECT_NEAR(static_cast<double>(work_of(make("cosmoflow", "4x256x256x256")).conv_flops) * 1e-9, 443.8, 0.05);
  EXPECT_NEAR(static_cast<double>(work_of(make("cosmoflow", "4x512x512x512")).conv_flops) * 1e-9, 3550, 0.5);
  EXPECT_NEAR(static_cast<double>(work_of(make("cosmoflow-mlperf")).forward_flops) * 1e-9, 68.9, 0.05);
  EXPECT_NEAR(static_cast<double>(work_of(make("unet3d")).forward_flops) * 1e-12, 3.91, 0.005);
  EXPECT_NEAR(static_cast<double>(work_of(make("unet3d", "1x256x256x256")).forward_flops) * 1e-12, 31.3, 0.05);
}

TEST(Cosmoflow, HasThePublishedWidths) {
  const std::vector<std::pair<std::string, std::vector<std::int64_t>>> published{
      {"4x128x128x128", {128, 64, 32, 8, 4, 2, 2}},
      {"4x256x256x256", {256, 128, 64, 16, 8, 4, 2}},
      {"4x512x512x512", {512, 256, 128, 32, 16, 8, 4}}};
  for (const auto& [input, widths] : published) {
    const Graph graph = make("cosmoflow", input);
    for (std::size_t i = 0; i < widths.size(); ++i) {
      EXPECT_EQ(node(graph, "conv" + std::to_string(i + 1)).shape.w, widths[i]) << input << ' ' << i;
    }
    EXPECT_EQ(parameter_count(graph), 9'437'636) << input;
  }
}

TEST(Cosmoflow, GivesTheDenseLayersTheSameNumberForEveryCube) {
  for (const int width : {3, 4, 8, 12, 16, 32, 48, 64, 96, 100, 160, 320, 512}) {
    const std::string w = std::to_string(width);
    const Graph graph = make("cosmoflow", "4x" + w + "x" + w + "x" + w);
    EXPECT_EQ(node(graph, "flatten").shape.c, 2048) << width;
  }
  EXPECT_EQ(node(make("cosmoflow", "4x1x1x1"), "flatten").shape.c, 256);
  EXPECT_EQ(node(make("cosmoflow", "4x32x64x64"), "flatten").shape.c, 2048 * 4);
}

TEST(Cosmoflow, HasSettings) {
  const Graph normalised = make("cosmoflow", "", {{"batch_norm", "true"}});
  EXPECT_EQ(parameter_count(normalised), 9'437'636 + 2 * (16 + 32 + 64 + 128 + 3 * 256));
  EXPECT_EQ(node(normalised, "bn1").op, Op{BatchNorm{.momentum = 0.001}});
  EXPECT_EQ(node(normalised, "drop1").op, Op{Dropout{.rate = 0.2}});
  EXPECT_EQ(make("cosmoflow", "", {{"outputs", "7"}}).nodes.back().shape.c, 7);
  for (const Node& n : make("cosmoflow", "", {{"dropout", "0"}}).nodes)
    EXPECT_FALSE(std::holds_alternative<Dropout>(n.op));
}

TEST(Unet3d, ConcatenatesUpsampledThenSkip) {
  const Graph graph = make("unet3d", "1x16x16x24", {{"classes", "5"}, {"width", "4"}});
  const Node& concat = node(graph, "up3.concat");

  EXPECT_EQ(graph.nodes[concat.srcs[0]].name, "up3.deconv");
  EXPECT_EQ(graph.nodes[concat.srcs[1]].name, "down3.relu2");
  EXPECT_EQ(graph.nodes.back().shape, (tensor::Shape{1, 5, 16, 16, 24}));
  EXPECT_EQ(message_of([] { make("unet3d", "1x16x20x16"); }),
            "65: unet3d: input: extent 20 in dim h is not a multiple of 8; pad or crop the volume");
}

TEST(Resnet, HasTheModuleNamesOfTorchvision) {
  std::set<std::string> names;
  for (const Parameter& parameter : parameters(make("resnet50"))) names.insert(parameter.name);

  EXPECT_EQ(names.size(), 161U + 2 * 53);  // state_dict without num_batches_tracked
  for (const char* name : {"conv1.weight", "bn1.running_var", "layer1.0.conv3.weight", "layer1.0.downsample.0.weight",
                           "layer1.0.downsample.1.bias", "layer4.2.bn3.weight", "fc.weight", "fc.bias"}) {
    EXPECT_TRUE(names.contains(name)) << name;
  }
}

TEST(WideResnet, WidensInsideBottlenecksOnly) {
  const Graph graph = make("wide-resnet50", "", {{"width", "4"}});

  EXPECT_EQ(node(graph, "layer1.0.conv2").shape.c, 256);
  EXPECT_EQ(node(graph, "layer1.0.conv3").shape.c, 256);
  EXPECT_EQ(parameter_count(make("wide-resnet50", "", {{"width", "1"}})), 25'557'032);
}

TEST(Zoo, TakesOtherInputSizes) {
  for (const char* name : {"resnet18", "resnet50", "resnet152", "wide-resnet50"}) {
    EXPECT_EQ(make(name, "1x32x48", {{"classes", "10"}}).nodes.back().shape, (tensor::Shape{1, 10, 1, 1, 1})) << name;
  }
  EXPECT_EQ(node(make("vgg16", "3x32x32"), "flatten").shape.c, 512);
  EXPECT_EQ(node(make("alexnet", "3x64x64"), "flatten").shape.c, 256);
  EXPECT_EQ(node(make("cosmoflow-mlperf", "1x32x64x32"), "flatten").shape.c, 1024);
}

TEST(Zoo, RefusesInputsThatAreTooSmallByLayer) {
  EXPECT_EQ(
      message_of([] { make("vgg16", "3x16x16"); }),
      "65: vgg16: features.30: the kernel reaches over 2 cells in dim h but the padded input has 1; use a smaller "
      "kernel, more padding or a larger input");
}

TEST(Zoo, RefusesBadSettings) {
  EXPECT_EQ(message_of([] {
              make("cosmoflow", "", {{"dropot", "0"}});
            }),
            "64: cosmoflow: no setting 'dropot'; did you mean 'dropout'?");
  EXPECT_EQ(message_of([] {
              make("cosmoflow", "", {{"dropout", "x"}});
            }),
            "64: cosmoflow: setting dropout is 'x'; it must be a number from 0 to below 1");
  EXPECT_EQ(message_of([] {
              make("cosmoflow", "", {{"batch_norm", "1"}});
            }),
            "64: cosmoflow: setting batch_norm is '1'; it must be true or false");
  EXPECT_EQ(message_of([] {
              make("unet3d", "", {{"classes", "1"}});
            }),
            "64: unet3d: setting classes is '1'; it must be a whole number from 2 to 1000000");
}

TEST(Zoo, RefusesUnknownNames) {
  EXPECT_EQ(message_of([] { make_zoo("unet", {}); }), "64: no network 'unet'; did you mean 'unet3d'?");
  EXPECT_EQ(find_in_zoo("unet"), nullptr);
  EXPECT_EQ(find_in_zoo("unet3d")->name, "unet3d");
}

}  // namespace
}  // namespace orthant::model
