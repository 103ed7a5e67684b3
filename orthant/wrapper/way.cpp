#include "orthant/wrapper/way.hpp"

#include "orthant/kernels/team.hpp"

#include <omp.h>

#include <algorithm>

namespace orthant::wrapper {
namespace {

using model::Pass;

std::int64_t bytes_of(const dnnl_memory_desc_t& memory) {
  return static_cast<std::int64_t>(dnnl_memory_desc_get_size(&memory));
}

std::int64_t floats_of(const dnnl_memory_desc_t& memory) {
  return bytes_of(memory) / static_cast<std::int64_t>(sizeof(float));
}

std::int64_t sample_bytes(const dnnl_memory_desc_t& memory) {
  return memory.format_desc.blocking.strides[0] * static_cast<std::int64_t>(sizeof(float));
}

void* moved(void* pointer, std::int64_t bytes) { return pointer ? static_cast<std::byte*>(pointer) + bytes : nullptr; }

void add(const void* from, void* to, std::int64_t count) {
  const auto* a = static_cast<const float*>(from);
  auto* b = static_cast<float*>(to);
  kernels::run_team(kernels::team_for(count, omp_get_max_threads()), [&](int thread, int team) {
    const std::int64_t end = kernels::share(count, thread + 1, team);
    for (std::int64_t i = kernels::share(count, thread, team); i < end; ++i) b[i] += a[i];
  });
}

}  // namespace

Transfer::Transfer(const dnnl_memory_desc_t& from, const dnnl_memory_desc_t& to, Kind kind, const Library& library)
    : needed_(kind != Kind::where_needed || !is_same_order(from, to)) {
  if (!needed_) return;
  dnnl::primitive_attr attributes;
  if (kind == Kind::adds) {
    dnnl::post_ops after;
    after.append_sum(1.0F);
    attributes.set_post_ops(after);
  }
  const dnnl::memory::desc source(from), target(to);
  const dnnl::reorder::primitive_desc description(library.engine, source, library.engine, target, attributes);
  call_ = {library.engine, dnnl::reorder(description), {{DNNL_ARG_FROM, source}, {DNNL_ARG_TO, target}}};
}

void Transfer::run(const Library& library, void* from, void* to) const {
  if (needed_) call_.run(library.stream, std::array{from, to});
}

Way::Way(const Problem& problem, std::unique_ptr<Core> core, const Library& library)
    : library_(library),
      core_(std::move(core)),
      pass_(problem.pass),
      samples_(core_->layouts().src.dims[0]),
      src_step_(sample_bytes(problem.src)),
      dst_step_(sample_bytes(problem.dst)),
      weight_count_(floats_of(core_->layouts().weights)) {
  const Core::Layouts& inner = core_->layouts();
  const dnnl_memory_desc_t src = with_samples(problem.src, samples_), dst = with_samples(problem.dst, samples_);
  const auto needed = Transfer::Kind::where_needed;
  const bool gradient = pass_ == Pass::backward_weights;
  const bool divided = samples_ < problem.samples();
  src_ = pass_ == Pass::backward_data ? Transfer(inner.src, src, needed, library)
                                      : Transfer(src, inner.src, needed, library);
  dst_ = pass_ == Pass::forward ? Transfer(inner.dst, dst, needed, library) : Transfer(dst, inner.dst, needed, library);
  if (!gradient) {
    weights_ = Transfer(problem.weights, inner.weights, needed, library);
  } else {
    weights_ = Transfer(inner.weights, problem.weights, divided ? Transfer::Kind::always : needed, library);
    if (divided) added_weights_ = Transfer(inner.weights, problem.weights, Transfer::Kind::adds, library);
  }
  // A way that comes after others must not overwrite what they have found.
  if (weights_.is_needed()) weights_area_ = area(bytes_of(inner.weights));
  if (src_.is_needed()) src_area_ = area(bytes_of(inner.src));
  if (dst_.is_needed()) dst_area_ = area(bytes_of(inner.dst));
  if (gradient && problem.bias) {
    bias_count_ = problem.dst.dims[1];
    if (divided) bias_area_ = area(bytes_of(problem.bias_memory));
  }
  if (gradient && divided && !core_->can_accumulate()) {
    further_weights_ = area(bytes_of(inner.weights));
    if (problem.bias) further_bias_ = area(bytes_of(problem.bias_memory));
  }
  scratch_ = area(core_->scratch_bytes());
}

Way::Area Way::area(std::int64_t bytes) {
  constexpr std::int64_t line = 64, page = 4096;
  const std::int64_t unit = bytes >= page ? page : line;
  const std::int64_t offset = (bytes_ + unit - 1) / unit * unit;
  bytes_ = offset + bytes;
  return {offset, bytes};
}

void Way::begin(const Tensors& tensors, std::byte* workspace) {
  is_first_ = true;
  if (pass_ != Pass::backward_weights) weights_.run(library_, tensors.weights, weights_area_.in(workspace, nullptr));
}

void Way::piece(const Tensors& tensors, std::int64_t first, std::byte* workspace) {
  const Tensors outer{.src = moved(tensors.src, first * src_step_),
                      .weights = tensors.weights,
                      .bias = tensors.bias,
                      .dst = moved(tensors.dst, first * dst_step_)};
  const Tensors inner{.src = src_area_.in(workspace, outer.src),
                      .weights = weights_area_.in(workspace, outer.weights),
                      .bias = bias_area_.in(workspace, outer.bias),
                      .dst = dst_area_.in(workspace, outer.dst)};
  if (pass_ != Pass::backward_data) src_.run(library_, outer.src, inner.src);
  if (pass_ != Pass::forward) dst_.run(library_, outer.dst, inner.dst);
  void* scratch = scratch_.in(workspace, nullptr);
  if (pass_ == Pass::backward_weights && !is_first_ && !core_->can_accumulate()) {
    const Tensors further{.src = inner.src,
                          .weights = further_weights_.in(workspace, nullptr),
                          .bias = further_bias_.in(workspace, nullptr),
                          .dst = inner.dst};
    core_->run(further, scratch, false);
    add(further.weights, inner.weights, weight_count_);
    add(further.bias, inner.bias, bias_count_);
  } else {
    core_->run(inner, scratch, pass_ == Pass::backward_weights && !is_first_);
  }
  is_first_ = false;
  if (pass_ == Pass::forward) dst_.run(library_, inner.dst, outer.dst);
  if (pass_ == Pass::backward_data) src_.run(library_, inner.src, outer.src);
}

void Way::end(const Tensors& tensors, std::byte* workspace, bool adds) {
  if (pass_ != Pass::backward_weights) return;
  if (void* found = weights_area_.in(workspace, nullptr))
    (adds ? added_weights_ : weights_).run(library_, found, tensors.weights);
  if (void* found = bias_area_.in(workspace, nullptr)) {
    auto* to = static_cast<float*>(tensors.bias);
    if (!adds) std::fill_n(to, bias_count_, 0.0F);
    add(found, to, bias_count_);
  }
}

}  // namespace orthant::wrapper
