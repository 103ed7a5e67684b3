#include "orthant/schedule/lowering.hpp"

namespace orthant::schedule {

std::int64_t Lowering::channel_count(int index) const {
  const tensor::Distribution& dst = at(geometry().cuts, index).dst();
  if (!tensor::takes_part(dst, rank_)) return 0;
  const tensor::Range range =
      tensor::block(dst, tensor::Dim::c, tensor::coordinates(dst.grid, rank_ - dst.first_rank).c);
  return range.hi - range.lo;
}

Port Lowering::port(const Value& value) const {
  if (value.empty()) return {};
  Port result{.buffer = value.buffer, .box = value.box, .layout = value.layout};
  result.box.lo.n += micro_batch_->first_sample;
  result.box.hi.n += micro_batch_->first_sample;
  return result;
}

bool Lowering::may_overwrite(int index) const {
  return at(state_->values, index).own.owned && analysis_.reader_count(index) == 1 &&
         !reads_own_output(analysis_.graph(), analysis_.producer(index));
}

void Lowering::zero_doubles(int index, int buffer, std::int64_t count) {
  if (count == 0) return;
  emitter_.emit(index, "zero_sums", model::FillTask{.dst = items_of(buffer, {0, 2 * count}).layout}, {buffer});
}

NodeValue Lowering::add_dst(const Unit& unit) {
  NodeValue value{.own = {}, .stored = emitter_.add_tensor(node(unit.out).name, stored(unit.out))};
  if (!tensor::is_empty(share(unit.out).owned)) value.own = part_of(value.stored, share(unit.out).owned);
  return value;
}

template <class Boxes>
const Route& Lowering::known_route(int node, int source, Boxes boxes) {
  const auto [entry, is_new] = own_->routes.try_emplace({node, source});
  if (is_new) entry->second = exchanges_.route(boxes());
  return entry->second;
}

const Route& Lowering::reading_route(const Unit& unit, std::size_t source) {
  return known_route(unit.main, static_cast<int>(source), [&] { return analysis_.reading(geometry(), unit, source); });
}

const Route& Lowering::partial_sums_route(int node) {
  return known_route(node, partial_sums, [&] { return Analysis::partial_sums(geometry(), node); });
}

const Route& Lowering::peaks_route(int node) {
  return known_route(node, peaks, [&] { return Analysis::peaks(geometry(), node); });
}

/// A single reader in place wants what it reads.
const Route& Lowering::filling_route(int node) {
  const std::vector<Geometry::Reader>& readers = at(geometry().readers, node);
  const auto boxes = [&] { return Analysis::filling(geometry(), node); };
  if (readers.size() != 1) return known_route(node, all_readers, boxes);
  return known_route(readers.front().node, static_cast<int>(readers.front().source), boxes);
}

Fetching Lowering::begin_fetch(const Unit& unit, std::size_t source) {
  const int index = unit.srcs[source];
  NodeValue& from = value(index);
  const Route& route = reading_route(unit, source);
  const Kind kind = analysis_.kind_of(unit, source);
  const std::string& name = node(index).name;
  const bool residual = source >= node(unit.main).srcs.size();
  if (residual || !at(geometry().in_place, unit.main)[source])
    return {.pending = {}, .tensor = exchanges_.collect(name + ".for." + node(unit.main).name, kind, from.own, route)};
  Fetching fetching;
  if (!from.filled) {
    from.filled = true;
    fetching.pending = exchanges_.fill(name + ".halo", kind, from, filling_route(index));
  }
  if (!route.wanted.empty()) fetching.tensor = as_tensor(part_of(from.stored, route.wanted.front()));
  return fetching;
}

Tensor Lowering::fetch(const Unit& unit, std::size_t source) {
  Fetching fetching = begin_fetch(unit, source);
  exchanges_.finish(std::move(fetching.pending));
  return fetching.tensor;
}

std::vector<Value> Lowering::take_gradients(int index, std::size_t most) {
  std::vector<Value>& list = at(state_->gradients, index);
  while (list.size() > most) {
    const Value b = list.back();
    list.pop_back();
    const Value a = list.back();
    if (a.empty()) continue;
    const Value sum = over(a, node(index).name + ".gradient");
    emitter_.emit(index, "sum_gradients", model::AddTask{.a = a.layout, .b = b.layout, .dst = sum.layout},
                  {a.buffer, b.buffer, sum.buffer});
    list.back() = sum;
  }
  return std::move(list);
}

Value Lowering::before_activation(const Unit& unit) {
  const model::Activation undone = activation(unit);
  if (undone.kind == model::ActivationKind::identity || at(state_->activation_undone, unit.out))
    return with_whole_pixels(unit, take_gradient(unit.out));
  const std::vector<Value> gradients = take_gradients(unit.out, 2);
  const Value first = with_whole_pixels(unit, gradients[0]);
  if (first.empty()) return first;
  const bool two = gradients.size() == 2;
  const Value& y = model::derivative_reads_src(undone.kind) ? source(unit).all : value(unit.out).own;
  const Value before = over(first, node(unit.out).name + ".gradient");
  const model::ActivationTask task{.pass = model::Pass::backward_data,
                                   .activation = undone,
                                   .src = before.layout,
                                   .dst = first.layout,
                                   .second = two ? gradients[1].layout : tensor::as_other,
                                   .y = y.layout};
  emitter_.emit(unit.out, "backward_data", task,
                {first.buffer, two ? gradients[1].buffer : -1, y.buffer, before.buffer});
  return before;
}

Value Lowering::with_whole_pixels(const Unit& unit, const Value& gradient) {
  if (gradient.empty() || has_whole_pixels(gradient)) return gradient;
  const Value copy = emitter_.add_tensor(node(unit.out).name + ".gradient", gradient.box);
  emitter_.copy(unit.main, "copy_gradient", gradient, copy);
  return copy;
}

Value Lowering::over(const Value& gradient, const std::string& name) {
  return gradient.owned && has_whole_pixels(gradient) ? gradient : emitter_.add_tensor(name, gradient.box);
}

Tensor Lowering::add_diff_src(const Unit& unit) {
  return emitter_.add_tensor(node(unit.srcs[0]).name + ".gradient", share(unit.main).sources[0]);
}

Returning Lowering::begin_return(const Unit& unit, std::size_t source, const Tensor& gradient) {
  return exchanges_.give_back(node(unit.srcs[source]).name + ".gradient", analysis_.kind_of(unit, source), gradient,
                              reading_route(unit, source));
}

void Lowering::pass_back(const Unit& unit, std::size_t source, const Tensor& gradient) {
  if (!needs_gradient(unit.srcs[source])) return;
  Returning back = begin_return(unit, source, gradient);
  exchanges_.finish(std::move(back.pending));
  pass_to(unit.srcs[source], back.own);
}

void Lowering::pass_to(int index, const Value& gradient) {
  if (needs_gradient(index)) at(state_->gradients, index).push_back(gradient);
}

}  // namespace orthant::schedule
