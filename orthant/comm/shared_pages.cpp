#include "orthant/comm/shared_pages.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/neighbours.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

namespace orthant::comm {
namespace {

using base::Exit;
using base::fail;

std::int64_t page_bytes() {
  static const std::int64_t bytes = sysconf(_SC_PAGESIZE);
  return bytes;
}

/// The number of bytes between the beginning of a page and the place in it: only whole pages can be mapped.
std::int64_t before(const SharedPages::Place& place) { return place.offset % page_bytes(); }

/// Maps whole pages for reading and writing at `where` or, if that is null, for reading at any address.
void* map_file_of(pid_t pid, const SharedPages::Place& place, void* where) {
  const int file = open_file_of(pid, place.file, where ? O_RDWR : O_RDONLY);
  void* memory = MAP_FAILED;
  if (file >= 0) {
    memory = mmap(where, static_cast<std::size_t>(place.bytes), where ? PROT_READ | PROT_WRITE : PROT_READ,
                  where ? MAP_SHARED | MAP_FIXED : MAP_SHARED, file, place.offset);
  }
  const int reason = errno;
  if (file >= 0) close(file);
  if (memory == MAP_FAILED) {
    fail(Exit::io, "cannot map the memory that process {} of this machine shares: {}; is it still there?", pid,
         std::strerror(reason));
  }
  return memory;
}

}  // namespace

SharedPages::SharedPages(std::span<std::byte> memory) : memory_(memory) {
  file_ = memfd_create("orthant-shared", MFD_CLOEXEC);
  if (file_ < 0 || ftruncate(file_, static_cast<off_t>(memory.size())) != 0 ||
      mmap(memory.data(), memory.size(), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED | MAP_NORESERVE, file_, 0) ==
          MAP_FAILED) {
    const int reason = errno;
    if (file_ >= 0) close(file_);
    fail(Exit::does_not_fit, "cannot allocate {} bytes of memory to share with the ranks of this machine: {}",
         memory.size(), std::strerror(reason));
  }
}

SharedPages::~SharedPages() { close(file_); }

SharedPages::Place SharedPages::place_of(const void* data, std::int64_t bytes) const {
  const std::int64_t offset = static_cast<const std::byte*>(data) - memory_.data();
  if (offset < 0 || offset + bytes > static_cast<std::int64_t>(memory_.size()))
    fail(Exit::internal, "{} bytes at {} are not in shared memory; please report this", bytes, offset);
  return {.file = file_, .offset = offset, .bytes = bytes};
}

void SharedPages::give_back(const Place& place) const {
  if (fallocate(file_, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE, place.offset, place.bytes) != 0)
    fail(Exit::io, "cannot give back {} bytes of shared memory: {}", place.bytes, std::strerror(errno));
}

SharedView::SharedView(pid_t pid, const SharedPages::Place& place) : place_(place) {
  const std::int64_t early = before(place);
  data_ = static_cast<const std::byte*>(map_file_of(
              pid, {.file = place.file, .offset = place.offset - early, .bytes = place.bytes + early}, nullptr)) +
          early;
}

SharedView::SharedView(SharedView&& other) noexcept
    : place_(other.place_), data_(std::exchange(other.data_, nullptr)) {}

SharedView& SharedView::operator=(SharedView&& other) noexcept {
  std::swap(place_, other.place_);
  std::swap(data_, other.data_);
  return *this;
}

SharedView::~SharedView() {
  if (data_ == nullptr) return;
  munmap(const_cast<std::byte*>(data_) - before(place_), static_cast<std::size_t>(before(place_) + place_.bytes));
}

void map_in_place(pid_t pid, const SharedPages::Place& place, std::span<std::byte> memory) {
  map_file_of(pid, place, memory.data());
}

}  // namespace orthant::comm
