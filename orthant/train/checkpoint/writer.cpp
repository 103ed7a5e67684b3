#include "orthant/train/checkpoint/writer.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/comm/watchdog.hpp"
#include "orthant/train/checkpoint/hashed_file.hpp"

#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstring>
#include <filesystem>

namespace orthant::train::checkpoint {
namespace {

using Clock = std::chrono::steady_clock;
using base::Exit;
using base::fail;

double seconds_from(Clock::time_point begin) { return std::chrono::duration<double>(Clock::now() - begin).count(); }

/// Gives a file a second name. Its contents stay as they are when another file takes the first name.
void link_or_copy(const std::string& from, const std::string& to) {
  if (::link(from.c_str(), to.c_str()) == 0) return;
  std::error_code error;
  std::filesystem::copy_file(from, to, error);
  if (error) fail(Exit::io, "cannot copy '{}' to '{}': {}", from, to, error.message());
}

/// Adds the time in which it lives.
class Stopwatch {
 public:
  explicit Stopwatch(double& seconds) : seconds_(seconds) {}
  Stopwatch(const Stopwatch&) = delete;
  Stopwatch& operator=(const Stopwatch&) = delete;
  ~Stopwatch() { seconds_ += seconds_from(begin_); }

 private:
  double& seconds_;
  Clock::time_point begin_ = Clock::now();
};

}  // namespace

Writer::Writer(const engine::Session& session, const model::Optimizer& optimizer, std::int64_t keep)
    : session_(session), own_(session, optimizer), keep_(keep), directory_("") {
  bytes_ = comm::sum(session.comm(), own_.bytes());
}

Writer::~Writer() {
  if (work_.valid()) work_.wait();
}

void Writer::set_directory(const std::string& run_directory) {
  directory_ = Directory(comm::on_root(session_.comm(), [&] { return run_directory; }));
}

bool Writer::is_busy() const {
  return work_.valid() && work_.wait_for(std::chrono::seconds(0)) == std::future_status::timeout;
}

void Writer::start(const std::function<std::string()>& work) {
  // If no thread can be started, collect() and end() do the work.
  work_ = std::async(std::launch::async | std::launch::deferred, [work]() -> Result {
    try {
      return {.text = work()};
    } catch (...) {
      const comm::Failure failure = comm::current_failure();
      return {.code = failure.code, .error = failure.message, .text = ""};
    }
  });
}

/// Throws Error if there is not room for one more.
void Writer::check_space() const {
  std::error_code error;
  const std::filesystem::space_info space = std::filesystem::space(directory_.path(), error);
  if (error || space.capacity == 0 || static_cast<std::int64_t>(space.available) >= bytes_ + (bytes_ >> 6U)) return;
  fail(Exit::io, "a checkpoint needs {} bytes but '{}' has {} left; free some, or keep fewer checkpoints", bytes_,
       directory_.path(), space.available);
}

void Writer::begin(const State& state, const std::string& best) {
  const Stopwatch watch(waited_seconds_);
  begin_ = Clock::now();
  state_ = state;
  own_.copy(session_.engine());
  const int rank = session_.comm().rank();
  best_.clear();
  if (rank == 0 && !best.empty()) best_ = best_name;
  start([this, rank, best] {
    directory_.begin(state_.step);
    if (rank == 0) check_space();
    const std::string path = directory_.unfinished(state_.step);
    Written written = own_.write(path, fmt::format("shard-{:05}.safetensors", rank), state_);
    if (!best_.empty()) {
      link_or_copy(best, path + "/" + best_);
      written.files.push_back(hash_file(path, best_));
    }
    return to_json(written);
  });
  stage_ = Stage::writing;
}

/// All ranks have written; rank 0 gets what, and goes on if nobody failed.
void Writer::collect() {
  const Result result = work_.get();
  comm::agree_on(session_.comm(), {result.code, result.error});
  const auto texts = comm::gather(session_.comm(), std::span<const char>(result.text), 0);
  stage_ = Stage::committing;
  if (session_.comm().rank() != 0) return;
  start([this, texts] {
    Manifest manifest{.state = state_, .files = {}, .tensors = {}};
    for (std::size_t rank = 0; rank < texts.size(); ++rank)
      add(manifest, std::string(texts[rank].begin(), texts[rank].end()), fmt::format("checkpoint of rank {}", rank));
    directory_.commit(manifest);
    // Only what can be read again replaces older ones.
    static_cast<void>(directory_.read(state_.step));
    try {
      directory_.keep(keep_);
    } catch (const base::Error& error) {
      // The new one is complete all the same.
      return std::string(error.what());
    }
    return std::string();
  });
}

Outcome Writer::end() {
  const Result result = work_.valid() ? work_.get() : Result{};
  comm::agree_on(session_.comm(), {result.code, result.error});
  stage_ = Stage::idle;
  written_seconds_ += seconds_from(begin_);
  return {.step = state_.step, .error = "", .note = result.text, .code = Exit::done, .seconds = seconds_from(begin_)};
}

std::optional<Outcome> Writer::advance() {
  if (stage_ == Stage::idle) return std::nullopt;
  const Stopwatch watch(waited_seconds_);
  try {
    if (stage_ == Stage::committing) return end();
    collect();
    return std::nullopt;
  } catch (const comm::CollectiveError& error) {
    stage_ = Stage::idle;
    if (session_.comm().rank() == 0) {
      try {
        directory_.remove_unfinished(state_.step);
      } catch (const base::Error&) {
        // It is not taken for a checkpoint, and the next run tries again.
      }
    }
    return Outcome{
        .step = state_.step, .error = error.what(), .note = "", .code = error.code(), .seconds = seconds_from(begin_)};
  }
}

std::optional<Outcome> Writer::finish() {
  while (stage_ != Stage::idle) {
    {
      const Stopwatch watch(waited_seconds_);
      const comm::Waiting waiting(session_.comm().watchdog(), "checkpoint");
      if (work_.valid()) work_.wait();
    }
    session_.comm().barrier();
    if (const std::optional<Outcome> outcome = advance()) return outcome;
  }
  return std::nullopt;
}

}  // namespace orthant::train::checkpoint
