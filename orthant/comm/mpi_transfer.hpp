#pragma once

#include "orthant/comm/comm.hpp"

#include <mpi.h>

#include <atomic>

namespace orthant::comm {

/// A transfer made of persistent requests of MPI. For a message that stays where it is, only its number of bytes is
/// sent, as an announcement.
class MpiTransfer final : public Transfer {
 public:
  struct Setting {
    MPI_Comm comm;
    std::int64_t piece_bytes;
    const char* kind;
    Traffic* traffic;  ///< must outlive the transfer
    Watchdog* watchdog;
    int* in_flight;  ///< how many transfers of the rank are; must outlive the transfer
    Comm* owner;     ///< whose other transfers move along while this one is waited for
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
  /// What one request sends or receives.
  struct Piece {
    bool is_send;
    int peer, tag;
    std::int64_t bytes;                       ///< of the message, or of its piece
    int own_bytes;                            ///< of the request: the same, or the size of the announcement
    const std::int64_t* announced = nullptr;  ///< where the announced number of bytes is received
  };

  void add(const Message& message, bool is_send);
  void add_request(void* data, const Piece& piece);
  void complete(int index, const MPI_Status& status);
  [[noreturn]] void refuse(const Piece& piece, std::int64_t bytes) const;

  Setting setting_;
  Traffic per_start_;  ///< what one start sends
  std::vector<MPI_Request> requests_;
  std::vector<Piece> pieces_;                ///< per request
  std::vector<std::int64_t> announcements_;  ///< sent and received
  std::vector<std::atomic<bool>> done_;      ///< per request; the watchdog's thread reads it
  std::vector<int> indices_;                 ///< set by MPI: the requests that ended
  std::vector<MPI_Status> statuses_;         ///< set by MPI: how they ended
  int active_ = 0;
};

}  // namespace orthant::comm
