#pragma once

#include <omp.h>

#include <cstdint>

namespace orthant::kernels {

/// Items below which a second thread costs more than it gives.
inline constexpr std::int64_t items_worth_a_team = 8192;

/// Calls work(thread, team) in every thread of a team of `threads`; a lone thread starts no parallel region.
template <class Work>
void run_team(int threads, Work work) {
  if (threads <= 1) {
    work(0, 1);
    return;
  }
#pragma omp parallel num_threads(threads)
  work(omp_get_thread_num(), omp_get_num_threads());
}

/// Where part `index` of `parts` nearly equal parts of `total` begins.
inline std::int64_t share(std::int64_t total, int index, int parts) {
  return total / parts * index + total % parts * index / parts;
}

/// The team for `items` items of elementwise work.
inline int team_for(std::int64_t items, int threads) { return items < items_worth_a_team ? 1 : threads; }

}  // namespace orthant::kernels
