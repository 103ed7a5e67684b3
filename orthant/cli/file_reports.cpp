#include "orthant/cli/file_reports.hpp"

#include "orthant/base/json.hpp"

namespace orthant::cli {

using base::Json;

Json to_json(const data::tools::FileReport& report) {
  Json arrays = Json::array();
  for (const data::tools::ArrayReport& array : report.arrays) {
    Json json{{"key", array.name}, {"type", array.type}, {"shape", array.extents}, {"storage", array.storage}};
    if (!array.note.empty()) json["note"] = array.note;
    if (array.summary) {
      json["least"] = array.summary->least;
      json["most"] = array.summary->most;
      json["mean"] = array.summary->mean;
    }
    arrays.push_back(std::move(json));
  }
  return {{"path", report.path}, {"bytes", report.bytes}, {"arrays", arrays}, {"problems", report.problems}};
}

}  // namespace orthant::cli
