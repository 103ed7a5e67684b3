#include "orthant/wrapper/workspace.hpp"

#include <pthread.h>
#include <sys/mman.h>

#include <algorithm>
#include <new>

namespace orthant::wrapper {
namespace {

/// As much of a workspace stays.
constexpr std::int64_t kept_bytes = std::int64_t{4} << 20;
constexpr std::chrono::milliseconds patience{30};

std::int64_t rounded(std::int64_t bytes) {
  constexpr std::int64_t page = 4096;
  return (std::max<std::int64_t>(bytes, 1) + page - 1) / page * page;
}

std::byte* map(std::int64_t bytes) {
  void* data =
      mmap(nullptr, static_cast<std::size_t>(bytes), PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (data == MAP_FAILED) throw std::bad_alloc();
  madvise(data, static_cast<std::size_t>(bytes), MADV_HUGEPAGE);  // where the system has none, that is all right
  return static_cast<std::byte*>(data);
}

}  // namespace

Workspaces::Block Workspaces::take(std::int64_t bytes) {
  Block block;
  {
    const std::lock_guard lock(mutex_);
    if (!free_.empty()) {
      block = free_.back();
      free_.pop_back();
    }
  }
  if (block.bytes < bytes) {
    if (block.data) munmap(block.data, static_cast<std::size_t>(block.bytes));
    block = {.data = map(rounded(bytes)), .bytes = rounded(bytes)};
  }
  block.used_bytes = std::max(block.used_bytes, bytes);
  return block;
}

void Workspaces::give_back(Block block) {
  const std::lock_guard lock(mutex_);
  free_.push_back(block);
  last_use_ = Clock::now();
  if (is_large_ || block.used_bytes <= kept_bytes) return;
  is_large_ = true;
  if (!has_thread_) start_thread();
  used_.notify_one();
}

/// The thread ends with the process. A child that is forked has none, and keeps its workspaces.
void Workspaces::start_thread() {
  pthread_attr_t attributes;
  if (pthread_attr_init(&attributes) != 0) return;
  pthread_attr_setdetachstate(&attributes, PTHREAD_CREATE_DETACHED);
  pthread_t thread{};
  const auto run = [](void* self) -> void* {
    static_cast<Workspaces*>(self)->watch();
    return nullptr;
  };
  has_thread_ = pthread_create(&thread, &attributes, run, this) == 0;
  pthread_attr_destroy(&attributes);
}

void Workspaces::watch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    used_.wait(lock, [&] { return is_large_; });
    const Clock::time_point due = last_use_ + patience;
    if (Clock::now() >= due) {
      release();
    } else {
      used_.wait_until(lock, due, [] { return false; });
    }
  }
}

void Workspaces::release() {
  is_large_ = false;
  for (Block& block : free_) {
    if (block.used_bytes <= kept_bytes) continue;
    madvise(block.data + kept_bytes, static_cast<std::size_t>(block.bytes - kept_bytes), MADV_DONTNEED);
    block.used_bytes = kept_bytes;
  }
}

void advise_large_pages(void* data, std::int64_t bytes) {
  // malloc never serves so much from a heap that it shares with other blocks.
  constexpr std::int64_t least = std::int64_t{32} << 20;
  constexpr std::uintptr_t page = 4096;
  if (bytes < least) return;
  const auto begin = (reinterpret_cast<std::uintptr_t>(data) + page - 1) / page * page;
  const auto end = (reinterpret_cast<std::uintptr_t>(data) + static_cast<std::uintptr_t>(bytes)) / page * page;
  madvise(reinterpret_cast<void*>(begin), end - begin, MADV_HUGEPAGE);
}

}  // namespace orthant::wrapper
