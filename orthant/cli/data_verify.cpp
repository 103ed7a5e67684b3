#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/data.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/cli/file_reports.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/data/io/file_list.hpp"
#include "orthant/data/tools/set_check.hpp"

#include <algorithm>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using data::tools::FileReport;

struct VerifyArguments {
  std::vector<std::string> paths;
  std::int64_t classes = 0;
  bool write_checksums = false;
  bool json = false;
};

void print_json(const std::vector<FileReport>& reports, std::int64_t compared, std::int64_t bad) {
  Json files = Json::array();
  for (const FileReport& report : reports) files.push_back(to_json(report));
  const Json json{
      {"files", reports.size()}, {"files_with_problems", bad}, {"checksums_compared", compared}, {"reports", files}};
  fmt::print("{}\n", json.dump(2));
}

void print(const std::vector<FileReport>& reports, std::int64_t compared, std::int64_t bad) {
  std::int64_t bytes = 0;
  for (const FileReport& report : reports) {
    bytes += report.bytes;
    for (const std::string& problem : report.problems) fmt::print("problem     {}\n", problem);
  }
  fmt::print("files       {}, {}\n", with_commas(static_cast<std::int64_t>(reports.size())), bytes_text(bytes));
  fmt::print("checksums   {} compared\n", with_commas(compared));
  if (bad == 0) fmt::print("all is well\n");
}

std::vector<FileReport> read_all(const std::vector<std::string>& paths) {
  FileProgress progress("verified");
  return data::tools::report_on(
      paths, true, [&](std::int64_t done) { progress.update(done, static_cast<std::int64_t>(paths.size())); });
}

void verify(const VerifyArguments& arguments) {
  const std::vector<std::string> paths = data::io::list_files(arguments.paths, data::tools::data_endings());
  std::vector<FileReport> reports = read_all(paths);
  data::tools::check_set(reports, {.classes = arguments.classes});
  const std::int64_t compared = arguments.write_checksums ? 0 : data::tools::check_checksums(reports);
  const auto bad =
      std::count_if(reports.begin(), reports.end(), [](const auto& report) { return !report.problems.empty(); });
  if (bad == 0 && arguments.write_checksums) data::tools::write_checksums(reports);
  arguments.json ? print_json(reports, compared, bad) : print(reports, compared, bad);
  if (bad == 0) return;
  const auto first =
      std::find_if(reports.begin(), reports.end(), [](const auto& report) { return !report.problems.empty(); });
  base::fail(first->code, "{} of {} files {} problems; the first: {}", bad, reports.size(), bad == 1 ? "has" : "have",
             first->problems.front());
}

}  // namespace

void add_data_verify(CLI::App& data) {
  CLI::App* command =
      data.add_subcommand("verify", "Read files through and through: shapes, types, values, labels, checksums");
  const auto arguments = std::make_shared<VerifyArguments>();
  command->add_option("files", arguments->paths, "Files, patterns, lists (.txt) or directories")->required();
  command->add_option("--classes", arguments->classes, "Labels must be below this number")->check(CLI::PositiveNumber);
  command->add_flag("--write-checksums", arguments->write_checksums,
                    "Write the files' checksums to .checksums beside them instead of comparing");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { verify(*arguments); });
}

}  // namespace orthant::cli
