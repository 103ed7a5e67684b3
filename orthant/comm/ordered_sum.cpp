#include "orthant/comm/ordered_sum.hpp"

#include <vector>

namespace orthant::comm {

void sum_in_order(Comm& comm, std::span<double> numbers) {
  // Sums are handed on from rank to rank, so that none has to keep the numbers of all.
  std::vector<double> sums(numbers.size());
  if (comm.rank() > 0) comm.receive(std::as_writable_bytes(std::span(sums)), comm.rank() - 1);
  for (std::size_t i = 0; i < sums.size(); ++i) numbers[i] = sums[i] + numbers[i];
  const int last = comm.size() - 1;
  if (comm.rank() < last) comm.send(std::as_bytes(numbers), comm.rank() + 1);
  comm.broadcast(std::as_writable_bytes(numbers), last);
}

}  // namespace orthant::comm
