#include "orthant/train/resume.hpp"

#include "orthant/base/error.hpp"
#include "orthant/comm/agree.hpp"
#include "orthant/train/run_directory.hpp"

#include <filesystem>

namespace orthant::train {
namespace {

namespace fs = std::filesystem;
using base::Exit;
using base::fail;
using Kind = ResumeOptions::Kind;

std::string directory_of(const ResumeOptions& options, const std::string& output, const std::string& name) {
  std::string directory = !options.directory.empty() ? options.directory : !output.empty() ? output : newest_run(name);
  if (options.kind == Kind::automatic || fs::is_directory(directory)) return directory;
  if (directory.empty()) fail(Exit::missing_input, "there is no run to go on with: no directory runs/{}-1", name);
  fail(Exit::missing_input, "there is no run to go on with: '{}' is not a directory", directory);
}

}  // namespace

std::optional<Resumed> find_resumed(const ResumeOptions& options, const std::string& output, const std::string& name,
                                    comm::Comm& comm) {
  if (options.kind == Kind::none) return std::nullopt;
  const std::string directory = comm::on_root(comm, [&] { return directory_of(options, output, name); });
  if (directory.empty()) return std::nullopt;
  const checkpoint::Directory checkpoints(directory);
  auto found = checkpoint::find(
      checkpoints, options.kind == Kind::exact ? checkpoint::Choice::exact : checkpoint::Choice::newest_good, comm);
  if (found) return Resumed{.directory = directory, .found = std::move(*found)};
  if (options.kind == Kind::automatic) return std::nullopt;
  throw comm::CollectiveError(
      Exit::missing_input,
      fmt::format("'{}' has no checkpoint to go on from; leave out --resume to start again", directory));
}

bool may_start_again(const std::string& directory) {
  return !fs::exists(directory + "/weights.safetensors") && checkpoint::Directory(directory).steps().empty();
}

}  // namespace orthant::train
