#include "orthant/model/ops.hpp"

namespace orthant::model {
namespace {

struct Name {
  const char* operator()(const Input&) const { return "input"; }
  const char* operator()(const Conv&) const { return "conv"; }
  const char* operator()(const ConvTranspose&) const { return "conv_transpose"; }
  const char* operator()(const Pool& op) const { return op.kind == PoolKind::max ? "max_pool" : "average_pool"; }
  const char* operator()(const GlobalAveragePool&) const { return "global_average_pool"; }
  const char* operator()(const GlobalMaxPool&) const { return "global_max_pool"; }
  const char* operator()(const Dense&) const { return "dense"; }
  const char* operator()(const BatchNorm&) const { return "batch_norm"; }
  const char* operator()(const SampleNorm& op) const {
    switch (op.kind) {
      case SampleNormKind::group: return "group_norm";
      case SampleNormKind::instance: return "instance_norm";
      case SampleNormKind::layer: return "layer_norm";
    }
    return "";
  }
  const char* operator()(const Activation& op) const { return name_of(op.kind); }
  const char* operator()(const PRelu&) const { return "prelu"; }
  const char* operator()(const Affine&) const { return "affine"; }
  const char* operator()(const Softmax&) const { return "softmax"; }
  const char* operator()(const Scale&) const { return "scale"; }
  const char* operator()(const Dropout&) const { return "dropout"; }
  const char* operator()(const Add&) const { return "add"; }
  const char* operator()(const Multiply&) const { return "multiply"; }
  const char* operator()(const Resize&) const { return "resize"; }
  const char* operator()(const Slice&) const { return "slice"; }
  const char* operator()(const Pad&) const { return "pad"; }
  const char* operator()(const ChannelShuffle&) const { return "channel_shuffle"; }
  const char* operator()(const PixelShuffle& op) const { return op.to_channels ? "pixel_unshuffle" : "pixel_shuffle"; }
  const char* operator()(const Concat&) const { return "concat"; }
  const char* operator()(const Flatten&) const { return "flatten"; }
};

}  // namespace

const char* name_of(const Op& op) { return std::visit(Name{}, op); }

const char* name_of(ActivationKind kind) {
  switch (kind) {
    case ActivationKind::identity: return "identity";
    case ActivationKind::relu: return "relu";
    case ActivationKind::leaky_relu: return "leaky_relu";
    case ActivationKind::tanh: return "tanh";
    case ActivationKind::sigmoid: return "sigmoid";
    case ActivationKind::relu6: return "relu6";
    case ActivationKind::hard_sigmoid: return "hard_sigmoid";
    case ActivationKind::elu: return "elu";
    case ActivationKind::silu: return "silu";
    case ActivationKind::gelu: return "gelu";
    case ActivationKind::hard_swish: return "hard_swish";
  }
  return "";
}

bool derivative_reads_src(ActivationKind kind) {
  return kind == ActivationKind::silu || kind == ActivationKind::gelu || kind == ActivationKind::hard_swish;
}

}  // namespace orthant::model
