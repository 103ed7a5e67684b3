#include "orthant/engine/arena.hpp"

#include "orthant/base/error.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <cstdint>

namespace orthant::engine {
namespace {

constexpr std::int64_t huge_page_bytes = std::int64_t{2} << 20;

}  // namespace

Arena::Arena(std::int64_t bytes) : bytes_(std::max<std::int64_t>(bytes, 1)) {
  const auto length = static_cast<std::size_t>(bytes_ + huge_page_bytes);
  void* memory = mmap(nullptr, length, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (memory == MAP_FAILED) {
    base::fail(base::Exit::does_not_fit,
               "there is no memory for an arena of {} bytes; use a smaller mini-batch or input", bytes_);
  }
  const auto address = reinterpret_cast<std::uintptr_t>(memory);
  const std::uintptr_t start = (address + huge_page_bytes - 1) / huge_page_bytes * huge_page_bytes;
  if (start > address) munmap(memory, start - address);
  const std::uintptr_t end = address + length;
  const std::uintptr_t used_end = (start + static_cast<std::uintptr_t>(bytes_) + 4095) / 4096 * 4096;
  if (end > used_end) munmap(reinterpret_cast<void*>(used_end), end - used_end);
  data_ = reinterpret_cast<std::byte*>(start);
  madvise(data_, used_end - start, MADV_HUGEPAGE);
}

Arena::~Arena() { munmap(data_, (static_cast<std::size_t>(bytes_) + 4095) / 4096 * 4096); }

}  // namespace orthant::engine
