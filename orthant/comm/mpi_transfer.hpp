#pragma once

#include "orthant/comm/comm.hpp"

#include <mpi.h>

#include <atomic>

namespace orthant::comm {

/// Persistent requests of MPI.
class MpiTransfer final : public Transfer {
 public:
  struct Setting {
    MPI_Comm comm;
    std::int64_t piece_bytes;
    const char* kind;
    Traffic* traffic;  ///< lives longer than the transfer
    Watchdog* watchdog;
  };

  MpiTransfer(const Setting& setting, std::span<const Message> sends, std::span<const Message> receives);
  MpiTransfer(const MpiTransfer&) = delete;
  MpiTransfer& operator=(const MpiTransfer&) = delete;
  ~MpiTransfer() override;

  void start() override;
  bool test() override;
  void wait() override;
  [[nodiscard]] std::string outstanding() const override;

 private:
  /// What one request moves.
  struct Piece {
    bool is_send;
    int peer, tag, bytes;
  };

  void add(const Message& message, bool is_send);
  void complete(int index, const MPI_Status& status);

  Setting setting_;
  Traffic per_start_;  ///< what one start sends
  std::vector<MPI_Request> requests_;
  std::vector<Piece> pieces_;            ///< per request
  std::vector<std::atomic<bool>> done_;  ///< per request; the watchdog's thread reads it
  std::vector<int> indices_;             ///< MPI's answer: which requests ended
  std::vector<MPI_Status> statuses_;     ///< and how
  int active_ = 0;
};

}  // namespace orthant::comm
