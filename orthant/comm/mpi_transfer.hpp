#pragma once

#include "orthant/comm/neighbours.hpp"
#include "orthant/comm/shared_pages.hpp"

#include <mpi.h>

#include <atomic>

namespace orthant::comm {

/// Persistent requests of MPI. What stays in the sender's memory is announced by a note of where it lies.
class MpiTransfer final : public Transfer {
 public:
  struct Setting {
    MPI_Comm comm;
    std::span<const Neighbour> neighbours;  ///< ranks that can read each other's memory; it outlives the transfer
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
  [[nodiscard]] const void* arrived(std::size_t receive) const override;
  [[nodiscard]] std::string outstanding() const override;

 private:
  /// What one request moves.
  struct Piece {
    bool is_send;
    int peer, tag;
    std::int64_t bytes;  ///< of the message, or of its piece
    int own_bytes;       ///< of the request: those, or of a note
    int receive = -1;    ///< of receives_, if this is its note
  };
  struct Receive {
    const void* data;                   ///< where it was bound to
    const Neighbour* sender = nullptr;  ///< if it stays there
    SharedPages::Place note{};
    SharedView view{};
  };

  void add(const Message& message, bool is_send);
  void add_request(void* data, const Piece& piece);
  void complete(int index, const MPI_Status& status);
  [[noreturn]] void refuse(const Piece& piece, std::int64_t bytes) const;
  [[nodiscard]] const Neighbour* keeper(const Message& message) const;

  Setting setting_;
  Traffic per_start_;  ///< what one start sends
  std::vector<MPI_Request> requests_;
  std::vector<Piece> pieces_;              ///< per request
  std::vector<SharedPages::Place> notes_;  ///< that are sent
  std::vector<Receive> receives_;
  char word_ = 0;                        ///< that something is there
  std::vector<std::atomic<bool>> done_;  ///< per request; the watchdog's thread reads it
  std::vector<int> indices_;             ///< MPI's answer: which requests ended
  std::vector<MPI_Status> statuses_;     ///< and how
  int active_ = 0;
};

}  // namespace orthant::comm
