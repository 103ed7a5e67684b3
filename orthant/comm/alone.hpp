#pragma once

#include "orthant/comm/comm.hpp"

namespace orthant::comm {

/// A job of one rank, without MPI.
class Alone final : public Comm {
 public:
  [[nodiscard]] int rank() const override { return 0; }
  [[nodiscard]] int size() const override { return 1; }

  std::unique_ptr<Transfer> bind(std::span<const Message> sends, std::span<const Message> receives,
                                 const char* kind) override;
  using Comm::bind;
  [[nodiscard]] std::map<std::string, Traffic> traffic() const override { return traffic_; }

  std::unique_ptr<Vote> make_vote() override;

  void broadcast(std::span<std::byte> bytes, int root) override;
  std::vector<std::vector<std::byte>> gather(std::span<const std::byte> bytes, int root) override;
  void all_gather(std::span<const std::byte> bytes, std::span<std::byte> all) override;
  void all_reduce(std::span<std::int64_t> /*values*/, Reduction /*reduction*/) override {}
  void all_reduce(std::span<double> /*values*/, Reduction /*reduction*/) override {}
  void barrier() override {}
  void send(std::span<const std::byte> bytes, int peer) override;
  void receive(std::span<std::byte> bytes, int peer) override;

 private:
  void make_progress() override {}

  std::map<std::string, Traffic> traffic_;
};

}  // namespace orthant::comm
