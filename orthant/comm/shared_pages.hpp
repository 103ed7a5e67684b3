#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orthant::comm {

/// Memory that other processes of this machine can read. It has no name in any file system, so nothing is left behind.
class SharedPages {
 public:
  /// Replaces `memory`, which must consist of whole pages, by zeroed pages that can be shared.
  explicit SharedPages(std::span<std::byte> memory);
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  /// The memory stays mapped in this process and in those that view it.
  ~SharedPages();

  /// What another process needs to know, besides the pid, in order to view the memory.
  struct Place {
    int file = -1;
    std::int64_t offset = 0, bytes = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  /// The place of a range of the memory.
  [[nodiscard]] Place place_of(const void* data, std::int64_t bytes) const;
  /// Returns pages that nothing maps any more to the system.
  void give_back(const Place& place) const;

 private:
  std::span<std::byte> memory_;
  int file_ = -1;
};

/// A read-only view of a range of another process's SharedPages.
class SharedView {
 public:
  SharedView() = default;
  SharedView(pid_t pid, const SharedPages::Place& place);
  SharedView(SharedView&& other) noexcept;
  SharedView& operator=(SharedView&& other) noexcept;
  ~SharedView();

  [[nodiscard]] const SharedPages::Place& place() const { return place_; }
  /// nullptr for a default-constructed view.
  [[nodiscard]] const std::byte* data() const { return data_; }

 private:
  SharedPages::Place place_;
  const std::byte* data_ = nullptr;
};

/// Replaces `memory` by whole pages of another process's SharedPages, to read and write.
void map_in_place(pid_t pid, const SharedPages::Place& place, std::span<std::byte> memory);

}  // namespace orthant::comm
