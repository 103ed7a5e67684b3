#include "orthant/calibrate/links.hpp"

#include "orthant/calibrate/median.hpp"
#include "orthant/calibrate/pair.hpp"

#include <array>
#include <chrono>
#include <thread>

namespace orthant::calibrate {
namespace {

using engine::clock_seconds;

constexpr int repeats = 7;

/// Of a transfer that both begin and wait for; the median of several.
double exchange_seconds(Pair& pair, comm::Transfer& transfer, int times) {
  std::vector<double> seconds;
  for (int i = 0; i <= times; ++i) {
    pair.meet();
    const double start = clock_seconds();
    transfer.start();
    transfer.wait();
    if (i > 0) seconds.push_back(pair.larger(clock_seconds() - start));
  }
  return median(seconds);
}

/// Half of the time that a byte takes there and back.
double latency(Pair& pair) {
  constexpr int round_trips = 300;
  const auto out = pair.bind(1, 0, 1), in = pair.bind(0, 1, 1);
  std::vector<double> seconds;
  pair.meet();
  for (int i = 0; i < round_trips; ++i) {
    const double start = clock_seconds();
    comm::Transfer& begins = pair.is_first() ? *out : *in;
    comm::Transfer& ends = pair.is_first() ? *in : *out;
    for (comm::Transfer* one : {&begins, &ends}) {
      one->start();
      one->wait();
    }
    seconds.push_back((clock_seconds() - start) / 2);
  }
  return median(seconds);
}

/// What one more small message adds, at each of its ends.
double message_seconds(Pair& pair) {
  constexpr int many = 33, times = 51;
  const auto one = pair.bind(1, 1, 1);
  const double single = exchange_seconds(pair, *one, times);
  const auto all = pair.bind(many, many, 1);
  return std::max(0.0, (exchange_seconds(pair, *all, times) - single) / (2 * (many - 1)));
}

double both_ways_speed(Pair& pair) {
  struct Messages {
    int count = 0;
    std::int64_t bytes = 0;
  };
  std::vector<SizedTime> times;
  for (const Messages one : {Messages{1, 1 << 20}, {1, 4 << 20}, {8, 1 << 20}, {4, 4 << 20}, {2, 16 << 20}}) {
    const auto transfer = pair.bind(one.count, one.count, one.bytes);
    times.push_back({static_cast<double>(one.count * one.bytes), exchange_seconds(pair, *transfer, repeats)});
  }
  return fitted_speed(times);
}

/// The largest power of two that a sender has sent when the receiver has not even asked for it.
std::int64_t eager_bytes(Pair& pair) {
  constexpr std::chrono::milliseconds silence{8};
  constexpr double patience = 0.004;
  std::int64_t eager = 0;
  for (std::int64_t bytes = 256; bytes <= 4 << 20; bytes *= 2) {
    const auto transfer = pair.is_first() ? pair.bind(1, 0, bytes) : pair.bind(0, 1, bytes);
    pair.meet();
    double done = 0;
    if (pair.is_first()) {
      transfer->start();
      for (const double start = clock_seconds(); done == 0 && clock_seconds() - start < patience;)
        done = transfer->test() ? 1 : 0;
    } else {
      std::this_thread::sleep_for(silence);
      transfer->start();
    }
    transfer->wait();
    if (pair.larger(done) == 0) break;
    eager = bytes;
  }
  return eager;
}

/// Arithmetic in the first-level cache, in pieces of about a millisecond.
class Work {
 public:
  Work() {
    constexpr double piece_seconds = 1e-3;
    rounds_ = 1000;
    for (int i = 0; i < 5; ++i)
      rounds_ = std::max(1, static_cast<int>(static_cast<double>(rounds_) * piece_seconds / seconds_of_piece()));
  }
  void piece() {
    for (int round = 0; round < rounds_; ++round) {
      for (float& number : numbers_) number = number * 0.999F + 0.001F;
    }
  }
  double seconds_of_piece() {
    std::vector<double> seconds;
    for (int i = 0; i < 9; ++i) {
      const double start = clock_seconds();
      piece();
      seconds.push_back(clock_seconds() - start);
    }
    return median(seconds);
  }

 private:
  std::array<float, 2048> numbers_{};
  int rounds_ = 1;
};

/// What this rank's computing loses to a transfer that it looks after between pieces of work.
double lost_seconds(Pair& pair, Work& work, comm::Transfer& transfer) {
  std::vector<double> lost;
  for (int i = 0; i < repeats; ++i) {
    const double before = work.seconds_of_piece();
    pair.meet();
    const double start = clock_seconds();
    transfer.start();
    int pieces = 0;
    do {
      work.piece();
      ++pieces;
    } while (!transfer.test());
    const double spent = clock_seconds() - start;
    pair.meet();
    const double piece = (before + work.seconds_of_piece()) / 2;
    lost.push_back(spent - pieces * piece);
  }
  return std::max(0.0, median(lost));
}

/// Per byte, of the sender and of the receiver: the mean of both directions.
void measure_stolen_time(Pair& pair, oracle::Link& link) {
  constexpr int messages = 8;
  constexpr std::int64_t message_bytes = 4 << 20;
  Work work;
  double sender = 0, receiver = 0;
  for (const bool first_sends : {true, false}) {
    const bool sends = first_sends == pair.is_first();
    const auto transfer = sends ? pair.bind(messages, 0, message_bytes) : pair.bind(0, messages, message_bytes);
    const double lost = lost_seconds(pair, work, *transfer);
    sender += pair.larger(sends ? lost : 0);
    receiver += pair.larger(sends ? 0 : lost);
  }
  link.sender_seconds_per_byte = sender / (2.0 * messages * message_bytes);
  link.receiver_seconds_per_byte = receiver / (2.0 * messages * message_bytes);
}

double poll_seconds(Pair& pair) {
  constexpr int calls = 2000;
  const auto transfer = pair.is_first() ? pair.bind(0, 1, 1) : pair.bind(1, 0, 1);
  pair.meet();
  double seconds = 0;
  if (pair.is_first()) {
    transfer->start();
    const double start = clock_seconds();
    for (int i = 0; i < calls; ++i) pair.comm().progress();
    seconds = (clock_seconds() - start) / calls;
    pair.meet();
  } else {
    pair.meet();
    transfer->start();
  }
  transfer->wait();
  return pair.larger(seconds);
}

/// Runs `measure` on the two ranks, and gives what the first of them found to all.
template <class Value, class Measure>
Value on_pair(comm::Comm& comm, int first, int second, Measure measure) {
  Value value{};
  if (comm.rank() == first || comm.rank() == second) {
    const bool is_first = comm.rank() == first;
    Pair pair(comm, is_first ? second : first, is_first);
    value = measure(pair);
  }
  comm::broadcast(comm, std::span(&value, 1), first);
  return value;
}

}  // namespace

double fitted_speed(const std::vector<SizedTime>& times) {
  // Least squares of (a + b x - t) / t.
  double w = 0, wx = 0, wxx = 0, wt = 0, wxt = 0;
  for (const SizedTime& one : times) {
    const double weight = 1 / (one.seconds * one.seconds);
    w += weight;
    wx += weight * one.bytes;
    wxx += weight * one.bytes * one.bytes;
    wt += weight * one.seconds;
    wxt += weight * one.bytes * one.seconds;
  }
  const double slope = (w * wxt - wx * wt) / (w * wxx - wx * wx);
  return slope > 0 ? 1 / slope : times.back().bytes / times.back().seconds;
}

oracle::Link measure_link(comm::Comm& comm, int first, int second) {
  struct Figures {
    double latency = 0, speed = 0, message = 0, sender = 0, receiver = 0;
    std::int64_t eager = 0;
  };
  const auto found = on_pair<Figures>(comm, first, second, [](Pair& pair) {
    oracle::Link link;
    measure_stolen_time(pair, link);
    return Figures{latency(pair),
                   both_ways_speed(pair),
                   message_seconds(pair),
                   link.sender_seconds_per_byte,
                   link.receiver_seconds_per_byte,
                   eager_bytes(pair)};
  });
  return {.latency_seconds = found.latency,
          .bytes_per_second = found.speed,
          .message_seconds = found.message,
          .sender_seconds_per_byte = found.sender,
          .receiver_seconds_per_byte = found.receiver,
          .eager_bytes = found.eager,
          .source = "measured by orthant calibrate"};
}

double measure_poll_seconds(comm::Comm& comm, int first, int second) {
  return on_pair<double>(comm, first, second, [](Pair& pair) { return poll_seconds(pair); });
}

}  // namespace orthant::calibrate
