#include "orthant/comm/rounds.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"

#include <algorithm>
#include <cstring>

namespace orthant::comm {
namespace {

template <class Item>
void add(const Combination& combination) {
  auto* __restrict dst = static_cast<Item*>(combination.dst);
  const auto* __restrict src = static_cast<const Item*>(combination.src);
  for (std::int64_t i = 0; i < combination.count; ++i) dst[i] += src[i];
}

}  // namespace

std::int64_t bytes_of(Number type) { return type == Number::float32 ? sizeof(float) : sizeof(double); }

void combine(const Combination& combination) {
  if (!combination.accumulate) {
    std::memcpy(combination.dst, combination.src,
                static_cast<std::size_t>(combination.count * bytes_of(combination.type)));
    return;
  }
  combination.type == Number::float32 ? add<float>(combination) : add<double>(combination);
}

Rounds::Rounds(Comm& comm, std::span<const Round> rounds, const char* kind) : comm_(comm) {
  for (const Round& round : rounds) {
    transfers_.push_back(round.collective ? comm.bind(*round.collective, kind)
                                          : comm.bind(round.sends, round.receives, kind));
    combinations_.push_back(round.combinations);
  }
  round_ = count();
  comm_.in_flight_.reserve(comm_.in_flight_.size() + 16);  // starting must not allocate
}

Rounds::~Rounds() { leave(); }

void Rounds::leave() { std::erase(comm_.in_flight_, this); }

void Rounds::start() {
  if (!is_done()) base::fail(base::Exit::internal, "rounds are started that are in flight; please report this");
  if (transfers_.empty()) return;
  for (const auto& transfer : transfers_) transfer->take_turn();
  transfers_.front()->start();
  round_ = 0;
  comm_.in_flight_.push_back(this);
}

bool Rounds::test() {
  while (!is_done()) {
    const auto round = static_cast<std::size_t>(round_.load());
    if (!transfers_[round]->test()) return false;
    std::for_each(combinations_[round].begin(), combinations_[round].end(), combine);
    if (round + 1 < transfers_.size()) transfers_[round + 1]->start();
    ++round_;
    if (is_done()) leave();
  }
  return true;
}

void Rounds::wait() {
  while (!test()) transfers_[static_cast<std::size_t>(round_.load())]->wait();
}

std::string Rounds::outstanding() const {
  const int round = round_;
  if (round == count()) return "";
  return fmt::format("round {} of {}: {}", round + 1, count(),
                     transfers_[static_cast<std::size_t>(round)]->outstanding());
}

}  // namespace orthant::comm
