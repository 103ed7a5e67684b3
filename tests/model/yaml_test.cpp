#include "tests/model/message.hpp"
#include "tests/model/same_graph.hpp"

#include "orthant/model/yaml.hpp"

#include <gtest/gtest.h>

#include <set>

namespace orthant::model {
namespace {

Graph read(const std::string& text) { return read_yaml(text, "net.yaml", std::nullopt, 1); }

/// A network of the given layers, which begin on line 4.
std::string with_layers(const std::string& layers, const std::string& input = "4x8x8x8") {
  return "name: net\ninput: " + input + "\nlayers:\n" + layers + "loss: mean_squared_error\n";
}

Op only_op(const std::string& layer, const std::string& input = "4x8x8x8") {
  return read(with_layers("  - " + layer + "\n", input)).nodes.at(1).op;
}

tensor::Window window_of(const std::string& keys, const std::string& input = "4x8x8x8") {
  return std::get<Conv>(only_op("{name: a, op: conv, filters: 2, " + keys + "}", input)).window;
}

/// Every op with every parameter off its default, in both numbers of dims.
Graph everything(int spatial_count) {
  const std::int64_t deep = spatial_count == 3 ? 1 : 0;
  const tensor::Window odd{.size = {1 + deep, 3, 2},
                           .stride = {1 + deep, 2, 3},
                           .dilation = {1 + deep, 1, 2},
                           .pad_lo = {deep, 1, 0},
                           .pad_hi = {0, 2, 2}};
  const tensor::Window even{.size = {1 + deep, 2, 2}, .stride = {1 + deep, 2, 2}};
  GraphBuilder b("all.ops-1", spatial_count, {1, 4, 1 + 15 * deep, 16, 16});
  const int conv =
      b.add("conv",
            Conv{.filters = 8, .window = odd, .groups = 2, .bias = false, .init = Init::he_normal, .bias_value = 0.25});
  b.add("null", BatchNorm{.epsilon = 1e-3, .momentum = 0.001});
  b.add("1st", Activation{ActivationKind::leaky_relu, 0.3});
  const int sum = b.add("sum", Add{}, {conv, b.last(), conv});
  b.add("cat", Concat{}, {sum, conv});
  b.add("-up", ConvTranspose{.filters = 4,
                             .window = {.size = even.size, .stride = even.stride, .pad_hi = {0, 1, 0}},
                             .output_padding = {deep, 1, 0},
                             .groups = 4,
                             .init = Init::glorot_uniform,
                             .bias_value = 0.1});
  b.add("max", Pool{.window = {.size = even.size, .stride = {1, 1, 2}}});
  b.add("mean", Pool{.kind = PoolKind::average, .window = even, .count_include_pad = false});
  b.add("identity", Activation{});
  b.add("relu", Activation{ActivationKind::relu});
  b.add("tanh", Activation{ActivationKind::tanh});
  b.add("sigmoid", Activation{ActivationKind::sigmoid});
  for (const ActivationKind kind : {ActivationKind::relu6, ActivationKind::hard_sigmoid, ActivationKind::silu,
                                    ActivationKind::gelu, ActivationKind::hard_swish})
    b.add(name_of(kind), Activation{kind});
  b.add("elu", Activation{ActivationKind::elu, 0.5});
  b.add("elu1", Activation{ActivationKind::elu, 1});
  b.add("prelu", PRelu{.shared = true, .start = 0.1});
  b.add("affine", Affine{.bias = false, .trainable = false, .weight_value = 2, .bias_value = 0.5});
  b.add("group", SampleNorm{.groups = 2, .epsilon = 1e-3});
  b.add("instance", SampleNorm{.kind = SampleNormKind::instance, .affine = false});
  b.add("layer", SampleNorm{.kind = SampleNormKind::layer});
  b.add("linear", Resize{.mode = ResizeMode::linear,
                         .align_corners = true,
                         .size = {b.shape(b.last()).d, b.shape(b.last()).h + 1, 5}});
  b.add("nearest", Resize{.factor = {1, 1.5, 2}});
  b.add("slice", Slice{.first_channel = 1, .channels = 2, .first = {0, 1, 0}, .size = {0, 2, 0}, .step = {1, 1, 2}});
  b.add("pad", Pad{.mode = PadMode::reflect, .lo = {0, 1, 0}, .hi = {0, 0, 1}});
  const int zeros = b.add("zeros", Pad{.lo = {0, 1, 1}, .hi = {0, 1, 1}});
  b.add("multiply", Multiply{}, {zeros, zeros});
  b.add("drop", Dropout{.rate = 0.125});
  b.add("unshuffle", PixelShuffle{.factor = {1, 1, 2}, .to_channels = true});
  b.add("shuffle", ChannelShuffle{.groups = 2});
  b.add("pixels", PixelShuffle{.factor = {1, 2, 1}});
  b.add("scale", Scale{.factor = 1.0 / 3, .offset = 2});
  const int last = b.add("soft", Softmax{});
  const int flat = b.add("flatten", Flatten{});
  b.add("fc", Dense{.features = 2, .bias = false, .init = Init::glorot_uniform}, {flat});
  const int dense = b.add("fc2", Dense{.features = 2});
  b.add("peak", GlobalMaxPool{}, {last});
  b.add("pool", GlobalAveragePool{});
  b.add("out", Add{}, {b.last(), dense});
  return b.finish({.terms = {{LossKind::mean_squared_error, 0.5}, {LossKind::mean_absolute_error, 2}}});
}

TEST(Yaml, RoundTripsEveryOpAndParameter) {
  std::set<std::size_t> kinds;
  for (const Node& node : everything(3).nodes) kinds.insert(node.op.index());
  EXPECT_EQ(kinds.size(), std::variant_size_v<Op>) << "an op is missing in everything()";
  for (const int spatial_count : {2, 3}) {
    const Graph graph = everything(spatial_count);
    expect_same(read(to_yaml(graph)), graph);
  }
}

TEST(Yaml, WritesOneLinePerLayerWithoutDefaults) {
  GraphBuilder builder("small", 2, {1, 3, 1, 8, 8});
  builder.add("conv", Conv{.filters = 2, .window = {.size = {1, 3, 3}, .pad_lo = {0, 1, 1}, .pad_hi = {0, 1, 1}}});
  builder.add("relu", Activation{ActivationKind::relu});
  builder.add("sum", Add{}, {1, 2});

  EXPECT_EQ(to_yaml(builder.finish({.terms = {{LossKind::cross_entropy}}})),
            "name: small\n"
            "input: 3x8x8\n"
            "layers:\n"
            "  - {name: conv, op: conv, filters: 2, kernel: 3, pad: 1}\n"
            "  - {name: relu, op: relu}\n"
            "  - {name: sum, op: add, from: [conv, relu]}\n"
            "loss: cross_entropy\n");
}

TEST(Yaml, ReadsPaddingInEveryForm) {
  EXPECT_EQ(window_of("kernel: 3, pad: 1").pad_hi, tensor::cube(1));
  EXPECT_EQ(window_of("kernel: 3, pad: [0, 1, 2]").pad_lo, (tensor::Extent3{0, 1, 2}));
  EXPECT_EQ(window_of("kernel: [3, 3], pad: [1, 2]", "4x8x8").pad_lo, (tensor::Extent3{0, 1, 2}));
  const tensor::Window pairs = window_of("kernel: 3, pad: [[0, 1], [1, 0], [2, 3]]");
  EXPECT_EQ(pairs.pad_lo, (tensor::Extent3{0, 1, 2}));
  EXPECT_EQ(pairs.pad_hi, (tensor::Extent3{1, 0, 3}));
}

TEST(Yaml, PadsTheSameAsTensorFlow) {
  const tensor::Window even = window_of("kernel: 2, pad: same");
  EXPECT_EQ(even.pad_lo, tensor::cube(0));
  EXPECT_EQ(even.pad_hi, tensor::cube(1));
  const tensor::Window strided = window_of("kernel: 3, stride: 2, pad: same");  // 8 -> 4
  EXPECT_EQ(strided.pad_lo, tensor::cube(0));
  EXPECT_EQ(strided.pad_hi, tensor::cube(1));
  const tensor::Window flat = window_of("kernel: 3, dilation: 2, pad: same", "4x9x9");
  EXPECT_EQ(flat.pad_lo, (tensor::Extent3{0, 2, 2}));
  EXPECT_EQ(window_of("kernel: 1, stride: 3, pad: same").pad_hi, tensor::cube(0));
}

TEST(Yaml, PoolsStepByTheirKernel) {
  EXPECT_EQ(std::get<Pool>(only_op("{name: a, op: max_pool, kernel: [1, 2, 4]}")).window.stride,
            (tensor::Extent3{1, 2, 4}));
  EXPECT_EQ(std::get<Pool>(only_op("{name: a, op: max_pool, kernel: 2}", "4x8x8")).window.stride, tensor::square(2));
}

TEST(Yaml, TakesAnotherInputAndMiniBatch) {
  const std::string text = with_layers("  - {name: a, op: relu}\n");

  EXPECT_EQ(read_yaml(text, "net.yaml", std::nullopt, 5).nodes[1].shape, (tensor::Shape{5, 4, 8, 8, 8}));
  EXPECT_EQ(read_yaml(text, "net.yaml", parse_input("2x4x4x4", 3), 3).nodes[1].shape, (tensor::Shape{3, 2, 4, 4, 4}));
  EXPECT_EQ(message_of([&] { read_yaml(text, "net.yaml", parse_input("2x4x4", 3), 3); }),
            "64: input 2x4x4 for the 3-D network of net.yaml; its own is 4x8x8x8");
}

TEST(Yaml, ReadsWeightedLosses) {
  const Graph graph = read(
      "name: net\ninput: 4x8x8x8\nlayers: [{name: a, op: relu}]\nloss: [soft_dice, {kind: cross_entropy, weight: "
      "0.25}]\n");

  EXPECT_EQ(graph.loss, (Loss{.terms = {{LossKind::soft_dice, 1}, {LossKind::cross_entropy, 0.25}}}));
}

struct Bad {
  std::string text;
  std::string message;
};

TEST(Yaml, RefusesBadFilesWithLineAndRemedy) {
  const std::string one = "  - {name: a, op: relu}\n";
  const std::vector<Bad> files{
      {"", "net.yaml:1: empty where a map of name, input, layers, loss is needed"},
      {"just text\n", "net.yaml:1: 'just text' where a map of name, input, layers, loss is needed"},
      {"name: n\nlayrs: []\n", "net.yaml:2: unknown key 'layrs'; did you mean 'layers'?"},
      {"name: n\nlayers: []\nloss: soft_dice\n", "net.yaml:1: key 'input' is missing; add it"},
      {with_layers(one, "4x8"),
       "net.yaml:2: input '4x8': 2 extents; write CxDxHxW as 4x128x128x128, or CxHxW as 3x224x224"},
      {with_layers(one, "[4, 8]"),
       "net.yaml:2: input '': '' is not a number; write CxDxHxW as 4x128x128x128, or CxHxW as 3x224x224"},
      {"name: a b\ninput: 1x1x1\nlayers: []\nloss: soft_dice\n",
       "net.yaml:1: the network has a name with other characters than letters, digits, '_', '-' and '.'; rename it"},
      {"name: n\ninput: 1x1x1\nlayers: []\nloss: sofd_dice\n",
       "net.yaml:4: unknown loss 'sofd_dice'; did you mean 'soft_dice'?"},
      {"name: n\ninput: 1x1x1\nlayers: []\nloss: {kind: soft_dice, wieght: 2}\n",
       "net.yaml:4: unknown key 'wieght'; did you mean 'weight'?"},
      {"name: n\ninput: 1x1x1\nlayers: []\nloss: {kind: soft_dice, weight: x}\n",
       "net.yaml:4: weight is 'x'; it must be a number"},
      {"name: n\ninput: 1x1x1\nlayers: []\nloss: soft_dice\n", "net.yaml:3: n: it has no layers; add at least one"},
      {"name: n\ninput: 1x1x1\nlayers: {a: b}\nloss: soft_dice\n",
       "net.yaml:3: layers must be a list, one entry per layer"},
      {with_layers("  - relu\n"), "net.yaml:4: a layer without 'op'; write {name: ..., op: ..., ...}"},
      {with_layers("  - {name: a, op: rellu}\n"), "net.yaml:4: unknown op 'rellu'; did you mean 'relu'?"},
      {with_layers("  - {op: relu}\n"), "net.yaml:4: key 'name' is missing; add it"},
      {with_layers("  - {name: a, op: relu, slope: 1}\n"),
       "net.yaml:4: unknown key 'slope'; known are: name, op, from"},
      {with_layers(one + "  - {name: c, op: conv, filters: 2, kernal: 3}\n"),
       "net.yaml:5: unknown key 'kernal'; did you mean 'kernel'?"},
      {with_layers("  - name: c\n    op: conv\n    filters: 2\n    kernel: [3, 3]\n"),
       "net.yaml:7: kernel has 2 entries; it must be one number or 3, one per spatial dim"},
      {with_layers("  - {name: c, op: conv, filters: 2}\n"), "net.yaml:4: key 'kernel' is missing; add it"},
      {with_layers("  - {name: c, op: conv, kernel: 3}\n"), "net.yaml:4: key 'filters' is missing; add it"},
      {with_layers("  - {name: c, op: conv, filters: 2.5, kernel: 3}\n"),
       "net.yaml:4: filters is '2.5'; it must be a whole number"},
      {with_layers("  - {name: c, op: conv, filters: 99999999999999999999, kernel: 3}\n"),
       "net.yaml:4: filters is '99999999999999999999'; it must be a whole number"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 3, stride: 0}\n"),
       "net.yaml:4: net: c: stride is 0 in dim d; it must be at least 1"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 3, stride: 0, pad: same}\n"),
       "net.yaml:4: stride is 0 in dim d; it must be at least 1"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 9}\n"),
       "net.yaml:4: net: c: the kernel reaches over 9 cells in dim d but the padded input has 8; use a smaller kernel, "
       "more padding or a larger input"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 3, pad: [[1, 1], 1, 1]}\n"),
       "net.yaml:4: pad must be numbers throughout or pairs [below, above] throughout"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 3, pad: valid}\n"),
       "net.yaml:4: pad is 'valid'; it must be a whole number"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 3, init: he_norml}\n"),
       "net.yaml:4: unknown init 'he_norml'; did you mean 'he_normal'?"},
      {with_layers("  - {name: c, op: conv, filters: 2, kernel: 3, bias: maybe}\n"),
       "net.yaml:4: bias is 'maybe'; it must be true or false"},
      {with_layers("  - {name: c, op: conv_transpose, filters: 2, kernel: 3, pad: same}\n"),
       "net.yaml:4: pad 'same' of a conv_transpose; write numbers"},
      {with_layers("  - {name: r, op: resize, mode: cubic, factor: 2}\n"),
       "net.yaml:4: unknown mode 'cubic'; known are: nearest, linear"},
      {with_layers("  - {name: r, op: resize, factor: [2, 2]}\n"),
       "net.yaml:4: factor must be one number, or one per spatial dim"},
      {with_layers("  - {name: r, op: resize}\n"),
       "net.yaml:4: net: r: size is 0 and factor 0 in dim d; give one of them, above 0"},
      {with_layers("  - {name: p, op: pad, pad: 8, mode: reflect}\n"),
       "net.yaml:4: net: p: pad is 8 in dim d; it must be from 0 to 7"},
      {with_layers("  - {name: p, op: pad, mode: edge}\n"), "net.yaml:4: key 'pad' is missing; add it"},
      {with_layers("  - {name: s, op: slice, first: 8}\n"),
       "net.yaml:4: net: s: a slice of 0 cells from 8 on, 1 apart, of 8; it must lie inside and not be empty"},
      {with_layers("  - {name: g, op: group_norm, groups: 3}\n"),
       "net.yaml:4: net: g: 4 source channels do not divide into 3 groups; use a divisor"},
      {with_layers("  - {name: m, op: multiply, from: [input, input, input]}\n"),
       "net.yaml:4: net: m: multiply takes two sources, but has 3; chain more of them"},
      {with_layers("  - {name: s, op: scale}\n"), "net.yaml:4: key 'factor' is missing; add it"},
      {with_layers("  - {name: s, op: scale, factor: nan}\n"), "net.yaml:4: factor is 'nan'; it must be a number"},
      {with_layers("  - {name: d, op: dropout, rate: 1}\n"),
       "net.yaml:4: net: d: rate is 1; it must be at least 0 and below 1"},
      {with_layers(one + one), "net.yaml:5: net: a: a second layer of this name; names must be unique"},
      {with_layers(one + "  - {name: b, op: relu, from: aa}\n"),
       "net.yaml:5: from names no layer above it; did you mean 'a'?"},
      {with_layers(one + "  - {name: b, op: relu, from: []}\n"),
       "net.yaml:5: from is an empty list; leave it out to read the layer above"},
      {with_layers(one + "  - {name: b, op: add}\n"), "net.yaml:5: net: b: add reads 1 sources; it takes two or more"},
      {with_layers(one + "  - {name: b, op: relu, from: input}\n"),
       "net.yaml:3: net: a: no layer reads it, and only the last layer is the output; remove it or read it"},
      {with_layers("  - {name: a, op: conv, filters: 2, kernel: 1000000000000, pad: same}\n"),
       "net.yaml:4: net: a: kernel, stride, dilation or padding is 1000000000000 in dim d; at most 2147483648 is "
       "supported"},
      {with_layers("  - {name: a, op: conv, filters: 9000000000000000000, kernel: 1}\n"),
       "net.yaml:4: net: a: size 1024 x 9000000000000000000 overflows 64 bits; use smaller sizes"},
  };
  for (const Bad& bad : files) EXPECT_EQ(message_of([&] { read(bad.text); }), "65: " + bad.message) << bad.text;
}

TEST(Yaml, RefusesTooManyLayers) {
  std::string layers;
  for (int i = 0; i < 100'001; ++i) layers += " - a\n";

  EXPECT_EQ(message_of([&] { read(with_layers(layers)); }),
            "65: net.yaml:3: 100001 layers; at most 100000 are supported");
}

}  // namespace
}  // namespace orthant::model
