#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/data.hpp"
#include "orthant/cli/file_reports.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/data/io/file_list.hpp"

#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using data::tools::FileReport;

struct InspectArguments {
  std::vector<std::string> paths;
  bool json = false;
};

void print(const FileReport& report) {
  Table table({{"key", Table::Align::left},
               {"type", Table::Align::left},
               {"shape", Table::Align::left},
               {"storage", Table::Align::left},
               {"least"},
               {"most"},
               {"mean"}});
  for (const data::tools::ArrayReport& array : report.arrays) {
    std::vector<std::string> cells{array.name.empty() ? "-" : array.name, array.type,
                                   fmt::format("{}", fmt::join(array.extents, "x")),
                                   array.note.empty() ? array.storage : array.note};
    if (array.summary) {
      for (const double number : {array.summary->least, array.summary->most, array.summary->mean})
        cells.push_back(fmt::format("{:.6g}", number));
    }
    table.add(std::move(cells));
  }
  fmt::print("{}, {}\n\n{}", report.path, bytes_text(report.bytes), table.text());
}

/// Describes the first file in full, and the others by their totals only.
void inspect(const InspectArguments& arguments) {
  const std::vector<std::string> paths = data::io::list_files(arguments.paths, data::tools::data_endings());
  const FileReport first = data::tools::report_on({paths.front()}, true).front();
  if (!first.problems.empty() && first.arrays.empty()) throw base::Error(first.code, first.problems.front());
  std::int64_t bytes = 0;
  for (const std::string& path : paths) bytes += data::io::InputFile(path).bytes();
  if (arguments.json) {
    const Json json{{"files", paths.size()}, {"bytes", bytes}, {"first", to_json(first)}};
    fmt::print("{}\n", json.dump(2));
    if (!first.problems.empty()) throw base::Error(first.code, first.problems.front());
    return;
  }
  print(first);
  for (const std::string& problem : first.problems) fmt::print("\nproblem: {}\n", problem);
  if (paths.size() > 1) {
    fmt::print("\n{} files with {} in all; this is the first. `orthant data verify` reads them all.\n",
               with_commas(static_cast<std::int64_t>(paths.size())), bytes_text(bytes));
  }
  if (!first.problems.empty()) throw base::Error(first.code, first.problems.front());
}

}  // namespace

void add_data_inspect(CLI::App& data) {
  CLI::App* command = data.add_subcommand("inspect", "Keys, shapes, types, storage and values of a data file");
  const auto arguments = std::make_shared<InspectArguments>();
  command->add_option("files", arguments->paths, "Files, patterns, lists (.txt) or directories")->required();
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { inspect(*arguments); });
}

}  // namespace orthant::cli
