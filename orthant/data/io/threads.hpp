#pragma once

#include <cstdint>
#include <functional>

namespace orthant::data::io {

/// Cuts [0, count) into as many ranges as there are threads, calls work(begin, end, thread) for all of them in
/// parallel, and returns when all are done. `work` must not throw.
void in_threads(int threads, std::int64_t count,
                const std::function<void(std::int64_t begin, std::int64_t end, int thread)>& work);

}  // namespace orthant::data::io
