#include "orthant/comm/mpi_transfer.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/mpi_comm.hpp"
#include "orthant/comm/watchdog.hpp"

#include <algorithm>

namespace orthant::comm {

using base::Exit;
using base::fail;

MpiTransfer::MpiTransfer(const Setting& setting, std::span<const Message> sends, std::span<const Message> receives)
    : setting_(setting) {
  announcements_.reserve(sends.size() + receives.size());  // MPI keeps pointers to its items
  // Receives come first, so that messages that arrive immediately are received straight into their memory.
  for (const Message& message : receives) add(message, false);
  for (const Message& message : sends) {
    add(message, true);
    if (message.bytes == 0) continue;
    ++per_start_.messages;
    (message.announced ? per_start_.announced_bytes : per_start_.bytes) += message.bytes;
  }
  done_ = std::vector<std::atomic<bool>>(requests_.size());
  for (std::atomic<bool>& done : done_) done = true;
  indices_.resize(requests_.size());
  statuses_.resize(requests_.size());
}

void MpiTransfer::add(const Message& message, bool is_send) {
  Piece piece{.is_send = is_send, .peer = message.peer, .tag = message.tag, .bytes = message.bytes, .own_bytes = 0};
  if (message.announced && message.bytes > 0) {
    std::int64_t& announcement = announcements_.emplace_back(message.bytes);
    piece.own_bytes = sizeof(announcement);
    if (!is_send) piece.announced = &announcement;
    return add_request(&announcement, piece);
  }
  for (std::int64_t begin = 0; begin < message.bytes; begin += setting_.piece_bytes) {
    piece.bytes = std::min(setting_.piece_bytes, message.bytes - begin);
    piece.own_bytes = static_cast<int>(piece.bytes);
    add_request(static_cast<std::byte*>(message.data) + begin, piece);
  }
}

void MpiTransfer::add_request(void* data, const Piece& piece) {
  MPI_Request request = MPI_REQUEST_NULL;
  const auto& [is_send, peer, tag, bytes, own_bytes, announced] = piece;
  if (is_send) {
    check_mpi(MPI_Send_init(data, own_bytes, MPI_BYTE, peer, tag, setting_.comm, &request), "MPI_Send_init");
  } else {
    check_mpi(MPI_Recv_init(data, own_bytes, MPI_BYTE, peer, tag, setting_.comm, &request), "MPI_Recv_init");
  }
  requests_.push_back(request);
  pieces_.push_back(piece);
}

MpiTransfer::~MpiTransfer() {
  // MPI itself has freed requests that ended in an error.
  for (MPI_Request& request : requests_)
    if (request != MPI_REQUEST_NULL) MPI_Request_free(&request);
}

void MpiTransfer::start() {
  if (active_ > 0)
    fail(Exit::internal, "{}: a transfer is started that is in flight; please report this", setting_.kind);
  if (requests_.empty()) return;
  for (std::atomic<bool>& done : done_) done.store(false, std::memory_order_relaxed);
  active_ = static_cast<int>(requests_.size());
  ++*setting_.in_flight;
  check_mpi(MPI_Startall(active_, requests_.data()), "MPI_Startall");
  setting_.traffic->messages += per_start_.messages;
  setting_.traffic->bytes += per_start_.bytes;
  setting_.traffic->announced_bytes += per_start_.announced_bytes;
}

bool MpiTransfer::test() {
  if (active_ == 0) return true;
  int count = 0;
  const int code =
      MPI_Testsome(static_cast<int>(requests_.size()), requests_.data(), &count, indices_.data(), statuses_.data());
  // With MPI_ERR_IN_STATUS each status has the error code of its request.
  if (code != MPI_ERR_IN_STATUS) check_mpi(code, "MPI_Testsome");
  if (count == MPI_UNDEFINED) count = 0;
  for (int i = 0; i < count; ++i) {
    const MPI_Status& status = statuses_[static_cast<std::size_t>(i)];
    if (code == MPI_ERR_IN_STATUS) check_mpi(status.MPI_ERROR, setting_.kind);
    complete(indices_[static_cast<std::size_t>(i)], status);
  }
  active_ -= count;
  if (active_ == 0) --*setting_.in_flight;
  return active_ == 0;
}

void MpiTransfer::complete(int index, const MPI_Status& status) {
  const auto i = static_cast<std::size_t>(index);
  const Piece& piece = pieces_[i];
  done_[i].store(true, std::memory_order_relaxed);
  if (piece.is_send) return;
  int bytes = 0;
  check_mpi(MPI_Get_count(&status, MPI_BYTE, &bytes), "MPI_Get_count");
  if (bytes != piece.own_bytes) refuse(piece, bytes);
  if (piece.announced && *piece.announced != piece.bytes) refuse(piece, *piece.announced);
}

void MpiTransfer::refuse(const Piece& piece, std::int64_t bytes) const {
  fail(Exit::disagreement, "{}: rank {} sent {} bytes where {} were expected (tag {}); do all ranks run the same plan?",
       setting_.kind, piece.peer, bytes, piece.bytes, piece.tag);
}

void MpiTransfer::wait() {
  if (test()) return;
  const Waiting waiting(setting_.watchdog, setting_.kind, this);
  while (!test()) setting_.owner->advance(this);
}

std::string MpiTransfer::outstanding() const {
  std::string text;
  std::size_t more = 0;
  for (std::size_t i = 0; i < pieces_.size(); ++i) {
    if (done_[i].load(std::memory_order_relaxed)) continue;
    const Piece& piece = pieces_[i];
    if (text.size() > 400) {
      ++more;
      continue;
    }
    text += fmt::format("{}{} rank {} (tag {}, {} bytes)", text.empty() ? "" : ", ",
                        piece.is_send ? "nothing taken by" : "nothing from", piece.peer, piece.tag, piece.bytes);
  }
  return more == 0 ? text : text + fmt::format(" and {} more", more);
}

}  // namespace orthant::comm
