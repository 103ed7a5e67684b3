#include "orthant/model/network.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/onnx/load.hpp"
#include "orthant/model/printable.hpp"
#include "orthant/model/yaml.hpp"

#include <filesystem>
#include <fstream>

namespace orthant::model {
namespace {

using base::Exit;
using base::fail;

constexpr std::size_t most_bytes = std::size_t{1} << 20;

bool is_yaml(const std::string& path) { return path.ends_with(".yaml") || path.ends_with(".yml"); }

/// The whole file, unless it is too large to be a network.
std::string read_file(const std::string& path) {
  std::error_code error;
  if (!std::filesystem::exists(path, error))
    fail(Exit::missing_input, "{}: no such network file; check the path", path);
  if (!std::filesystem::is_regular_file(path, error)) fail(Exit::io, "{}: not a regular file", path);
  std::ifstream file(path, std::ios::binary);
  if (!file) fail(Exit::io, "{}: cannot be opened; check its permissions", path);
  std::string text(most_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  if (file.bad()) fail(Exit::io, "{}: cannot be read", path);
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (text.size() > most_bytes)
    fail(Exit::bad_data, "{}: more than {} bytes; is this a network file?", path, most_bytes);
  return text;
}

Graph load_file(const std::string& path, const NetworkOptions& options) {
  const std::string output = chosen_output(path, options.settings);
  const std::string text = read_file(path);
  if (options.input.empty()) return read_yaml(text, path, std::nullopt, options.mini_batch, output);
  return read_yaml(text, path, parse_input(options.input, options.mini_batch), options.mini_batch, output);
}

Graph load_from_zoo(const ZooEntry& entry, const NetworkOptions& options) {
  const std::string text = options.input.empty() ? input_text(entry.input) : options.input;
  const InputShape input = parse_input(text, options.mini_batch);
  if (input.spatial_count != entry.input.spatial_count) {
    fail(Exit::usage, "{}: input {}; it takes {}, as {}", entry.name, text,
         entry.input.spatial_count == 2 ? "CxHxW" : "CxDxHxW", input_text(entry.input));
  }
  return make_zoo(entry.name, {.input = input.shape, .settings = options.settings});
}

}  // namespace

Graph load_network(const std::string& name_or_path, const NetworkOptions& options) {
  check_mini_batch(options.mini_batch);
  if (const ZooEntry* entry = find_in_zoo(name_or_path)) return load_from_zoo(*entry, options);
  if (is_yaml(name_or_path)) return load_file(name_or_path, options);
  if (name_or_path.ends_with(".onnx")) return onnx::load(name_or_path, options);
  std::vector<std::string> known;
  for (const ZooEntry& entry : zoo_entries()) known.push_back(entry.name);
  fail(Exit::usage, "no network '{}' (a file must end in .yaml, .yml or .onnx){}", printable(name_or_path),
       base::suggestion(name_or_path, known));
}

std::string chosen_output(const std::string& path, const SettingValues& settings) {
  for (const auto& [key, value] : settings) {
    if (key != "output")
      fail(Exit::usage, "{}: setting '{}' for a network file; it has only 'output', edit the file", path,
           printable(key));
    if (value.empty()) fail(Exit::usage, "{}: setting 'output' is empty; name one of the outputs", path);
  }
  return settings.empty() ? std::string{} : settings.begin()->second;
}

void add_setting(SettingValues& settings, const std::string& key_and_value) {
  const std::size_t equals = key_and_value.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail(Exit::usage, "setting '{}' is not key=value; write it as batch_norm=true", printable(key_and_value));
  }
  settings[key_and_value.substr(0, equals)] = key_and_value.substr(equals + 1);
}

}  // namespace orthant::model
