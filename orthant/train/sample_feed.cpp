#include "orthant/train/sample_feed.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/watchdog.hpp"

#include <algorithm>
#include <chrono>

namespace orthant::train {
namespace {

using data::sets::Held;
using data::sets::Take;
using tensor::Box;

/// Collective. What all ranks take, in the order of the ranks.
std::vector<Take> all_takes(const std::vector<Slot>& slots, comm::Comm& comm) {
  std::vector<Take> takes;
  takes.reserve(slots.size());
  for (const Slot& slot : slots) {
    takes.push_back({.rank = comm.rank(),
                     .role = slot.role,
                     .n = slot.n,
                     .box = slot.box,
                     .index = static_cast<int>(takes.size())});
  }
  std::vector<Take> all;
  for (const std::vector<Take>& some : comm::gather(comm, std::span<const Take>(takes), 0))
    all.insert(all.end(), some.begin(), some.end());
  auto count = static_cast<std::int64_t>(all.size());
  comm::broadcast(comm, std::span(&count, 1), 0);
  all.resize(static_cast<std::size_t>(count));
  comm::broadcast(comm, std::span(all), 0);
  return all;
}

/// Collective. A tag that no exchange of any rank has.
int free_tag(const schedule::Schedule& schedule, comm::Comm& comm) {
  int last = 0;
  for (const schedule::Exchange& exchange : schedule.exchanges) last = std::max(last, exchange.tag);
  return comm::max(comm, last) + 1;
}

}  // namespace

SampleFeed::SampleFeed(const MiniBatches& batches, engine::Engine& engine, comm::Comm& comm, const FeedOptions& options)
    : engine_(engine),
      comm_(comm),
      steps_(options.steps),
      stream_(batches.stream()),
      slots_(slots_of(engine.schedule())),
      intake_(all_takes(slots_, comm), batches.mini_batch(), comm.size()),
      prefetch_(batches.dataset(), stream_.shape()),
      delivery_(comm, free_tag(engine.schedule(), comm)),
      ready_(slots_.size()),
      last_(options.first - 1) {
  decide_store(options);
  if (store_) comm::agree(comm, [&] { fill_store(options.first); });
  comm::agree(comm, [&] { staging_ = data::io::LargeBlock(intake_.bytes(comm.rank(), intake_.mini_batch())); });
}

void SampleFeed::decide_store(const FeedOptions& options) {
  const bool is_used_again = base::checked_mul(steps_, intake_.mini_batch()) > stream_.samples();
  if (!options.keep || !is_used_again) return;
  const std::int64_t most = comm::min(comm_, intake_.most_samples(comm_.rank(), options.limit_bytes));
  size_.samples = std::min(stream_.samples(), most);
  for (int rank = 0; rank < comm_.size(); ++rank) {
    const std::int64_t bytes = intake_.bytes(rank, size_.samples);
    size_.bytes = base::checked_add(size_.bytes, bytes);
    size_.largest_bytes = std::max(size_.largest_bytes, bytes);
    size_.set_bytes = base::checked_add(size_.set_bytes, intake_.bytes(rank, stream_.samples()));
  }
  if (size_.samples == 0) return;
  comm::agree(comm_, [&] {
    data::sets::Filling filling{.order = stream_.order(0),
                                .kept = size_.samples,
                                .shape = stream_.shape(),
                                .orientation = [this](std::int64_t sample) { return stream_.orientation(0, sample); }};
    store_.emplace(intake_, std::move(filling), comm_.rank());
  });
}

/// Reads what this rank would have kept before the step `first`.
void SampleFeed::fill_store(std::int64_t first) {
  const std::int64_t end = std::min(size_.samples, (first - 1) * intake_.mini_batch());
  for (std::int64_t position = 0; position < end; ++position) {
    const Draw draw = stream_.at(position);
    reads_.clear();
    for (const Take& take : intake_.of(position % intake_.mini_batch(), comm_.rank())) read(draw, take, true);
    prefetch_.start(std::move(reads_));
    prefetch_.wait([&](std::int64_t read_in, std::int64_t bytes) { epoch(read_in).file_bytes += bytes; });
  }
  reads_.clear();
}

EpochIo& SampleFeed::epoch(std::int64_t epoch) {
  const auto index = static_cast<std::size_t>(epoch);
  if (epochs_.size() <= index) epochs_.resize(index + 1);
  return epochs_[index];
}

Held SampleFeed::staging(const Take& take, const Box& box) const {
  return {{staging_.data() + take.offset_bytes, static_cast<std::size_t>(data::sets::box_bytes(box))}, box};
}

void SampleFeed::read(const Draw& draw, const Take& take, bool keep) {
  const Box box = stream_.source(draw, take.role, take.box);
  const Held to = keep ? store_->held(draw.sample, take) : staging(take, box);
  reads_.push_back({.epoch = draw.epoch, .sample = draw.sample, .role = take.role, .box = box, .into = to.bytes});
  ready_[static_cast<std::size_t>(take.index)] = {to.bytes, draw.orientation};
}

/// Fetches a box for this rank from memory, its own or that of other ranks.
void SampleFeed::fetch(const Draw& draw, const Take& take) {
  const Box box = stream_.source(draw, take.role, take.box);
  const std::vector<data::sets::Contribution> contributions =
      store_->contributions(draw.sample, take.role, box, take.rank);
  Ready& ready = ready_[static_cast<std::size_t>(take.index)];
  const Take& first = *contributions.front().holder;
  if (first.rank == take.rank && store_->kept_box(draw.sample, first) == box) {
    ready = {store_->held(draw.sample, first).bytes, draw.orientation};
    return;
  }
  const Held to = staging(take, box);
  ready = {to.bytes, draw.orientation};
  for (const data::sets::Contribution& contribution : contributions) {
    if (contribution.holder->rank == take.rank) {
      delivery_.add_copy(store_->held(draw.sample, *contribution.holder), to, contribution.box);
    } else {
      delivery_.add_receive(contribution.holder->rank, to, contribution.box);
    }
  }
}

/// Sends what this rank keeps, as `mine` of its takes, of a box that another rank wants.
void SampleFeed::give(const Draw& draw, const Take& take, std::span<const Take> mine) {
  const Box box = stream_.source(draw, take.role, take.box);
  // Few boxes have anything in common with those of this rank, and only for them it asks who keeps what.
  const bool concerns = std::any_of(mine.begin(), mine.end(), [&](const Take& one) {
    return one.role == take.role && !is_empty(tensor::intersection(store_->kept_box(draw.sample, one), box));
  });
  if (!concerns) return;
  for (const data::sets::Contribution& contribution : store_->contributions(draw.sample, take.role, box, take.rank)) {
    if (contribution.holder->rank != comm_.rank()) continue;
    delivery_.add_send(take.rank, store_->held(draw.sample, *contribution.holder), contribution.box);
    epoch(draw.epoch).store_bytes_sent += data::sets::box_bytes(contribution.box);
  }
}

void SampleFeed::prepare(std::int64_t step) {
  const std::int64_t begin = (step - 1) * intake_.mini_batch();
  const auto is_mine = [&](const Take& take) { return take.rank == comm_.rank(); };
  wants_own_samples_ = false;
  reads_.clear();
  for (std::int64_t n = 0; n < intake_.mini_batch(); ++n) {
    const std::span<const Take> takes = intake_.of(n);
    const Draw draw = stream_.at(begin + n);
    const std::optional<std::int64_t> kept = store_ ? store_->position(draw.sample) : std::nullopt;
    const bool is_there = kept && *kept < begin + n;
    if (is_there && *kept >= begin) wants_own_samples_ = true;
    std::span<const Take> mine;
    if (is_there) mine = intake_.of(*kept % intake_.mini_batch(), comm_.rank());
    for (const Take& take : takes) {
      if (!is_mine(take)) {
        if (!mine.empty()) give(draw, take, mine);
      } else if (is_there) {
        fetch(draw, take);
      } else {
        read(draw, take, kept.has_value());
      }
    }
  }
  prepared_ = step;
  prefetch_.start(std::move(reads_));
  if (!wants_own_samples_) delivery_.start();
}

void SampleFeed::wait() {
  prefetch_.wait([&](std::int64_t read_in, std::int64_t bytes) { epoch(read_in).file_bytes += bytes; });
  if (wants_own_samples_) delivery_.start();
  const comm::Waiting waiting(comm_.watchdog(), "samples from other ranks");
  delivery_.wait();
}

void SampleFeed::load(std::int64_t step) {
  if (step != last_ + 1)
    base::fail(base::Exit::internal, "samples of step {} are wanted after step {}; please report this", step, last_);
  if (prepared_ != step) prepare(step);
  const auto start = std::chrono::steady_clock::now();
  wait();
  last_ = step;
  const std::int64_t first = (step - 1) * intake_.mini_batch() / stream_.samples();
  epoch(first).wait_seconds += std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
  for (std::size_t i = 0; i < slots_.size(); ++i) put_box(slots_[i], ready_[i].orientation, ready_[i].bytes, engine_);
  if (step < steps_) prepare(step + 1);
}

void SampleFeed::finish() {
  prefetch_.drop();
  delivery_.drop();
}

std::vector<std::string> to_lines(const std::vector<EpochIo>& epochs) {
  std::vector<std::string> lines;
  lines.reserve(epochs.size());
  for (const EpochIo& io : epochs) {
    lines.push_back(fmt::format("data of epoch {}: {} bytes from files, {} bytes between ranks, waited {:.3f} s",
                                lines.size() + 1, io.file_bytes, io.store_bytes_sent, io.wait_seconds));
  }
  return lines;
}

std::vector<EpochIo> SampleFeed::totals() const {
  const auto count = static_cast<std::size_t>(comm::max(comm_, static_cast<std::int64_t>(epochs_.size())));
  std::vector<std::int64_t> bytes(2 * count);
  std::vector<double> seconds(count);
  for (std::size_t i = 0; i < epochs_.size(); ++i) {
    bytes[2 * i] = epochs_[i].file_bytes;
    bytes[2 * i + 1] = epochs_[i].store_bytes_sent;
    seconds[i] = epochs_[i].wait_seconds;
  }
  comm_.all_reduce(bytes, comm::Reduction::sum);
  comm_.all_reduce(seconds, comm::Reduction::max);
  std::vector<EpochIo> all;
  for (std::size_t i = 0; i < count; ++i)
    all.push_back({.file_bytes = bytes[2 * i], .store_bytes_sent = bytes[2 * i + 1], .wait_seconds = seconds[i]});
  return all;
}

}  // namespace orthant::train
