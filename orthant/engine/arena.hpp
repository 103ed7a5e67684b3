#pragma once

#include <cstddef>
#include <cstdint>

namespace orthant::engine {

/// One region of zeroed memory, given back on destruction.
class Arena {
 public:
  explicit Arena(std::int64_t bytes);
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;
  ~Arena();
  [[nodiscard]] std::byte* data() const { return data_; }
  [[nodiscard]] std::int64_t bytes() const { return bytes_; }

 private:
  std::byte* data_ = nullptr;
  std::int64_t bytes_ = 0;
};

}  // namespace orthant::engine
