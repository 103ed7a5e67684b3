#include "orthant/cli/machine_profile.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/calibrate/profile_file.hpp"
#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <filesystem>

namespace orthant::cli {
namespace {

oracle::Profile read_profile(const std::string& path) {
  oracle::Profile profile = oracle::profile_from_json(data::io::read_text(path), path);
  if (profile.settings.empty())
    base::fail(base::Exit::bad_data, "{}: a profile without settings says nothing; run `orthant calibrate`", path);
  return profile;
}

oracle::Profile own_profile(const std::string& remedy) {
  const std::string path = calibrate::profile_path();
  if (path.empty() || !std::filesystem::exists(path))
    base::fail(base::Exit::missing_input,
               "there is no profile of this machine{}; run `orthant calibrate` to measure it{}",
               path.empty() ? "" : " in '" + path + "'", remedy);
  return read_profile(path);
}

}  // namespace

oracle::Profile measured_profile() { return own_profile(""); }

oracle::Profile machine_profile(const std::string& name) {
  const std::vector<std::string> shipped = oracle::shipped_profile_names();
  if (name.empty()) return own_profile(fmt::format(", or name one with --machine: {}", fmt::join(shipped, ", ")));
  if (std::find(shipped.begin(), shipped.end(), name) != shipped.end()) return oracle::shipped_profile(name);
  const bool is_path = name.find('/') != std::string::npos || name.ends_with(".json") || std::filesystem::exists(name);
  if (is_path) return read_profile(name);
  base::fail(base::Exit::usage, "--machine: no profile '{}' comes with the program, and there is no such file{}", name,
             base::suggestion(name, shipped));
}

}  // namespace orthant::cli
