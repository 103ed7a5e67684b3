#pragma once

#include "orthant/comm/comm.hpp"

#include <atomic>

namespace orthant::comm {

/// Carries out a combination.
void combine(const Combination& combination);

/// Rounds that follow each other, each a transfer of its own.
class Rounds final : public Transfer {
 public:
  Rounds(Comm& comm, std::span<const Round> rounds, const char* kind);
  Rounds(const Rounds&) = delete;
  Rounds& operator=(const Rounds&) = delete;
  ~Rounds() override;

  void start() override;
  bool test() override;
  void wait() override;
  [[nodiscard]] std::string outstanding() const override;

  /// The transfer of the round that is under way.
  [[nodiscard]] const Transfer& current() const { return *transfers_[static_cast<std::size_t>(round_.load())]; }

 private:
  [[nodiscard]] int count() const { return static_cast<int>(transfers_.size()); }
  [[nodiscard]] bool is_done() const { return round_ == count(); }
  void leave();

  Comm& comm_;
  std::vector<std::unique_ptr<Transfer>> transfers_;    ///< per round
  std::vector<std::vector<Combination>> combinations_;  ///< per round
  std::atomic<int> round_;                              ///< under way; the watchdog's thread reads it
};

}  // namespace orthant::comm
