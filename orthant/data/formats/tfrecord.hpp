#pragma once

#include <cstdint>
#include <string>
#include <vector>

namespace orthant::data::formats {

/// A sample of MLPerf's CosmoFlow: a cube of 16-bit counts (d, h, w, c) and its values.
struct CosmoflowRecord {
  std::int64_t size = 0, channels = 0;
  std::vector<std::int16_t> x;
  std::vector<float> y;
};

/// The samples of a TFRecord file (gzip or not) of tf.Examples with features `x` (bytes) and `y` (floats). Lengths and
/// checksums are checked. Throws Error for anything else.
std::vector<CosmoflowRecord> read_tfrecord(const std::string& path, std::int64_t channels = 4);

}  // namespace orthant::data::formats
