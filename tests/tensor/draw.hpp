#pragma once

#include <cstdint>
#include <random>

namespace orthant::test {

/// Random whole numbers, the same on every machine.
class Draw {
 public:
  explicit Draw(unsigned seed) : engine_(seed) {}

  /// One of least..most, both included.
  std::int64_t operator()(std::int64_t least, std::int64_t most) {
    return least + static_cast<std::int64_t>(engine_() % static_cast<std::uint64_t>(most - least + 1));
  }
  int number(int least, int most) { return static_cast<int>((*this)(least, most)); }

 private:
  std::mt19937_64 engine_;
};

}  // namespace orthant::test
