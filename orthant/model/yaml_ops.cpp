#include "orthant/model/yaml_ops.hpp"

#include <algorithm>

namespace orthant::model {
namespace {

Init read_init(const LayerText& layer) {
  const Document* init = layer.fields.find("init");
  return init == nullptr ? Init::torch : static_cast<Init>(layer.fields.choice(*init, "init", init_words()));
}

Op read_conv(const LayerText& layer) {
  return Conv{.filters = layer.fields.integer("filters"),
              .window = read_window(layer, false),
              .groups = layer.fields.integer_or("groups", 1),
              .bias = layer.fields.flag_or("bias", true),
              .init = read_init(layer),
              .bias_value = layer.fields.number_or("bias_value", 0)};
}

Op read_conv_transpose(const LayerText& layer) {
  const Document* pad = layer.fields.find("pad");
  if (pad != nullptr && pad->scalar == "same")
    layer.fields.refuse(*pad, "pad 'same' of a conv_transpose; write numbers");
  return ConvTranspose{.filters = layer.fields.integer("filters"),
                       .window = read_window(layer, false),
                       .output_padding = read_extent(layer, "output_padding", 0, 0),
                       .groups = layer.fields.integer_or("groups", 1),
                       .bias = layer.fields.flag_or("bias", true),
                       .init = read_init(layer),
                       .bias_value = layer.fields.number_or("bias_value", 0)};
}

Op read_max_pool(const LayerText& layer) { return Pool{.kind = PoolKind::max, .window = read_window(layer, true)}; }

Op read_average_pool(const LayerText& layer) {
  return Pool{.kind = PoolKind::average,
              .window = read_window(layer, true),
              .count_include_pad = layer.fields.flag_or("count_include_pad", true)};
}

Op read_dense(const LayerText& layer) {
  return Dense{.features = layer.fields.integer("features"),
               .bias = layer.fields.flag_or("bias", true),
               .init = read_init(layer),
               .bias_value = layer.fields.number_or("bias_value", 0)};
}

Op read_batch_norm(const LayerText& layer) {
  return BatchNorm{.epsilon = layer.fields.number_or("epsilon", BatchNorm{}.epsilon),
                   .momentum = layer.fields.number_or("momentum", BatchNorm{}.momentum)};
}

Op read_leaky_relu(const LayerText& layer) {
  return Activation{ActivationKind::leaky_relu, layer.fields.number_or("slope", Activation{}.slope)};
}

template <ActivationKind kind>
Op read_activation(const LayerText&) {
  return Activation{kind};
}

Op read_elu(const LayerText& layer) { return Activation{ActivationKind::elu, layer.fields.number_or("alpha", 1)}; }

Op read_prelu(const LayerText& layer) {
  return PRelu{.shared = layer.fields.flag_or("shared", false),
               .start = layer.fields.number_or("start", PRelu{}.start)};
}

Op read_affine(const LayerText& layer) {
  return Affine{.bias = layer.fields.flag_or("bias", true),
                .trainable = layer.fields.flag_or("trainable", true),
                .weight_value = layer.fields.number_or("weight_value", 1),
                .bias_value = layer.fields.number_or("bias_value", 0)};
}

template <SampleNormKind kind>
Op read_sample_norm(const LayerText& layer) {
  return SampleNorm{.kind = kind,
                    .groups = kind == SampleNormKind::group ? layer.fields.integer("groups") : 1,
                    .epsilon = layer.fields.number_or("epsilon", SampleNorm{}.epsilon),
                    .affine = layer.fields.flag_or("affine", true)};
}

/// One number for all spatial dims, or one for each; dims that the network does not name stay as they are.
std::array<double, 3> read_factors(const LayerText& layer) {
  std::array<double, 3> factors{};
  const Document* value = layer.fields.find("factor");
  if (value == nullptr) return factors;
  const auto first = static_cast<std::size_t>(3 - layer.spatial_count);
  std::fill_n(factors.begin(), first, 1.0);
  const bool list = value->kind == Document::Kind::list;
  if (list && value->items.size() != static_cast<std::size_t>(layer.spatial_count)) {
    layer.fields.refuse(*value, "factor must be one number, or one per spatial dim");
  }
  for (std::size_t i = first; i < factors.size(); ++i)
    factors[i] = layer.fields.number(list ? value->items[i - first] : *value, "factor");
  return factors;
}

Op read_resize(const LayerText& layer) {
  Resize op{.align_corners = layer.fields.flag_or("align_corners", false), .factor = read_factors(layer)};
  if (const Document* mode = layer.fields.find("mode"))
    op.mode = static_cast<ResizeMode>(layer.fields.choice(*mode, "mode", resize_words()));
  if (layer.fields.find("size") != nullptr) op.size = read_extent(layer, "size", 1, 1);
  return op;
}

Op read_slice(const LayerText& layer) {
  return Slice{.first_channel = layer.fields.integer_or("first_channel", 0),
               .channels = layer.fields.integer_or("channels", 0),
               .first = read_extent(layer, "first", 0, 0),
               .size = read_extent(layer, "size", 0, 0),
               .step = read_extent(layer, "step", 1, 1)};
}

Op read_padding(const LayerText& layer) {
  Pad op;
  if (const Document* mode = layer.fields.find("mode"))
    op.mode = static_cast<PadMode>(layer.fields.choice(*mode, "mode", pad_words()));
  const Document& pad = layer.fields.need("pad");
  if (pad.kind == Document::Kind::scalar && pad.scalar == "same") layer.fields.refuse(pad, "pad 'same'; write numbers");
  tensor::Window window;
  read_pad(layer, window);
  op.lo = window.pad_lo;
  op.hi = window.pad_hi;
  return op;
}

Op read_scale(const LayerText& layer) {
  return Scale{.factor = layer.fields.number("factor"), .offset = layer.fields.number_or("offset", 0)};
}

Op read_channel_shuffle(const LayerText& layer) { return ChannelShuffle{.groups = layer.fields.integer("groups")}; }

template <bool to_channels>
Op read_pixel_shuffle(const LayerText& layer) {
  return PixelShuffle{.factor = read_entries(layer, "factor", layer.fields.need("factor"), 1),
                      .to_channels = to_channels};
}

Op read_dropout(const LayerText& layer) { return Dropout{.rate = layer.fields.number_or("rate", Dropout{}.rate)}; }

template <class Plain>
Op read_plain(const LayerText&) {
  return Plain{};
}

}  // namespace

const std::vector<std::string>& init_words() {
  static const std::vector<std::string> words{"torch", "glorot_uniform", "he_normal"};
  return words;
}

const std::vector<std::string>& resize_words() {
  static const std::vector<std::string> words{"nearest", "linear"};
  return words;
}

const std::vector<std::string>& pad_words() {
  static const std::vector<std::string> words{"zeros", "reflect", "edge"};
  return words;
}

const std::vector<OpWord>& op_words() {
  static const std::vector<OpWord> words{
      {"conv", {"filters", "kernel", "stride", "dilation", "pad", "groups", "bias", "init", "bias_value"}, read_conv},
      {"conv_transpose",
       {"filters", "kernel", "stride", "dilation", "pad", "output_padding", "groups", "bias", "init", "bias_value"},
       read_conv_transpose},
      {"max_pool", {"kernel", "stride", "dilation", "pad"}, read_max_pool},
      {"average_pool", {"kernel", "stride", "dilation", "pad", "count_include_pad"}, read_average_pool},
      {"global_average_pool", {}, read_plain<GlobalAveragePool>},
      {"global_max_pool", {}, read_plain<GlobalMaxPool>},
      {"dense", {"features", "bias", "init", "bias_value"}, read_dense},
      {"batch_norm", {"epsilon", "momentum"}, read_batch_norm},
      {"identity", {}, read_activation<ActivationKind::identity>},
      {"relu", {}, read_activation<ActivationKind::relu>},
      {"leaky_relu", {"slope"}, read_leaky_relu},
      {"tanh", {}, read_activation<ActivationKind::tanh>},
      {"sigmoid", {}, read_activation<ActivationKind::sigmoid>},
      {"relu6", {}, read_activation<ActivationKind::relu6>},
      {"hard_sigmoid", {}, read_activation<ActivationKind::hard_sigmoid>},
      {"elu", {"alpha"}, read_elu},
      {"silu", {}, read_activation<ActivationKind::silu>},
      {"gelu", {}, read_activation<ActivationKind::gelu>},
      {"hard_swish", {}, read_activation<ActivationKind::hard_swish>},
      {"prelu", {"shared", "start"}, read_prelu},
      {"group_norm", {"groups", "epsilon", "affine"}, read_sample_norm<SampleNormKind::group>},
      {"instance_norm", {"epsilon", "affine"}, read_sample_norm<SampleNormKind::instance>},
      {"layer_norm", {"epsilon", "affine"}, read_sample_norm<SampleNormKind::layer>},
      {"affine", {"bias", "trainable", "weight_value", "bias_value"}, read_affine},
      {"multiply", {}, read_plain<Multiply>},
      {"resize", {"mode", "align_corners", "factor", "size"}, read_resize},
      {"slice", {"first_channel", "channels", "first", "size", "step"}, read_slice},
      {"pad", {"pad", "mode"}, read_padding},
      {"softmax", {}, read_plain<Softmax>},
      {"channel_shuffle", {"groups"}, read_channel_shuffle},
      {"pixel_shuffle", {"factor"}, read_pixel_shuffle<false>},
      {"pixel_unshuffle", {"factor"}, read_pixel_shuffle<true>},
      {"scale", {"factor", "offset"}, read_scale},
      {"dropout", {"rate"}, read_dropout},
      {"add", {}, read_plain<Add>},
      {"concat", {}, read_plain<Concat>},
      {"flatten", {}, read_plain<Flatten>},
  };
  return words;
}

}  // namespace orthant::model
