#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/data.hpp"
#include "orthant/cli/file_progress.hpp"
#include "orthant/data/io/file_list.hpp"
#include "orthant/data/tools/convert.hpp"

#include <memory>

namespace orthant::cli {
namespace {

struct ConvertArguments {
  std::vector<std::string> sources, labels, targets;
  std::string directory;
  bool overwrite = false;
  bool json = false;
};

std::vector<std::string> files(const std::vector<std::string>& words, const std::vector<std::string>& endings) {
  return words.empty() ? words : data::io::list_files(words, endings);
}

std::int64_t convert(const data::tools::Conversion& conversion) {
  FileProgress progress("converted");
  return data::tools::convert_files(conversion, [&](std::int64_t done) {
    progress.update(done, static_cast<std::int64_t>(conversion.sources.size()));
  });
}

void run_convert(const ConvertArguments& arguments) {
  const data::tools::Conversion conversion{
      .sources = files(arguments.sources, {".nii", ".nii.gz", ".npy", ".tfrecord", ".tfrecords"}),
      .labels = files(arguments.labels, {".nii", ".nii.gz", ".npy"}),
      .targets = files(arguments.targets, {".npy"}),
      .directory = arguments.directory,
      .overwrite = arguments.overwrite};
  const std::int64_t count = convert(conversion);
  if (arguments.json) {
    const base::Json json{{"samples", count}, {"directory", arguments.directory}};
    fmt::print("{}\n", json.dump(2));
  } else {
    fmt::print("{} sample{} in {}\n", count, count == 1 ? "" : "s", arguments.directory);
  }
}

}  // namespace

void add_data_convert(CLI::App& data) {
  CLI::App* command = data.add_subcommand("convert", "NIfTI, npy or CosmoFlow's TFRecord to HDF5, a file per sample");
  const auto arguments = std::make_shared<ConvertArguments>();
  command->add_option("sources", arguments->sources, "Files, patterns, lists (.txt) or directories")->required();
  command->add_option("--to", arguments->directory, "Directory for the HDF5 files")->required();
  command->add_option("--labels", arguments->labels, "Label volumes (NIfTI, npy), in the order of the sources");
  command->add_option("--targets", arguments->targets, "Values per sample (npy), in the order of the sources");
  command->add_flag("--overwrite", arguments->overwrite, "Replace files that exist");
  command->add_flag("--json", arguments->json, "Print JSON");
  command->callback([arguments] { run_convert(*arguments); });
}

}  // namespace orthant::cli
