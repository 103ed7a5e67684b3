#include "orthant/data/io/threads.hpp"

#include "orthant/tensor/distribution.hpp"

#include <thread>
#include <vector>

namespace orthant::data::io {

void in_threads(int threads, std::int64_t count,
                const std::function<void(std::int64_t begin, std::int64_t end, int thread)>& work) {
  const auto run = [&](int thread) {
    const std::int64_t begin = tensor::block_begin(count, threads, thread);
    const std::int64_t end = tensor::block_begin(count, threads, thread + 1);
    if (begin < end) work(begin, end, thread);
  };
  std::vector<std::jthread> others;
  for (int thread = 1; thread < threads; ++thread) others.emplace_back(run, thread);
  run(0);
}

}  // namespace orthant::data::io
