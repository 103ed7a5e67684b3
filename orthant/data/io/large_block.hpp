#pragma once

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <memory>
#include <span>

namespace orthant::data::io {

/// Uninitialised memory, in huge pages where the system has them. A page is allocated when it is first written.
class LargeBlock {
 public:
  LargeBlock() = default;
  /// Throws std::bad_alloc.
  explicit LargeBlock(std::int64_t bytes);

  [[nodiscard]] std::byte* data() const { return memory_.get(); }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }
  [[nodiscard]] std::span<std::byte> span() const { return {memory_.get(), static_cast<std::size_t>(bytes_)}; }

 private:
  struct Free {
    void operator()(std::byte* memory) const { std::free(memory); }
  };
  std::unique_ptr<std::byte, Free> memory_;
  std::int64_t bytes_ = 0;
};

}  // namespace orthant::data::io
