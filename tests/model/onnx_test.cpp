#include "orthant/base/error.hpp"
#include "orthant/model/init.hpp"
#include "orthant/model/network.hpp"
#include "orthant/model/onnx/file.hpp"
#include "orthant/model/onnx/importer.hpp"
#include "orthant/model/onnx/names.hpp"
#include "orthant/model/onnx/view.hpp"
#include "orthant/model/onnx/wire.hpp"
#include "orthant/model/onnx/write.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <set>

namespace orthant::model::onnx {
namespace {

namespace fs = std::filesystem;

class OnnxFile : public testing::Test {
 protected:
  OnnxFile() {
    fs::remove_all(folder_);
    fs::create_directories(folder_);
  }
  ~OnnxFile() override { fs::remove_all(folder_); }

  [[nodiscard]] std::string path(const std::string& name) const { return (folder_ / name).string(); }
  void write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }

  const fs::path folder_ = fs::temp_directory_path() / ("orthant_onnx_" + std::to_string(getpid()) +
                                                        testing::UnitTest::GetInstance()->current_test_info()->name());
};

std::string model_with(const std::string& graph) {
  std::string opset;
  wire::put_integer(opset, 2, 17);
  std::string bytes;
  wire::put_bytes(bytes, 7, graph);
  wire::put_bytes(bytes, 8, opset);
  return bytes;
}

/// x of 3 channels and 8x8 cells through the nodes to y.
std::string network(const std::vector<std::string>& nodes, const std::vector<std::string>& tensors) {
  std::string graph;
  for (const std::string& node : nodes) wire::put_bytes(graph, 1, node);
  for (const std::string& tensor : tensors) wire::put_bytes(graph, 5, tensor);
  wire::put_bytes(graph, 11, wire::value("x", {1, 3, 8, 8}));
  wire::put_bytes(graph, 12, wire::value("y", {1, 3, 8, 8}));
  return model_with(graph);
}

std::string conv_node() {
  return wire::message({.op = "Conv", .inputs = {"x", "c.weight"}, .outputs = {"y"}, .attributes = {}}, "/c/Conv");
}

/// A tensor of 3x3x1x1 floats in an external file.
std::string external(const std::string& location, const std::string& offset, const std::string& length) {
  std::string bytes;
  for (const std::int64_t extent : {3, 3, 1, 1}) wire::put_integer(bytes, 1, extent);
  wire::put_integer(bytes, 2, 1);
  wire::put_bytes(bytes, 8, "c.weight");
  const std::vector<std::pair<std::string, std::string>> entries{
      {"location", location}, {"offset", offset}, {"length", length}};
  for (const auto& [key, value] : entries) {
    std::string entry;
    wire::put_bytes(entry, 1, key);
    wire::put_bytes(entry, 2, value);
    if (!value.empty()) wire::put_bytes(bytes, 13, entry);
  }
  wire::put_integer(bytes, 14, 1);
  return bytes;
}

/// The message of the error; empty if there is none.
std::string refusal(const std::string& path, base::Exit code = base::Exit::bad_data) {
  try {
    load_network(path, {});
  } catch (const base::Error& error) {
    EXPECT_EQ(error.code(), code) << error.what();
    return error.what();
  }
  return "";
}

TEST_F(OnnxFile, ReadsExternalDataBesideTheFile) {
  std::string items;
  for (int i = 0; i < 12; ++i)
    items.append(reinterpret_cast<const char*>(std::vector<float>{static_cast<float>(i)}.data()), 4);
  fs::create_directories(folder_ / "data");
  write("data/w.bin", items);
  write("net.onnx", network({conv_node()}, {external("data/w.bin", "8", "36")}));
  const Graph graph = load_network(path("net.onnx"), {});
  const std::vector<Parameter> all = parameters(graph);
  ASSERT_EQ(all.size(), 1U);
  EXPECT_EQ(all[0].name, "c.weight");
  std::vector<float> values(9);
  initialise(graph, all[0], 1, values);
  EXPECT_EQ(values.front(), 2);
  EXPECT_EQ(values.back(), 10);
}

TEST_F(OnnxFile, RefusesExternalDataElsewhere) {
  write("w.bin", std::string(36, '\0'));
  fs::create_symlink(path("w.bin"), path("link.bin"));
  fs::create_directories(folder_ / "inner");
  fs::create_directory_symlink(folder_, folder_ / "inner/up");
  for (const std::string& place :
       {path("w.bin"), std::string("../w.bin"), std::string("inner/../w.bin"), std::string()}) {
    write("net.onnx", network({conv_node()}, {external(place, "", "")}));
    EXPECT_NE(refusal(path("net.onnx")).find("beside it"), std::string::npos) << place;
  }
  for (const char* place : {"link.bin", "inner/up/w.bin"}) {
    write("net.onnx", network({conv_node()}, {external(place, "", "")}));
    EXPECT_NE(refusal(path("net.onnx")).find("links are not followed"), std::string::npos) << place;
  }
  write("net.onnx", network({conv_node()}, {external("none.bin", "", "")}));
  EXPECT_NE(refusal(path("net.onnx"), base::Exit::missing_input), "");
}

TEST_F(OnnxFile, RefusesExternalDataOfAnotherSize) {
  write("w.bin", std::string(36, '\0'));
  const std::vector<std::pair<std::string, std::string>> cases{
      {"4", "36"}, {"0", "32"}, {"9223372036854775807", "36"}, {"-4", "36"}, {"0", "1e2"}};
  for (const auto& [offset, length] : cases) {
    write("net.onnx", network({conv_node()}, {external("w.bin", offset, length)}));
    EXPECT_NE(refusal(path("net.onnx")), "") << offset << " " << length;
  }
}

TEST_F(OnnxFile, RefusesSizesThatOverflow) {
  const std::int64_t huge = std::int64_t{1} << 40;
  write("net.onnx", network({conv_node()}, {wire::tensor_head("c.weight", {huge, huge, 1, 1}, 0)}));
  EXPECT_NE(refusal(path("net.onnx")).find("overflows"), std::string::npos);
  write("net.onnx", network({conv_node()}, {wire::tensor_head("c.weight", {3, 3, 1, 1}, 0)}));
  EXPECT_NE(refusal(path("net.onnx")).find("0 bytes where its shape needs 36"), std::string::npos);
}

TEST_F(OnnxFile, RefusesCutAndNestedFiles) {
  const std::string whole = network({conv_node()}, {wire::tensor("c.weight", {3, 3, 1, 1}, std::vector<float>(9, 1))});
  write("whole.onnx", whole);
  EXPECT_EQ(refusal(path("whole.onnx")), "");
  for (std::size_t size = 1; size + 1 < whole.size(); size += 7) {
    write("net.onnx", whole.substr(0, size));
    EXPECT_NE(refusal(path("net.onnx")), "") << size;
  }
  std::string graph;
  for (int depth = 0; depth < 40; ++depth) {
    std::string attribute;
    wire::put_bytes(attribute, 6, graph);
    graph.clear();
    wire::put_bytes(graph, 1, wire::message({.op = "If", .inputs = {}, .outputs = {}, .attributes = {attribute}}, ""));
  }
  write("net.onnx", model_with(graph));
  EXPECT_NE(refusal(path("net.onnx")).find("eight deep"), std::string::npos);
}

TEST_F(OnnxFile, NamesAllThatIsNotSupportedAtOnce) {
  const auto node = [](const char* op, const char* from, const char* to) {
    return wire::message({.op = op, .inputs = {from}, .outputs = {to}, .attributes = {}}, std::string("/") + op);
  };
  write("net.onnx",
        network({node("Softplus", "x", "a"), node("Relu", "a", "b"), node("Softplus", "x", "unused"),
                 node("LSTM", "x", "c"),
                 wire::message({.op = "Add", .inputs = {"b", "c"}, .outputs = {"y"}, .attributes = {}}, "/Add")},
                {}));
  const std::string message = refusal(path("net.onnx"));
  EXPECT_NE(message.find("2 places"), std::string::npos) << message;
  EXPECT_NE(message.find("Softplus at '/Softplus'"), std::string::npos) << message;
  EXPECT_NE(message.find("LSTM at '/LSTM'"), std::string::npos) << message;
}

TEST_F(OnnxFile, RefusesSharedWeights) {
  const auto conv = [](const char* from, const char* to) {
    return wire::message({.op = "Conv", .inputs = {from, "c.weight"}, .outputs = {to}, .attributes = {}}, "/c/Conv");
  };
  write("net.onnx",
        network({conv("x", "a"), conv("a", "y")}, {wire::tensor("c.weight", {3, 3, 1, 1}, std::vector<float>(9, 1))}));
  EXPECT_NE(refusal(path("net.onnx")).find("shared weights"), std::string::npos);
}

TEST(OnnxView, SplitsPermutesAndJoins) {
  const tensor::Shape shape{.n = 2, .c = 12, .d = 1, .h = 4, .w = 6};
  const View whole = plain_view(0, shape, 4);
  EXPECT_EQ(extents_of(whole), (Extents{2, 12, 4, 6}));
  const auto split = reshaped(whole, {2, 3, 4, 4, 6});
  ASSERT_TRUE(split);
  const auto back = reshaped(transposed(transposed(*split, {0, 2, 1, 3, 4}), {0, 2, 1, 3, 4}), {2, 12, 4, 6});
  EXPECT_EQ(back, whole);
  const auto shuffled = reshaped(transposed(*split, {0, 2, 1, 3, 4}), {2, 12, 4, 6});
  ASSERT_TRUE(shuffled);
  EXPECT_NE(*shuffled, whole);
  EXPECT_FALSE(reshaped(whole, {2, 8, 6, 6}));
}

TEST(OnnxNames, ArePathsOfModules) {
  EXPECT_EQ(module_path("/layer1/layer1.0/conv1/Conv"), "layer1.0.conv1");
  EXPECT_EQ(module_path("/Add"), "Add");
  EXPECT_EQ(module_path("Conv_0"), "Conv_0");
  EXPECT_EQ(module_path(""), "");
}

/// The table of docs/onnx.md has the ops that are supported, and no others.
TEST(OnnxDocument, ListsTheOps) {
  std::ifstream file(ORTHANT_ONNX_DOCUMENT);
  std::set<std::string> listed;
  bool in_table = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("| ONNX op |")) in_table = true;
    if (!line.starts_with("|")) in_table = false;
    if (!in_table || line.starts_with("|---") || line.starts_with("| ONNX op")) continue;
    const std::string cell = line.substr(1, line.find('|', 1) - 1);
    for (std::size_t at = cell.find('`'); at != std::string::npos;) {
      const std::size_t end = cell.find('`', at + 1);
      listed.insert(cell.substr(at + 1, end - at - 1));
      at = cell.find('`', end + 1);
    }
  }
  EXPECT_EQ(listed, supported_ops());
}

/// Every network of the zoo is the same after it was written and read: in layers that compute, shapes and parameters.
TEST_F(OnnxFile, WritesWhatItReads) {
  for (const char* name : {"cosmoflow", "unet3d", "resnet18"}) {
    NetworkOptions options{.input = "4x16x16x16"};
    if (std::string(name) == "unet3d") options = {.input = "1x16x16x16", .mini_batch = 1, .settings = {{"width", "4"}}};
    if (std::string(name) == "resnet18") options.input = "3x32x32";
    const Graph graph = load_network(name, options);
    std::ofstream file(path("net.onnx"), std::ios::binary);
    write_model(graph, {.values = [&](const Parameter& parameter,
                                      std::span<float> into) { initialise(graph, parameter, 3, into); },
                        .write = [&](std::string_view bytes) { file << bytes; }});
    file.close();
    const Graph read = load_network(path("net.onnx"), {});
    EXPECT_EQ(read.nodes.back().shape, graph.nodes.back().shape) << name;
    std::set<std::string> wanted;
    std::set<std::string> found;
    for (const Parameter& one : parameters(graph)) wanted.insert(one.name);
    for (const Parameter& one : parameters(read)) found.insert(one.name);
    EXPECT_EQ(found, wanted) << name;
    const Parameter first = parameters(read).front();
    std::vector<float> values(static_cast<std::size_t>(count(first)));
    std::vector<float> before(values.size());
    initialise(read, first, 9, values);
    initialise(graph, parameters(graph).front(), 3, before);
    EXPECT_EQ(values, before) << name;
  }
}

}  // namespace
}  // namespace orthant::model::onnx
