#include "orthant/comm/board.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/lifeline.hpp"
#include "orthant/comm/typed.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <cerrno>
#include <cstring>

namespace orthant::comm {
namespace {

constexpr std::size_t text_bytes = 60;

struct alignas(64) Slot {
  std::array<char, text_bytes> text;
  std::atomic<bool> has_left;
};

void* map(int file, std::size_t bytes) {
  const int flags = file < 0 ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED;
  void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
  return memory == MAP_FAILED ? nullptr : memory;
}

}  // namespace

struct Board::Shared {
  std::atomic<int> speaker;
  Slot slots[1];  ///< one per member
};

std::size_t Board::bytes() const { return sizeof(Shared) + members_.size() * sizeof(Slot); }

Board::Board(Comm& comm) : members_(neighbours(comm)) {
  while (members_[me_].rank != comm.rank()) ++me_;

  // The first rank of the machine creates the memory; the others open it through /proc.
  const int leader = members_.front().rank;
  int file = -1;
  if (comm.rank() == leader) {
    file = memfd_create("orthant-board", MFD_CLOEXEC);
    if (file >= 0 && ftruncate(file, static_cast<off_t>(bytes())) != 0) {
      close(file);
      file = -1;
    }
  }
  const int leaders_file = all_gather(comm, file)[static_cast<std::size_t>(leader)];
  if (comm.rank() != leader && leaders_file >= 0) file = open_file_of(members_.front().pid, leaders_file, O_RDWR);
  shared_ = static_cast<Shared*>(map(file, bytes()));
  // Without shared memory every rank prints its own error.
  if (shared_ == nullptr) shared_ = static_cast<Shared*>(map(-1, bytes()));
  comm.barrier();
  if (file >= 0) close(file);
  if (shared_ == nullptr)
    base::fail(base::Exit::does_not_fit, "cannot map {} bytes: {}", bytes(), std::strerror(errno));
}

Board::~Board() { munmap(shared_, bytes()); }

bool Board::claim() {
  int nobody = 0;
  const bool is_first = shared_->speaker.compare_exchange_strong(nobody, 1);
  if (const Lifeline* lifeline = lifeline_; is_first && lifeline != nullptr) lifeline->take_leave();
  return is_first;
}

void Board::take_leave() noexcept { shared_->slots[me_].has_left = true; }

bool Board::has_left(std::size_t member) const { return shared_->slots[member].has_left; }

void Board::show(const char* what) noexcept {
  char* text = shared_->slots[me_].text.data();
  if (what == nullptr) {
    text[0] = '\0';
  } else {
    std::strncpy(text, what, text_bytes - 1);
  }
}

std::string Board::shown(std::size_t member) const {
  std::array<char, text_bytes> text = shared_->slots[member].text;
  text.back() = '\0';
  return text.data();
}

}  // namespace orthant::comm
