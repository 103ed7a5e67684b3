#pragma once

#include <cstdint>

namespace orthant::kernels::dense {

/// A fully connected layer in memory: rows of `inputs` and of `outputs` floats per sample, weights [outputs][inputs].
struct Shape {
  std::int64_t samples = 0;
  std::int64_t inputs = 0;
  std::int64_t outputs = 0;
  std::int64_t src_step = 0;  ///< from sample to sample
  std::int64_t dst_step = 0;
};

/// A half-open range of samples, inputs or outputs.
struct Range {
  std::int64_t begin = 0;
  std::int64_t end = 0;
};

/// What one thread computes of a matrix.
struct Part {
  Range rows, columns;
};

}  // namespace orthant::kernels::dense
