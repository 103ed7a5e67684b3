#include "orthant/model/yaml_ops.hpp"

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

Op read_scale(const LayerText& layer) { return Scale{.factor = layer.fields.number("factor")}; }

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

const std::vector<OpWord>& op_words() {
  static const std::vector<OpWord> words{
      {"conv", {"filters", "kernel", "stride", "dilation", "pad", "groups", "bias", "init", "bias_value"}, read_conv},
      {"conv_transpose",
       {"filters", "kernel", "stride", "dilation", "pad", "output_padding", "groups", "bias", "init", "bias_value"},
       read_conv_transpose},
      {"max_pool", {"kernel", "stride", "dilation", "pad"}, read_max_pool},
      {"average_pool", {"kernel", "stride", "dilation", "pad", "count_include_pad"}, read_average_pool},
      {"global_average_pool", {}, read_plain<GlobalAveragePool>},
      {"dense", {"features", "bias", "init", "bias_value"}, read_dense},
      {"batch_norm", {"epsilon", "momentum"}, read_batch_norm},
      {"identity", {}, read_activation<ActivationKind::identity>},
      {"relu", {}, read_activation<ActivationKind::relu>},
      {"leaky_relu", {"slope"}, read_leaky_relu},
      {"tanh", {}, read_activation<ActivationKind::tanh>},
      {"sigmoid", {}, read_activation<ActivationKind::sigmoid>},
      {"softmax", {}, read_plain<Softmax>},
      {"scale", {"factor"}, read_scale},
      {"dropout", {"rate"}, read_dropout},
      {"add", {}, read_plain<Add>},
      {"concat", {}, read_plain<Concat>},
      {"flatten", {}, read_plain<Flatten>},
  };
  return words;
}

}  // namespace orthant::model
