#include "orthant/kernels/onednn/call.hpp"

#include "orthant/base/error.hpp"

#include <omp.h>

#include <utility>

namespace orthant::kernels::onednn {

TeamScope::TeamScope(int threads) : before_(omp_get_max_threads()) { omp_set_num_threads(threads); }

TeamScope::~TeamScope() { omp_set_num_threads(before_); }

Call::Call(const dnnl::engine& engine, dnnl::primitive primitive, const std::vector<Slot>& slots)
    : primitive_(std::move(primitive)) {
  for (const Slot& slot : slots) {
    memories_.emplace_back(slot.memory, engine, nullptr);
    arguments_.push_back({slot.role, memories_.back().get()});
  }
}

void Call::run(const dnnl::stream& stream, std::span<void* const> data) const {
  for (std::size_t slot = 0; slot < memories_.size(); ++slot) memories_[slot].set_data_handle(data[slot]);
  const dnnl_status_t status =
      dnnl_primitive_execute(primitive_.get(), stream.get(), static_cast<int>(arguments_.size()), arguments_.data());
  dnnl::error::wrap_c_api(status, "oneDNN could not execute a primitive");
}

Call make_reorder(const dnnl::engine& engine, const dnnl::memory::desc& from, const dnnl::memory::desc& to) {
  const dnnl::reorder::primitive_desc description(engine, from, engine, to);
  return {engine, dnnl::reorder(description), {{DNNL_ARG_FROM, from}, {DNNL_ARG_TO, to}}};
}

dnnl::primitive_attr attributes(const model::Activation& activation) {
  using model::ActivationKind;
  dnnl::primitive_attr attr;
  attr.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl::post_ops after;
  const auto append = [&](dnnl::algorithm algorithm, double alpha) {
    after.append_eltwise(1.0F, algorithm, static_cast<float>(alpha), 0.0F);
  };
  switch (activation.kind) {
    case ActivationKind::identity: break;
    case ActivationKind::relu: append(dnnl::algorithm::eltwise_relu, 0); break;
    case ActivationKind::leaky_relu: append(dnnl::algorithm::eltwise_relu, activation.slope); break;
    case ActivationKind::tanh: append(dnnl::algorithm::eltwise_tanh, 0); break;
    case ActivationKind::sigmoid: append(dnnl::algorithm::eltwise_logistic, 0); break;
    case ActivationKind::elu: append(dnnl::algorithm::eltwise_elu, activation.slope); break;
    case ActivationKind::relu6:
    case ActivationKind::hard_sigmoid:
    case ActivationKind::silu:
    case ActivationKind::gelu:
    case ActivationKind::hard_swish:
      base::fail(base::Exit::internal, "{} is no part of a convolution", model::name_of(activation.kind));
  }
  attr.set_post_ops(after);
  return attr;
}

bool is_fast(std::string_view name) {
  return name.find("ref") == std::string_view::npos && name.find("gemm") == std::string_view::npos;
}

std::int64_t padded_bytes(std::size_t bytes) {
  constexpr std::size_t line = 64;
  return static_cast<std::int64_t>((bytes + line - 1) / line * line);
}

}  // namespace orthant::kernels::onednn
