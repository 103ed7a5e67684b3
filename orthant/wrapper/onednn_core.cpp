#include "orthant/kernels/instruction_set.hpp"
#include "orthant/wrapper/core.hpp"

#include <array>

namespace orthant::wrapper {
namespace {

using kernels::onednn::Call;
using model::Pass;

class OnednnCore final : public Core {
 public:
  OnednnCore(const Layouts& layouts, std::string kind, std::int64_t scratch_bytes, Call call, dnnl::stream stream)
      : Core(layouts),
        kind_(std::move(kind)),
        scratch_bytes_(scratch_bytes),
        call_(std::move(call)),
        stream_(std::move(stream)) {}

  [[nodiscard]] std::string kind() const override { return kind_; }
  [[nodiscard]] std::int64_t scratch_bytes() const override { return scratch_bytes_; }
  [[nodiscard]] bool can_accumulate() const override { return false; }
  void run(const Tensors& tensors, void* scratch, bool /*accumulate*/) override {
    call_.run(stream_, std::array{tensors.src, tensors.weights, tensors.bias, tensors.dst, scratch});
  }

 private:
  std::string kind_;
  std::int64_t scratch_bytes_;
  Call call_;
  dnnl::stream stream_;
};

/// Where the layouts of an operation lie, and which arguments they are.
struct Role {
  dnnl_memory_desc_t* memory = nullptr;
  int argument = 0;
};
struct Roles {
  Role src, weights, bias, dst;
};

Roles roles_of(Pass pass, dnnl_convolution_desc_t& op) {
  switch (pass) {
    case Pass::forward:
      return {{&op.src_desc, DNNL_ARG_SRC},
              {&op.weights_desc, DNNL_ARG_WEIGHTS},
              {&op.bias_desc, DNNL_ARG_BIAS},
              {&op.dst_desc, DNNL_ARG_DST}};
    case Pass::backward_data:
      return {{&op.diff_src_desc, DNNL_ARG_DIFF_SRC},
              {&op.weights_desc, DNNL_ARG_WEIGHTS},
              {&op.bias_desc, DNNL_ARG_BIAS},
              {&op.diff_dst_desc, DNNL_ARG_DIFF_DST}};
    case Pass::backward_weights: break;
  }
  return {{&op.src_desc, DNNL_ARG_SRC},
          {&op.diff_weights_desc, DNNL_ARG_DIFF_WEIGHTS},
          {&op.diff_bias_desc, DNNL_ARG_DIFF_BIAS},
          {&op.diff_dst_desc, DNNL_ARG_DIFF_DST}};
}

dnnl_prop_kind_t kind_of(Pass pass) {
  switch (pass) {
    case Pass::forward: return dnnl_forward_training;
    case Pass::backward_data: return dnnl_backward_data;
    case Pass::backward_weights: break;
  }
  return dnnl_backward_weights;
}

dnnl_memory_desc_t any_layout(dnnl_memory_desc_t memory) {
  memory.format_kind = dnnl_format_kind_any;
  return memory;
}

/// The operation in any layouts.
dnnl_convolution_desc_t describe(const Problem& problem, Pass pass, dnnl_alg_kind_t algorithm) {
  dnnl_convolution_desc_t op{};
  op.primitive_kind = dnnl_convolution;
  op.prop_kind = kind_of(pass);
  op.alg_kind = algorithm;
  op.accum_data_type = dnnl_f32;
  const Roles roles = roles_of(pass, op);
  *roles.src.memory = any_layout(problem.src);
  *roles.weights.memory = any_layout(problem.weights);
  *roles.dst.memory = any_layout(problem.dst);
  if (problem.bias) *roles.bias.memory = problem.bias_memory;
  for (std::size_t i = 0; i < problem.strides.size(); ++i) {
    op.strides[i] = problem.strides[i];
    op.dilates[i] = problem.dilates[i];
    op.padding[0][i] = problem.pad_lo[i];
    op.padding[1][i] = problem.pad_hi[i];
  }
  return op;
}

/// oneDNN's first choice for the operation, or nothing if it has none.
dnnl::primitive_desc chosen(const dnnl_convolution_desc_t& op, const_dnnl_primitive_desc_t forward,
                            const Library& library) {
  dnnl::primitive_attr attributes;
  attributes.set_scratchpad_mode(dnnl::scratchpad_mode::user);
  dnnl_primitive_desc_t description = nullptr;
  const dnnl_status_t status =
      dnnl_primitive_desc_create(&description, &op, attributes.get(), library.engine.get(), forward);
  return status == dnnl_success ? dnnl::primitive_desc(description) : dnnl::primitive_desc();
}

const dnnl_memory_desc_t& described(const dnnl::primitive_desc& description, int argument) {
  return *dnnl_primitive_desc_query_md(description.get(), dnnl_query_exec_arg_md, argument);
}

std::unique_ptr<Core> make(const Problem& problem, dnnl_alg_kind_t algorithm, const Library& library) {
  dnnl::primitive_desc hint;
  if (problem.pass != Pass::forward) {
    hint = chosen(describe(problem, Pass::forward, algorithm), nullptr, library);
    if (!hint) return nullptr;
  }
  dnnl_convolution_desc_t op = describe(problem, problem.pass, algorithm);
  const dnnl::primitive_desc found = chosen(op, hint.get(true), library);
  if (!found) return nullptr;
  const char* name = nullptr;
  dnnl_primitive_desc_query(found.get(), dnnl_query_impl_info_str, 0, &name);
  if (!name || !kernels::onednn::is_fast(name)) return nullptr;
  const Roles roles = roles_of(problem.pass, op);
  const auto layout = [&](const Role& role) -> dnnl_memory_desc_t { return described(found, role.argument); };
  const Core::Layouts layouts{.src = layout(roles.src), .weights = layout(roles.weights), .dst = layout(roles.dst)};
  const dnnl_memory_desc_t scratch = *dnnl_primitive_desc_query_md(found.get(), dnnl_query_scratchpad_md, 0);
  const dnnl_memory_desc_t bias = problem.bias ? layout(roles.bias) : dnnl_memory_desc_t{};
  dnnl_primitive_t made = nullptr;
  if (dnnl_primitive_create(&made, found.get()) != dnnl_success) return nullptr;
  Call call(library.engine, dnnl::primitive(made),
            {{roles.src.argument, layouts.src},
             {roles.weights.argument, layouts.weights},
             {roles.bias.argument, bias},
             {roles.dst.argument, layouts.dst},
             {DNNL_ARG_SCRATCHPAD, scratch}});
  const std::int64_t bytes = kernels::onednn::padded_bytes(dnnl_memory_desc_get_size(&scratch));
  const char* kind = algorithm == dnnl_convolution_winograd ? "onednn-winograd" : "onednn-blocked";
  return std::make_unique<OnednnCore>(layouts, kind, bytes, std::move(call), library.stream);
}

}  // namespace

std::vector<std::unique_ptr<Core>> make_onednn_cores(const Problem& problem, const CoreOptions& options,
                                                     const Library& library) {
  kernels::limit_instructions();
  std::vector<std::unique_ptr<Core>> cores;
  if (auto core = make(problem, dnnl_convolution_direct, library)) cores.push_back(std::move(core));
  // Its Winograd has tiles of four, and is wrong where more is padded on one side than on the other.
  if (options.fast && problem.pad_lo == problem.pad_hi) {
    if (auto core = make(problem, dnnl_convolution_winograd, library)) cores.push_back(std::move(core));
  }
  return cores;
}

std::vector<std::unique_ptr<Core>> make_cores(const Problem& problem, const CoreOptions& options,
                                              const Library& library) {
  std::vector<std::unique_ptr<Core>> cores = make_our_cores(problem, options);
  for (auto& core : make_onednn_cores(problem, options, library)) cores.push_back(std::move(core));
  return cores;
}

}  // namespace orthant::wrapper
