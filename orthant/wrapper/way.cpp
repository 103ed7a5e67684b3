#include "orthant/wrapper/way.hpp"

#include "orthant/kernels/team.hpp"

#include <algorithm>
#include <array>
#include <utility>

namespace orthant::wrapper {
namespace {

using model::Pass;

std::int64_t bytes_of(const dnnl_memory_desc_t& memory) {
  return static_cast<std::int64_t>(dnnl_memory_desc_get_size(&memory));
}

std::int64_t floats_of(const dnnl_memory_desc_t& memory) {
  return bytes_of(memory) / static_cast<std::int64_t>(sizeof(float));
}

std::int64_t stride_bytes(const dnnl_memory_desc_t& memory, int dim) {
  return memory.format_desc.blocking.strides[dim] * static_cast<std::int64_t>(sizeof(float));
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

Way::Way(const Problem& problem, Made made, const Library& library)
    : library_(library),
      label_(made.cores.front()->kind() + "@" + to_text(made.cut)),
      cut_(made.cut),
      pass_(problem.pass),
      src_step_(stride_bytes(problem.src, 0)),
      dst_step_(stride_bytes(problem.dst, 0)) {
  units_.resize(made.cores.size());
  for (std::size_t i = 0; i < made.parts.size(); ++i) {
    const Part& part = made.parts[i];
    const std::size_t unit = made.core_of_part[i];
    if (made.cores[unit]) units_[unit] = {.core = std::move(made.cores[unit])};
    steps_.push_back({.unit = unit,
                      .src_bytes = part.src_row * stride_bytes(problem.src, 2),
                      .dst_bytes = part.dst_row * stride_bytes(problem.dst, 2)});
  }
  lay_out_weights(problem, cut_.samples < problem.samples() || made.parts.size() > 1);
  // One unit runs after the other, so they share what follows.
  const std::int64_t shared = bytes_;
  std::int64_t most = shared;
  for (std::size_t i = 0; i < made.parts.size(); ++i) {
    Unit& unit = units_[made.core_of_part[i]];
    if (unit.scratch.offset != 0) continue;
    bytes_ = shared;
    unit = make_unit(made.parts[i].problem, std::move(unit.core));
    most = std::max(most, bytes_);
  }
  bytes_ = most;
}

void Way::lay_out_weights(const Problem& problem, bool divided) {
  const dnnl_memory_desc_t& inner = units_.front().core->layouts().weights;
  const Transfer::Kind needed = Transfer::Kind::where_needed;
  area(1);  // so that no area that is used begins at 0
  if (pass_ != Pass::backward_weights) {
    weights_ = Transfer(problem.weights, inner, needed, library_);
    if (weights_.is_needed()) weights_area_ = area(bytes_of(inner));
    return;
  }
  // A way that comes after others must not overwrite what they have found.
  weights_ = Transfer(inner, problem.weights, divided ? Transfer::Kind::always : needed, library_);
  if (divided) added_weights_ = Transfer(inner, problem.weights, Transfer::Kind::adds, library_);
  if (weights_.is_needed()) weights_area_ = area(bytes_of(inner));
  weight_count_ = floats_of(inner);
  const std::int64_t bias_bytes = problem.bias ? bytes_of(problem.bias_memory) : 0;
  bias_count_ = problem.bias ? problem.dst.dims[1] : 0;
  if (divided) bias_area_ = area(bias_bytes);
  if (divided && !units_.front().core->can_accumulate()) {
    further_weights_ = area(bytes_of(inner));
    further_bias_ = area(bias_bytes);
  }
}

Way::Unit Way::make_unit(const Problem& part, std::unique_ptr<Core> core) {
  const Core::Layouts& inner = core->layouts();
  const Transfer::Kind needed = Transfer::Kind::where_needed;
  Unit unit;
  unit.src = pass_ == Pass::backward_data ? Transfer(inner.src, part.src, needed, library_)
                                          : Transfer(part.src, inner.src, needed, library_);
  unit.dst = pass_ == Pass::forward ? Transfer(inner.dst, part.dst, needed, library_)
                                    : Transfer(part.dst, inner.dst, needed, library_);
  if (unit.src.is_needed()) unit.src_area = area(bytes_of(inner.src));
  if (unit.dst.is_needed()) unit.dst_area = area(bytes_of(inner.dst));
  unit.scratch = area(std::max<std::int64_t>(core->scratch_bytes(), 1));
  unit.core = std::move(core);
  return unit;
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
  for (const Step& step : steps_) {
    const Tensors outer{.src = moved(tensors.src, first * src_step_ + step.src_bytes),
                        .weights = tensors.weights,
                        .bias = tensors.bias,
                        .dst = moved(tensors.dst, first * dst_step_ + step.dst_bytes)};
    run(units_[step.unit], outer, workspace);
  }
}

void Way::run(const Unit& unit, const Tensors& outer, std::byte* workspace) {
  const Tensors inner{.src = unit.src_area.in(workspace, outer.src),
                      .weights = weights_area_.in(workspace, outer.weights),
                      .bias = bias_area_.in(workspace, outer.bias),
                      .dst = unit.dst_area.in(workspace, outer.dst)};
  void* scratch = unit.scratch.in(workspace, nullptr);
  if (pass_ != Pass::backward_data) unit.src.run(library_, outer.src, inner.src);
  if (pass_ != Pass::forward) unit.dst.run(library_, outer.dst, inner.dst);
  const bool adds = pass_ == Pass::backward_weights && !std::exchange(is_first_, false);
  if (adds && !unit.core->can_accumulate()) {
    const Tensors further{.src = inner.src,
                          .weights = further_weights_.in(workspace, nullptr),
                          .bias = further_bias_.in(workspace, nullptr),
                          .dst = inner.dst};
    unit.core->run(further, scratch, false);
    add(further.weights, inner.weights, weight_count_);
    add(further.bias, inner.bias, bias_count_);
  } else {
    unit.core->run(inner, scratch, adds);
  }
  if (pass_ == Pass::forward) unit.dst.run(library_, inner.dst, outer.dst);
  if (pass_ == Pass::backward_data) unit.src.run(library_, inner.src, outer.src);
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

std::vector<std::unique_ptr<Way>> make_ways(const Problem& problem, const Cut& cut, const WayOptions& options,
                                            const Library& library) {
  const auto parts = parts_of(problem, cut);
  if (!parts) return {};
  // Slabs in the middle are alike, so few kernels do for all.
  std::vector<Key> keys;
  std::vector<std::size_t> core_of_part;
  std::vector<std::vector<std::unique_ptr<Core>>> cores;
  for (const Part& part : *parts) {
    const Key key = key_of(part.problem);
    const auto found = std::find(keys.begin(), keys.end(), key);
    core_of_part.push_back(static_cast<std::size_t>(found - keys.begin()));
    if (found != keys.end()) continue;
    keys.push_back(key);
    cores.push_back(options.ours_only ? make_our_cores(part.problem, options.core)
                                      : make_cores(part.problem, options.core, library));
  }
  std::vector<std::unique_ptr<Way>> ways;
  for (std::unique_ptr<Core>& first : cores.front()) {
    const std::string kind = first->kind();
    Way::Made made{.cut = cut, .parts = *parts, .core_of_part = core_of_part};
    made.cores.push_back(std::move(first));
    for (std::size_t i = 1; i < cores.size(); ++i) {
      for (std::unique_ptr<Core>& core : cores[i]) {
        const bool suits =
            core && core->kind() == kind && made.cores.size() == i &&
            dnnl_memory_desc_equal(&core->layouts().weights, &made.cores.front()->layouts().weights) != 0;
        if (suits) made.cores.push_back(std::move(core));
      }
    }
    if (made.cores.size() < cores.size()) continue;
    auto way = std::make_unique<Way>(problem, std::move(made), library);
    if (way->workspace_bytes() <= options.limit_bytes) ways.push_back(std::move(way));
  }
  return ways;
}

}  // namespace orthant::wrapper
