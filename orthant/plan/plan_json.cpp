#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/json_fields.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/plan/exchange_forms.hpp"

#include <algorithm>
#include <array>
#include <span>

namespace orthant::plan {
namespace {

using base::Exit;
using base::fail;
using Fields = base::JsonFields;
using json = base::Json;

constexpr int format_version = 1;
constexpr int most_ranks = 1 << 20;

const std::array<std::string, 7> plan_keys{"format",    "version", "ranks", "micro_batches",
                                           "exchanges", "error",   "nodes"};
const std::array<std::string, 2> error_names{"exact", "fast"};
const std::array<std::string, 5> exchange_keys{"sums", "buckets", "gathers", "levels", "most_ranks_per_machine"};
const std::array<std::string, 2> group_form_keys{"form", "direct_up_to"};
const std::array<std::string, 9> node_keys{"node",  "grid",       "first_rank", "algorithm", "channel_parts",
                                           "stage", "statistics", "kernels",    "kernel"};
const std::array<std::string, 5> choice_keys{"algorithm", "pieces", "seconds", "scratch_bytes", "prepare_weights"};
const std::array<std::string, 3> piece_keys{"algorithm", "samples", "slabs"};
const std::array<std::string, 3> algorithms{"stationary-x", "stationary-y", "stationary-w"};
const std::array<std::string, 3> statistics_names{"local", "spatial", "global"};

const std::vector<std::string>& pass_names() {
  static const std::vector<std::string> names{model::name_of(model::Pass::forward),
                                              model::name_of(model::Pass::backward_data),
                                              model::name_of(model::Pass::backward_weights)};
  return names;
}

std::vector<std::string> kernel_names() {
  std::vector<std::string> names;
  names.reserve(model::named_algorithms.size());
  for (const model::Algorithm algorithm : model::named_algorithms) names.emplace_back(model::name_of(algorithm));
  return names;
}

tensor::Grid grid_from(const json& object, const std::string& where) {
  tensor::Grid grid;
  if (!object.is_object()) fail(Exit::bad_data, "{}: the grid must be an object such as {{\"d\": 2}}", where);
  const Fields fields(object, where);
  for (const auto& item : object.items()) {
    const auto dim = std::find_if(tensor::all_dims.begin(), tensor::all_dims.end(),
                                  [&](tensor::Dim candidate) { return item.key() == tensor::name_of(candidate); });
    if (dim == tensor::all_dims.end()) {
      fail(Exit::bad_data, "{}: unknown dim '{}' in the grid; known are n, c, d, h, w", where, item.key());
    }
    grid[*dim] = fields.whole(tensor::name_of(*dim), 1, most_ranks);
  }
  return grid;
}

int channel_parts_from(const Fields& fields, const tensor::Grid& grid) {
  const std::size_t algorithm = fields.has("algorithm") ? fields.word("algorithm", algorithms) : 1;
  if (fields.has("channel_parts") != (algorithm == 2)) {
    fail(Exit::bad_data, "{}: 'channel_parts' goes with \"algorithm\": \"stationary-w\", and only with that",
         fields.where());
  }
  if (algorithm == 0) return grid.c;
  if (algorithm == 1) return 1;
  const int parts = fields.whole("channel_parts", 1, most_ranks);
  if (grid.c % parts != 0) {
    fail(Exit::bad_data, "{}: 'channel_parts' is {}; it must divide the grid's c, which is {}", fields.where(), parts,
         grid.c);
  }
  return parts;
}

model::Algorithm algorithm_from(const Fields& fields, const char* key) {
  return model::named_algorithms[fields.word(key, kernel_names())];
}

model::ConvPiece piece_from(const json& object, const std::string& where) {
  if (!object.is_object())
    fail(Exit::bad_data, R"({}: a piece must be an object such as {{"algorithm": "direct", "samples": 8}})", where);
  const Fields fields(object, where);
  fields.allow(piece_keys);
  constexpr std::int64_t one = 1, most_cells = std::int64_t{1} << 40;
  return {.algorithm = algorithm_from(fields, "algorithm"),
          .samples = fields.whole("samples", one, most_cells),
          .slabs = fields.has("slabs") ? fields.whole("slabs", one, most_cells) : one};
}

std::vector<model::ConvPiece> pieces_from(const Fields& fields) {
  std::vector<model::ConvPiece> pieces;
  if (!fields.has("pieces")) return pieces;
  const json& list = fields.need("pieces");
  const std::string where = fields.where() + ": pieces";
  if (!list.is_array() || list.empty()) fail(Exit::bad_data, "{}: must be a list with at least one piece", where);
  if (fields.has("algorithm"))
    fail(Exit::bad_data, "{}: every piece has an algorithm of its own; leave out the one beside them", where);
  for (const json& piece : list) pieces.push_back(piece_from(piece, fmt::format("{} {}", where, pieces.size() + 1)));
  return pieces;
}

KernelChoice choice_from(const json& object, const std::string& where) {
  if (!object.is_object()) fail(Exit::bad_data, R"({}: must be an object such as {{"algorithm": "direct"}})", where);
  const Fields fields(object, where);
  fields.allow(choice_keys);
  constexpr double most_seconds = 1e9;
  constexpr std::int64_t none = 0, most_bytes = std::int64_t{1} << 60;
  const std::vector<model::ConvPiece> pieces = pieces_from(fields);
  return {.algorithm = pieces.empty() ? algorithm_from(fields, "algorithm") : pieces.front().algorithm,
          .seconds = fields.has("seconds") ? fields.real("seconds", 0, most_seconds) : 0,
          .scratch_bytes = fields.has("scratch_bytes") ? fields.whole("scratch_bytes", none, most_bytes) : 0,
          .prepare_weights = fields.has("prepare_weights") && fields.flag("prepare_weights"),
          .pieces = pieces};
}

/// "kernels" has a choice per pass; "kernel", from before there were such choices, is one algorithm for all of them.
KernelChoices choices_from(const Fields& fields) {
  KernelChoices choices;
  if (fields.has("kernel")) {
    const KernelChoice all{.algorithm = algorithm_from(fields, "kernel")};
    choices = {.forward = all, .backward_data = all, .backward_weights = all};
  }
  if (!fields.has("kernels")) return choices;
  const json& object = fields.need("kernels");
  const std::string where = fields.where() + ": kernels";
  if (!object.is_object()) fail(Exit::bad_data, "{}: must be an object with a choice per pass", where);
  Fields{object, where}.allow(pass_names());
  for (const model::Pass pass : model::all_passes) {
    const char* name = model::name_of(pass);
    if (object.contains(name)) choices[pass] = choice_from(object[name], where + ": " + name);
  }
  return choices;
}

NodePlan node_from(const json& entry, const std::string& origin) {
  if (!entry.is_object() || !entry.contains("node") || !entry["node"].is_string()) {
    fail(Exit::bad_data, "{}: each entry of 'nodes' needs a 'node' with its name", origin);
  }
  const auto name = entry["node"].get<std::string>();
  const Fields fields{entry, fmt::format("{}: {}", origin, name)};
  fields.allow(node_keys);
  NodePlan node{.node = name, .grid = grid_from(entry.value("grid", json::object()), fields.where())};
  node.first_rank = fields.whole_or("first_rank", 0, most_ranks, 0);
  node.channel_parts = channel_parts_from(fields, node.grid);
  node.stage = fields.whole_or("stage", 0, most_ranks, 0);
  if (entry.contains("statistics")) {
    node.statistics = static_cast<Statistics>(fields.word("statistics", statistics_names));
  }
  node.kernels = choices_from(fields);
  return node;
}

GroupForm group_form_from(const json& object, const std::string& where, GroupForm form, std::span<const Form> known) {
  if (!object.is_object()) fail(Exit::bad_data, R"({}: must be an object such as {{"form": "recursive"}})", where);
  const Fields fields(object, where);
  fields.allow(group_form_keys);
  if (object.contains("form")) {
    const json& name = object["form"];
    form.form = form_from(name.is_string() ? name.get<std::string>() : name.dump(), where, known);
  }
  form.direct_up_to = fields.whole_or("direct_up_to", 0, most_ranks, form.direct_up_to);
  return form;
}

ExchangeForms exchange_forms_from(const Fields& plan) {
  ExchangeForms forms;
  if (!plan.has("exchanges")) return forms;
  const json& object = plan.need("exchanges");
  const std::string where = plan.where() + ": exchanges";
  if (!object.is_object())
    fail(Exit::bad_data, "{}: must be an object with 'sums', 'buckets', 'gathers' or 'levels'", where);
  const Fields fields(object, where);
  fields.allow(exchange_keys);
  const auto read = [&](const char* key, GroupForm& form, std::span<const Form> known) {
    if (object.contains(key)) form = group_form_from(object[key], fmt::format("{}: {}", where, key), form, known);
  };
  read("sums", forms.sums, forms_of_sums);
  read("buckets", forms.buckets, forms_of_buckets);
  read("gathers", forms.gathers, forms_of_gathers);
  const int levels = fields.whole_or("levels", 1, most_ranks, 2);
  if (levels > 2) fail(Exit::bad_data, "{}: 'levels' is {}; it is 1 or 2", where, levels);
  forms.two_levels = levels == 2;
  forms.most_ranks_per_machine = fields.whole_or("most_ranks_per_machine", 0, most_ranks, 0);
  return forms;
}

json to_json(const GroupForm& form) { return {{"form", name_of(form.form)}, {"direct_up_to", form.direct_up_to}}; }

/// Without what is default.
json to_json(const ExchangeForms& forms) {
  const ExchangeForms usual;
  json object = json::object();
  if (forms.sums != usual.sums) object["sums"] = to_json(forms.sums);
  if (forms.buckets != usual.buckets) object["buckets"] = to_json(forms.buckets);
  if (forms.gathers != usual.gathers) object["gathers"] = to_json(forms.gathers);
  if (forms.two_levels != usual.two_levels) object["levels"] = forms.two_levels ? 2 : 1;
  if (forms.most_ranks_per_machine != 0) object["most_ranks_per_machine"] = forms.most_ranks_per_machine;
  return object;
}

json to_json(const std::vector<model::ConvPiece>& pieces) {
  json list = json::array();
  for (const model::ConvPiece& piece : pieces) {
    list.push_back({{"algorithm", model::name_of(piece.algorithm)}, {"samples", piece.samples}});
    if (piece.slabs > 1) list.back()["slabs"] = piece.slabs;
  }
  return list;
}

json to_json(const KernelChoices& choices) {
  json object = json::object();
  for (const model::Pass pass : model::all_passes) {
    const KernelChoice& choice = choices[pass];
    if (choice.algorithm == model::Algorithm::automatic) continue;
    json& entry = object[model::name_of(pass)];
    if (choice.pieces.empty()) {
      entry["algorithm"] = model::name_of(choice.algorithm);
    } else {
      entry["pieces"] = to_json(choice.pieces);
    }
    if (choice.seconds > 0) entry["seconds"] = choice.seconds;
    if (choice.scratch_bytes > 0) entry["scratch_bytes"] = choice.scratch_bytes;
    if (choice.prepare_weights) entry["prepare_weights"] = true;
  }
  return object;
}

json to_json(const NodePlan& node) {
  json grid = json::object();
  for (const tensor::Dim dim : tensor::all_dims) {
    if (node.grid[dim] > 1) grid[tensor::name_of(dim)] = node.grid[dim];
  }
  json entry{{"node", node.node}, {"grid", grid}};
  if (node.first_rank != 0) entry["first_rank"] = node.first_rank;
  if (node.channel_parts > 1) {
    const bool all = node.channel_parts == node.grid.c;
    entry["algorithm"] = algorithms[all ? 0 : 2];
    if (!all) entry["channel_parts"] = node.channel_parts;
  }
  if (node.stage != 0) entry["stage"] = node.stage;
  if (node.statistics != Statistics::global) {
    entry["statistics"] = statistics_names[static_cast<std::size_t>(node.statistics)];
  }
  if (json kernels = to_json(node.kernels); !kernels.empty()) entry["kernels"] = std::move(kernels);
  return entry;
}

}  // namespace

std::string to_json(const Plan& plan) {
  json document{{"format", "orthant-plan"}, {"version", format_version}, {"ranks", plan.ranks}};
  if (plan.micro_batches != 1) document["micro_batches"] = plan.micro_batches;
  if (json forms = to_json(plan.exchanges); !forms.empty()) document["exchanges"] = std::move(forms);
  if (plan.error != model::ErrorClass::exact) document["error"] = model::name_of(plan.error);
  document["nodes"] = json::array();
  for (const NodePlan& node : plan.nodes) document["nodes"].push_back(to_json(node));
  return document.dump(2);
}

Plan from_json(const std::string& text, const std::string& origin) {
  const json document = base::parse_json(text, origin);
  if (!document.is_object() || document.value("format", json()) != "orthant-plan") {
    fail(Exit::bad_data, "{}: not a plan; a plan is JSON with \"format\": \"orthant-plan\"", origin);
  }
  const Fields fields{document, origin};
  if (const int version = fields.whole("version", 1, most_ranks); version != format_version) {
    fail(Exit::bad_data, "{}: plan version {} is not known here; this program reads version {}", origin, version,
         format_version);
  }
  fields.allow(plan_keys);
  Plan plan{.ranks = fields.whole("ranks", 1, most_ranks), .nodes = {}};
  plan.micro_batches = fields.whole_or("micro_batches", 1, most_ranks, 1);
  plan.exchanges = exchange_forms_from(fields);
  if (document.contains("error")) plan.error = static_cast<model::ErrorClass>(fields.word("error", error_names));
  const auto nodes = document.find("nodes");
  if (nodes == document.end() || !nodes->is_array()) fail(Exit::bad_data, "{}: 'nodes' must be a list", origin);
  for (const json& entry : *nodes) plan.nodes.push_back(node_from(entry, origin));
  return plan;
}

}  // namespace orthant::plan
