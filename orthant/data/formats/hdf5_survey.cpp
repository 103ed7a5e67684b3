#include "orthant/data/formats/hdf5_survey.hpp"

#include "orthant/base/json.hpp"
#include "orthant/data/formats/hdf5_describe.hpp"
#include "orthant/data/io/child_process.hpp"

#include <cstdlib>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::Json;

/// JSON on one line, in which invalid UTF-8 is replaced.
std::string line(const Json& json) { return json.dump(-1, ' ', false, Json::error_handler_t::replace); }

Hdf5Outline outline_of(const io::ChildResult& result, const std::string& path) {
  if (result.death.empty()) {
    Hdf5Outline outline = outline_from_json(Json::parse(result.text));
    outline.path = path;
    return outline;
  }
  return {.path = path,
          .code = Exit::bad_data,
          .error = fmt::format("'{}' is damaged: the HDF5 library crashed on it ({}) in a process of its own", path,
                               result.death)};
}

}  // namespace

std::vector<Hdf5Outline> try_survey_hdf5(const std::vector<std::string>& paths) {
  const auto describe = [&](std::size_t i) {
    // This changes only the environment of the child. Files are not written, and some file systems have no locks.
    ::setenv("HDF5_USE_FILE_LOCKING", "FALSE", 1);
    return line(to_json(describe_hdf5(paths[i])));
  };
  const std::vector<io::ChildResult> results = io::run_in_child(paths.size(), describe);
  std::vector<Hdf5Outline> outlines;
  for (std::size_t i = 0; i < paths.size(); ++i) outlines.push_back(outline_of(results[i], paths[i]));
  return outlines;
}

std::vector<Hdf5Outline> survey_hdf5(const std::vector<std::string>& paths) {
  std::vector<Hdf5Outline> outlines = try_survey_hdf5(paths);
  for (const Hdf5Outline& outline : outlines) {
    if (!outline.error.empty()) throw base::Error(outline.code, outline.error);
  }
  return outlines;
}

std::string outlines_text(const std::vector<Hdf5Outline>& outlines) {
  Json list = Json::array();
  for (const Hdf5Outline& outline : outlines) list.push_back(to_json(outline));
  return line(list);
}

std::vector<Hdf5Outline> outlines_from_text(const std::string& text) {
  std::vector<Hdf5Outline> outlines;
  for (const Json& json : Json::parse(text)) outlines.push_back(outline_from_json(json));
  return outlines;
}

}  // namespace orthant::data::formats
