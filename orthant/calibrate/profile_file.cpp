#include "orthant/calibrate/profile_file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/microbatch/store.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>

namespace orthant::calibrate {
namespace {

constexpr const char* by_us = "measured by orthant calibrate";

oracle::Setting& setting_of(oracle::Profile& profile, const oracle::Setting& like) {
  const oracle::Setting* known = find_setting(profile, like.threads, like.ranks_per_machine);
  if (known) return profile.settings[static_cast<std::size_t>(known - profile.settings.data())];
  return profile.settings.emplace_back(
      oracle::Setting{.threads = like.threads, .ranks_per_machine = like.ranks_per_machine});
}

bool is_measured(const oracle::Link& link) { return link.source == by_us; }

/// A link of which nothing is known but what memory allows: a message is read once and written once.
oracle::Link like_memory(const oracle::Profile& profile) {
  const double speed = profile.settings.front().memory_bytes_per_second / 2;
  return {.latency_seconds = 1e-6,
          .bytes_per_second = speed,
          .message_seconds = 1e-6,
          .receiver_seconds_per_byte = 1 / speed,
          .eager_bytes = 4096,
          .error = 0.5,
          .source = "not measured: half the speed of memory"};
}

oracle::Link assumed(oracle::Link other) {
  other.error = 0.5;
  other.source = "not measured: as the other link";
  return other;
}

void merge_links(oracle::Profile& profile, const Findings& found) {
  if (found.inside) profile.inside = *found.inside;
  if (found.between) profile.between = *found.between;
  const bool inside = is_measured(profile.inside), between = is_measured(profile.between);
  if (!inside) profile.inside = between ? assumed(profile.between) : like_memory(profile);
  if (!between) profile.between = assumed(profile.inside);
  profile.store_bytes_per_second = (between ? profile.between : profile.inside).bytes_per_second;
}

}  // namespace

std::string profile_path() {
  if (const char* path = std::getenv("ORTHANT_PROFILE"); path && *path) return path;
  const std::filesystem::path kernels = microbatch::store_path();
  return kernels.empty() ? "" : (kernels.parent_path() / "profile.json").string();
}

oracle::Profile open_profile(const std::string& path, const std::string& processor) {
  if (!std::filesystem::exists(path)) return {.name = "this-machine", .source = by_us, .processor = processor};
  oracle::Profile profile = oracle::profile_from_json(data::io::read_text(path), path);
  if (profile.processor != processor) {
    base::fail(base::Exit::bad_data, "{}: the profile is of '{}', but this is '{}'; name another file with -o", path,
               profile.processor.empty() ? "no measured processor" : profile.processor, processor);
  }
  return profile;
}

const oracle::Setting* find_setting(const oracle::Profile& profile, int threads, int ranks_per_machine) {
  const auto found = std::find_if(profile.settings.begin(), profile.settings.end(), [&](const oracle::Setting& one) {
    return one.threads == threads && one.ranks_per_machine == ranks_per_machine;
  });
  return found == profile.settings.end() ? nullptr : &*found;
}

void merge(oracle::Profile& profile, const Findings& found) {
  oracle::Setting& setting = setting_of(profile, found.setting);
  setting.flops_per_second = found.setting.flops_per_second;
  setting.memory_bytes_per_second = found.setting.memory_bytes_per_second;
  setting.step_seconds = found.setting.step_seconds;
  setting.source = by_us;
  for (const auto& [key, task] : found.setting.tasks) setting.tasks[key] = task;
  profile.ranks_per_machine = found.cores;
  profile.threads_per_rank = 1;
  profile.memory_bytes = found.memory_bytes;
  profile.process_bytes = found.process_bytes;
  profile.shares_memory = found.shares_memory;
  profile.machine_source = by_us;
  if (found.poll_seconds) profile.poll_seconds = *found.poll_seconds;
  if (found.file_bytes_per_second) profile.file_bytes_per_second = *found.file_bytes_per_second;
  profile.samples_source = "files: read from the system's cache, an upper limit; store: the link of the ranks";
  merge_links(profile, found);
}

void store_profile(const oracle::Profile& profile, const std::string& path) {
  const std::string folder = std::filesystem::path(path).parent_path().string();
  if (!folder.empty()) data::io::make_directories(folder);
  data::io::write_text(path, oracle::to_json(profile) + "\n");
}

}  // namespace orthant::calibrate
