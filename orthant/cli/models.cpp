#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/cli/commands.hpp"
#include "orthant/cli/table.hpp"
#include "orthant/cli/units.hpp"
#include "orthant/model/network.hpp"

#include <cstdio>
#include <memory>

namespace orthant::cli {
namespace {

using base::Json;
using model::ZooEntry;

Json to_json(const ZooEntry& entry, std::int64_t parameters) {
  Json settings = Json::array();
  for (const model::ZooSetting& setting : entry.settings) {
    settings.push_back({{"name", setting.name}, {"default", setting.value}, {"meaning", setting.meaning}});
  }
  return {{"name", entry.name},
          {"description", entry.description},
          {"input", model::input_text(entry.input)},
          {"parameters", parameters},
          {"settings", settings}};
}

void print_json(const std::vector<std::int64_t>& parameters) {
  Json list = Json::array();
  for (std::size_t i = 0; i < parameters.size(); ++i) list.push_back(to_json(model::zoo_entries()[i], parameters[i]));
  fmt::print("{}\n", Json{{"models", list}}.dump(2));
}

void print_tables(const std::vector<std::int64_t>& parameters) {
  using enum Table::Align;
  Table networks({{"name", left}, {"input", left}, {"parameters", right}, {"", left}});
  Table settings({{"name", left}, {"--set", left}, {"default", left}, {"", left}});
  for (std::size_t i = 0; i < parameters.size(); ++i) {
    const ZooEntry& entry = model::zoo_entries()[i];
    networks.add({entry.name, model::input_text(entry.input), with_commas(parameters[i]), entry.description});
    for (const model::ZooSetting& setting : entry.settings) {
      settings.add({entry.name, setting.name, setting.value, setting.meaning});
    }
  }
  fmt::print("{}\n{}", networks.text(), settings.text());
}

void print_models(bool json) {
  std::vector<std::int64_t> parameters;
  for (const ZooEntry& entry : model::zoo_entries()) {
    parameters.push_back(model::parameter_count(model::load_network(entry.name, {})));
  }
  if (json) {
    print_json(parameters);
  } else {
    print_tables(parameters);
  }
}

}  // namespace

void add_models(CLI::App& app) {
  CLI::App* command = app.add_subcommand("models", "List the networks of the zoo");
  const auto json = std::make_shared<bool>(false);
  command->add_flag("--json", *json, "Print JSON");
  command->callback([json] { print_models(*json); });
}

}  // namespace orthant::cli
