#pragma once

#include <cstdint>
#include <functional>

namespace orthant::data::io {

/// Calls work(begin, end, thread) for as many ranges of [0, count) as there are threads, at the same time; returns when
/// all are done. `work` must not throw.
void in_threads(int threads, std::int64_t count,
                const std::function<void(std::int64_t begin, std::int64_t end, int thread)>& work);

}  // namespace orthant::data::io
