#include "orthant/comm/alone.hpp"

#include <algorithm>

namespace orthant::comm {
namespace {

/// One rank has no peers, so there is nothing to move.
class Nothing final : public Transfer {
 public:
  void start() override {}
  bool test() override { return true; }
  void wait() override {}
  [[nodiscard]] std::string outstanding() const override { return ""; }
};

/// One rank has the only voice.
class OwnVote final : public Vote {
 public:
  void start(unsigned mine) override { mine_ = mine; }
  unsigned result() override { return mine_; }

 private:
  unsigned mine_ = 0;
};

}  // namespace

std::unique_ptr<Transfer> Alone::bind(std::span<const Message> sends, std::span<const Message> receives,
                                      const char* kind) {
  check_messages(*this, sends, receives, kind);
  traffic_[kind];
  return std::make_unique<Nothing>();
}

std::unique_ptr<Vote> Alone::make_vote() { return std::make_unique<OwnVote>(); }

void Alone::broadcast(std::span<std::byte> /*bytes*/, int root) { check_root(*this, root, "broadcast"); }

std::vector<std::vector<std::byte>> Alone::gather(std::span<const std::byte> bytes, int root) {
  check_root(*this, root, "gather");
  return {std::vector<std::byte>(bytes.begin(), bytes.end())};
}

void Alone::all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) {
  std::copy(bytes.begin(), bytes.end(), all.begin());
}

void Alone::send(std::span<const std::byte> /*bytes*/, int peer) { check_peer(*this, peer, "send"); }
void Alone::receive(std::span<std::byte> /*bytes*/, int peer) { check_peer(*this, peer, "receive"); }

}  // namespace orthant::comm
