#pragma once

#include <sys/types.h>

#include <cstddef>
#include <cstdint>
#include <span>

namespace orthant::comm {

/// Memory that other processes of this machine can read. It has no name in any file system, so nothing stays behind.
class SharedPages {
 public:
  /// Puts zeroed pages in the place of `memory`, which begins at a page and has whole ones.
  explicit SharedPages(std::span<std::byte> memory);
  SharedPages(const SharedPages&) = delete;
  SharedPages& operator=(const SharedPages&) = delete;
  /// The memory stays mapped, here and where it is viewed.
  ~SharedPages();

  /// What a viewer needs to know beside the process.
  struct Place {
    int file = -1;
    std::int64_t offset = 0, bytes = 0;
    friend bool operator==(const Place&, const Place&) = default;
  };
  /// Of a piece of the memory.
  [[nodiscard]] Place place_of(const void* data, std::int64_t bytes) const;
  /// Gives back pages that nothing maps any more.
  void give_back(const Place& place) const;

 private:
  std::span<std::byte> memory_;
  int file_ = -1;
};

/// A piece of another process's SharedPages, to read.
class SharedView {
 public:
  SharedView() = default;
  SharedView(pid_t pid, const SharedPages::Place& place);
  SharedView(SharedView&& other) noexcept;
  SharedView& operator=(SharedView&& other) noexcept;
  ~SharedView();

  [[nodiscard]] const SharedPages::Place& place() const { return place_; }
  /// nullptr for one that was made of nothing.
  [[nodiscard]] const std::byte* data() const { return data_; }

 private:
  SharedPages::Place place_;
  const std::byte* data_ = nullptr;
};

/// Puts a piece of another process's SharedPages, whole pages, in the place of `memory`.
void map_in_place(pid_t pid, const SharedPages::Place& place, std::span<std::byte> memory);

}  // namespace orthant::comm
