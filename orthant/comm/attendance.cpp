#include "orthant/comm/attendance.hpp"

#include "orthant/base/format.hpp"
#include "orthant/comm/launch.hpp"
#include "orthant/comm/neighbours.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/random.h>
#include <sys/stat.h>
#include <unistd.h>

#include <atomic>
#include <cstdint>
#include <cstdio>
#include <cstdlib>

namespace orthant::comm {

struct Attendance::Shared {
  struct Slot {
    std::atomic<unsigned> marks;
    std::atomic<pid_t> pid;
    std::atomic<int> code;  ///< plus one; 0: not known
  };
  std::uint64_t key;  ///< tells this memory from that of a command that has the same number on another host
  Slot slots[1];      ///< one per rank

  static std::size_t bytes(int ranks) { return sizeof(Shared) + static_cast<std::size_t>(ranks) * sizeof(Slot); }
  static Shared* map(int file, int ranks) {
    void* memory = mmap(nullptr, bytes(ranks), PROT_READ | PROT_WRITE, MAP_SHARED, file, 0);
    return memory == MAP_FAILED ? nullptr : static_cast<Shared*>(memory);
  }
  /// The memory that an address names, or nullptr.
  static Shared* open(const std::string& address, int ranks);
};

Attendance::Attendance(int ranks) : ranks_(ranks), file_(memfd_create("orthant-attendance", MFD_CLOEXEC)) {
  if (file_ >= 0 && ftruncate(file_, static_cast<off_t>(Shared::bytes(ranks))) == 0)
    shared_ = Shared::map(file_, ranks);
  std::uint64_t key = 0;
  if (getrandom(&key, sizeof key, 0) < 0) key = static_cast<std::uint64_t>(getpid());
  if (shared_ != nullptr) shared_->key = key;
  address_ = fmt::format("{}:{}:{:x}", getpid(), file_, key);
}

Attendance::~Attendance() {
  if (shared_ != nullptr) munmap(shared_, Shared::bytes(ranks_));
  if (file_ >= 0) close(file_);
}

bool Attendance::has(int rank, Mark mark) const {
  return shared_ != nullptr && (shared_->slots[rank].marks & static_cast<unsigned>(mark)) != 0;
}

bool Attendance::any(Mark mark) const {
  for (int rank = 0; rank < ranks_; ++rank)
    if (has(rank, mark)) return true;
  return false;
}

pid_t Attendance::pid(int rank) const { return shared_ == nullptr ? 0 : shared_->slots[rank].pid.load(); }

int Attendance::code(int rank) const { return shared_ == nullptr ? -1 : shared_->slots[rank].code - 1; }

Attendance::Shared* Attendance::Shared::open(const std::string& address, int ranks) {
  pid_t pid = 0;
  int file = -1;
  std::uint64_t key = 0;
  if (std::sscanf(address.c_str(), "%d:%d:%lx", &pid, &file, &key) != 3) return nullptr;
  const int opened = open_file_of(pid, file, O_RDWR | O_NONBLOCK | O_NOCTTY);
  if (opened < 0) return nullptr;
  struct stat status {};
  const bool fits =
      fstat(opened, &status) == 0 && S_ISREG(status.st_mode) && status.st_size == static_cast<off_t>(bytes(ranks));
  Shared* shared = fits ? map(opened, ranks) : nullptr;
  close(opened);
  if (shared != nullptr && shared->key != key) {
    munmap(shared, bytes(ranks));
    return nullptr;
  }
  return shared;
}

/// The place of this rank in the memory of the command that started it.
struct Attended {
  Attendance::Shared::Slot* slot = nullptr;

  static const Attended& mine() {
    static const Attended attended;
    return attended;
  }

 private:
  Attended() {
    const char* address = std::getenv(Attendance::variable);
    const auto job = launched();
    if (address == nullptr || !job || job->rank >= job->size) return;
    Attendance::Shared* shared = Attendance::Shared::open(address, job->size);
    if (shared == nullptr) return;
    slot = &shared->slots[job->rank];
    slot->pid = getpid();
  }
};

void tell_launcher(Mark mark) {
  if (auto* slot = Attended::mine().slot) slot->marks |= static_cast<unsigned>(mark);
}

void tell_launcher_code(int code) {
  if (auto* slot = Attended::mine().slot) slot->code = code + 1;
}

}  // namespace orthant::comm
