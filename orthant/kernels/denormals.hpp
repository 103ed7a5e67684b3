#pragma once

namespace orthant::kernels {

/// While it lives, the threads of kernels take numbers too small to be normal for zero.
class FlushToZero {
 public:
  explicit FlushToZero(int threads);
  ~FlushToZero();
  FlushToZero(const FlushToZero&) = delete;
  FlushToZero& operator=(const FlushToZero&) = delete;
  FlushToZero(FlushToZero&&) = delete;
  FlushToZero& operator=(FlushToZero&&) = delete;

 private:
  int threads_;
};

}  // namespace orthant::kernels
