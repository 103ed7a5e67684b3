#include "orthant/train/run_directory.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/new_file.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/data/io/set_directory.hpp"

#include <fcntl.h>

#include <array>
#include <cerrno>
#include <charconv>
#include <cstring>
#include <ctime>
#include <filesystem>

namespace orthant::train {
namespace {

namespace fs = std::filesystem;
using base::Exit;
using base::fail;

/// Makes the directory; false if it was there before.
bool make_directory(const std::string& path) {
  std::error_code error;
  const bool made = fs::create_directories(path, error);
  if (error || !fs::is_directory(path))
    fail(Exit::io, "cannot make the directory '{}': {}", path, error ? error.message() : "a file has that name");
  return made;
}

std::string numbered(const std::string& name, int number) { return fmt::format("runs/{}-{}", name, number); }

/// The first number of a run of this name that is not taken.
int first_free(const std::string& name) {
  int number = 1;
  while (fs::exists(numbered(name, number))) ++number;
  return number;
}

/// Other runs may begin at the same time.
std::string make_first_free(const std::string& name) {
  int number = first_free(name);
  while (!make_directory(numbered(name, number))) ++number;
  return numbered(name, number);
}

}  // namespace

LineFile::LineFile(const std::string& path, Mode mode) : path_(path) {
  constexpr int append = O_WRONLY | O_APPEND | O_CREAT | O_NOFOLLOW | O_CLOEXEC;
  const int descriptor = mode == Mode::replace ? base::open_new_file(path) : open(path.c_str(), append, 0644);
  if (descriptor >= 0) file_.reset(fdopen(descriptor, mode == Mode::replace ? "w" : "a"));
  if (!file_) fail(Exit::io, "cannot write '{}': {}", path, std::strerror(errno));
}

void LineFile::write(const std::string& line) {
  const bool written =
      std::fputs(line.c_str(), file_.get()) >= 0 && std::fputc('\n', file_.get()) >= 0 && std::fflush(file_.get()) == 0;
  if (!written) fail(Exit::io, "cannot write '{}': {}", path_, std::strerror(errno));
}

std::vector<std::string> cut_table(const std::string& path, std::int64_t step) {
  std::vector<std::string> rows;
  if (!fs::exists(path)) return rows;
  const std::string text = data::io::read_text(path, std::int64_t{1} << 40);
  std::string kept;
  for (std::size_t at = 0, end = 0; (end = text.find('\n', at)) != std::string::npos; at = end + 1) {
    std::string row = text.substr(at, end - at);
    std::int64_t number = 0;
    const char* last = row.data() + row.size();
    const auto [rest, error] = std::from_chars(row.data(), last, number);
    const bool is_header = rows.empty();
    if (!is_header && (error != std::errc() || rest == last || *rest != ',' || number > step)) break;
    kept += row + "\n";
    rows.push_back(std::move(row));
  }
  data::io::write_text(path, kept);
  return rows;
}

std::string newest_run(const std::string& name) {
  const int free = first_free(name);
  return free == 1 ? "" : numbered(name, free - 1);
}

RunDirectory::RunDirectory(std::string path)
    : path_(std::move(path)), lock_(std::make_unique<data::io::DirectoryLock>(path_)) {}

void check_run_directory(const std::string& wanted, bool overwrite) {
  data::io::check_writable(wanted.empty() ? "runs" : wanted);
  if (!wanted.empty()) data::io::check_not_locked(wanted);
  if (!wanted.empty() && !overwrite && fs::exists(wanted + "/metrics.csv"))
    fail(Exit::io, "'{}' holds a run already; choose another output, or set overwrite=true", wanted);
}

RunDirectory::RunDirectory(const std::string& wanted, const std::string& name, bool overwrite) : path_(wanted) {
  check_run_directory(wanted, overwrite);
  if (wanted.empty()) {
    path_ = make_first_free(name);
    lock_ = std::make_unique<data::io::DirectoryLock>(path_);
    return;
  }
  make_directory(path_);
  lock_ = std::make_unique<data::io::DirectoryLock>(path_);
  if (!overwrite) return;
  // Files of an earlier run that this one may not write must not be taken for its own.
  for (const char* stale : {"best.safetensors", "validation.csv", "checkpoints"}) {
    std::error_code error;
    fs::remove_all(file(stale), error);
    if (error) fail(Exit::io, "cannot remove '{}': {}", file(stale), error.message());
  }
}

Metrics::Metrics(const std::string& path, const model::Loss& loss, LineFile::Mode mode) : file_(path, mode) {
  if (mode == LineFile::Mode::append) return;
  std::string header = "step,epoch,learning_rate,loss";
  if (loss.terms.size() > 1) {
    for (const model::LossTerm& term : loss.terms) header += std::string(",") + model::name_of(term.kind);
  }
  file_.write(header + ",seconds");
}

void Metrics::write(const Row& row) {
  std::string line = fmt::format("{},{},{},{}", row.step, row.epoch, row.learning_rate, row.losses.back());
  if (row.losses.size() > 2) {
    for (const double term : row.losses.first(row.losses.size() - 1)) line += fmt::format(",{}", term);
  }
  file_.write(line + fmt::format(",{:.6f}", row.seconds));
}

std::string log_line(const std::string& text) {
  const std::time_t now = std::time(nullptr);
  std::tm parts{};
  localtime_r(&now, &parts);
  std::array<char, 32> date{};
  std::strftime(date.data(), date.size(), "%Y-%m-%d %H:%M:%S", &parts);
  return fmt::format("{} {}", date.data(), text);
}

}  // namespace orthant::train
