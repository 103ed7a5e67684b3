#include "orthant/wrapper/workspace.hpp"

#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace orthant::wrapper {
namespace {

std::int64_t rounded(std::int64_t bytes) {
  constexpr std::int64_t page = 4096;
  return (std::max<std::int64_t>(bytes, 1) + page - 1) / page * page;
}

std::byte* map(std::int64_t bytes) {
  void* data = mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // where the system has none, that is all right
  return static_cast<std::byte*>(data);
}

void unmap(std::byte* data, std::int64_t bytes) {
  if (data) munmap(data, static_cast<std::size_t>(bytes));
}

}  // namespace

Workspaces::~Workspaces() {
  for (const Loan::Block& block : free_) unmap(block.data, block.bytes);
}

Workspaces::Loan::Block Workspaces::take(std::int64_t bytes) {
  Loan::Block block;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      block = free_.back();
      free_.pop_back();
    }
  }
  if (block.bytes >= bytes) return block;
  unmap(block.data, block.bytes);
  return {map(rounded(bytes)), rounded(bytes)};
}

void Workspaces::give_back(Loan::Block block) {
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
}

}  // namespace orthant::wrapper
