#include "tests/model/message.hpp"
#include "tests/model/same_graph.hpp"

#include "orthant/model/network.hpp"
#include "orthant/model/yaml.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

namespace orthant::model {
namespace {

class NetworkFile : public testing::Test {
 protected:
  NetworkFile() : folder_(std::filesystem::path(testing::TempDir()) / "orthant_network_test") {
    std::filesystem::create_directories(folder_);
  }
  ~NetworkFile() override { std::filesystem::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    return path(name);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(NetworkFile, LoadsAsTheNetworkItWasWrittenFrom) {
  for (const ZooEntry& entry : zoo_entries()) {
    const Graph graph = load_network(entry.name, {.mini_batch = 2});
    expect_same(load_network(write(entry.name + ".yaml", to_yaml(graph)), {.mini_batch = 2}), graph);
  }
}

TEST(Examples, AreTheNetworksOfTheZoo) {
  int found = 0;
  for (const ZooEntry& entry : zoo_entries()) {
    const std::string path = std::string(ORTHANT_EXAMPLES) + "/" + entry.name + ".yaml";
    if (!std::filesystem::exists(path)) continue;
    ++found;
    expect_same(load_network(path, {}), load_network(entry.name, {}));
  }
  EXPECT_EQ(found, 8);  // resnet152 would be a file of more than 500 lines
}

TEST_F(NetworkFile, TakesAnotherInput) {
  const std::string file =
      write("net.yml", "name: net\ninput: 1x8x8\nlayers: [{name: a, op: relu}]\nloss: mean_squared_error\n");

  EXPECT_EQ(load_network(file, {.input = "3x4x5", .mini_batch = 6}).nodes[1].shape, (tensor::Shape{6, 3, 1, 4, 5}));
}

TEST_F(NetworkFile, IsRefusedWithItsPath) {
  const std::string missing = path("missing.yaml");
  const std::string large = write("large.yaml", std::string((1 << 20) + 1, '#'));
  const std::string good =
      write("good.yaml", "name: net\ninput: 1x8x8\nlayers: [{name: a, op: relu}]\nloss: mean_squared_error\n");
  std::filesystem::create_directories(path("folder.yaml"));

  EXPECT_EQ(message_of([&] { load_network(missing, {}); }),
            "66: " + missing + ": no such network file; check the path");
  EXPECT_EQ(message_of([&] { load_network(path("folder.yaml"), {}); }),
            "74: " + path("folder.yaml") + ": not a regular file");
  EXPECT_EQ(message_of([&] { load_network(large, {}); }),
            "65: " + large + ": more than 1048576 bytes; is this a network file?");
  EXPECT_EQ(message_of([&] {
              load_network(good, {.settings = {{"classes", "3"}}});
            }),
            "64: " + good + ": setting 'classes' for a network file; it has only 'output', edit the file");
}

TEST(LoadNetwork, SuggestsTheNearestName) {
  EXPECT_EQ(message_of([] { load_network("cosmoflw", {}); }),
            "64: no network 'cosmoflw' (a file must end in .yaml, .yml or .onnx); did you mean 'cosmoflow'?");
}

TEST(LoadNetwork, WantsTheNetworksNumberOfDims) {
  EXPECT_EQ(message_of([] { load_network("resnet50", {.input = "3x8x8x8"}); }),
            "64: resnet50: input 3x8x8x8; it takes CxHxW, as 3x224x224");
  EXPECT_EQ(message_of([] { load_network("cosmoflow", {.input = "3x8x8"}); }),
            "64: cosmoflow: input 3x8x8; it takes CxDxHxW, as 4x128x128x128");
  EXPECT_EQ(message_of([] { load_network("cosmoflow", {.mini_batch = 0}); }),
            "64: a mini-batch of 0 samples; it must be from 1 to 2147483647");
}

TEST(AddSetting, SplitsAtTheFirstEqualsSign) {
  SettingValues settings;
  add_setting(settings, "a=b=c");
  add_setting(settings, "d=");

  EXPECT_EQ(settings, (SettingValues{{"a", "b=c"}, {"d", ""}}));
  EXPECT_EQ(message_of([&] { add_setting(settings, "a"); }),
            "64: setting 'a' is not key=value; write it as batch_norm=true");
  EXPECT_EQ(message_of([&] { add_setting(settings, "=a"); }),
            "64: setting '=a' is not key=value; write it as batch_norm=true");
}

}  // namespace
}  // namespace orthant::model
