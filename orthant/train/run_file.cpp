#include "orthant/train/run_file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/file.hpp"
#include "orthant/model/fields.hpp"

#include <limits>

namespace orthant::train {
namespace {

using model::Document;
using model::Fields;
using Words = std::vector<std::string>;

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

std::int64_t integer_in(const Fields& fields, const std::string& key, std::int64_t fallback, std::int64_t low,
                        std::int64_t high) {
  const std::int64_t value = fields.integer_or(key, fallback);
  if (fields.find(key) != nullptr && (value < low || value > high)) {
    fields.refuse(*fields.find(key), fmt::format("{} is {}; it must be from {} to {}", key, value, low, high));
  }
  return value;
}

double number_in(const Fields& fields, const std::string& key, double fallback, double low, double high) {
  const double value = fields.number_or(key, fallback);
  if (fields.find(key) != nullptr && (value < low || value > high)) {
    fields.refuse(*fields.find(key), fmt::format("{} is {}; it must be from {} to {}", key, value, low, high));
  }
  return value;
}

std::uint64_t read_seed(const Fields& fields) {
  return static_cast<std::uint64_t>(integer_in(fields, "seed", 1, 0, std::numeric_limits<std::int64_t>::max()));
}

std::string word_or(const Fields& fields, const std::string& key, const std::string& fallback) {
  return fields.find(key) == nullptr ? fallback : fields.word(key);
}

std::size_t choice_or_first(const Fields& fields, const std::string& key, const Words& words) {
  return fields.find(key) == nullptr ? 0 : fields.choice(*fields.find(key), key, words);
}

/// "optimizer: adam" is short for "optimizer: {kind: adam}".
Document as_map(const Document& value, const std::string& key) {
  if (value.kind != Document::Kind::scalar) return value;
  Document map{.kind = Document::Kind::map, .line = value.line, .scalar = {}, .items = {}, .entries = {}};
  map.entries.emplace_back(key, value);
  return map;
}

model::Optimizer read_optimizer(const Document& value, const std::string& origin) {
  static const Words kinds{"sgd", "adam", "adamw"};
  static const Words known{"kind", "momentum", "nesterov", "weight_decay", "beta1", "beta2", "epsilon"};
  const Document map = as_map(value, "kind");
  const Fields fields(map, origin, known);
  model::Optimizer optimizer;
  optimizer.kind = static_cast<model::OptimizerKind>(choice_or_first(fields, "kind", kinds));
  const bool sgd = optimizer.kind == model::OptimizerKind::sgd;
  for (const std::string key : {"momentum", "nesterov"}) {
    if (!sgd && fields.find(key) != nullptr) fields.refuse(*fields.find(key), key + " belongs to sgd; remove it");
  }
  for (const std::string key : {"beta1", "beta2", "epsilon"}) {
    if (sgd && fields.find(key) != nullptr)
      fields.refuse(*fields.find(key), key + " belongs to adam and adamw; remove it");
  }
  optimizer.momentum = number_in(fields, "momentum", 0, 0, 1);
  optimizer.nesterov = fields.flag_or("nesterov", false);
  if (optimizer.nesterov && optimizer.momentum == 0)
    fields.refuse(fields.need("nesterov"), "nesterov needs a momentum above 0");
  const bool decoupled = optimizer.kind == model::OptimizerKind::adamw;
  optimizer.weight_decay = number_in(fields, "weight_decay", decoupled ? 0.01 : 0, 0, 1e6);
  optimizer.beta1 = number_in(fields, "beta1", 0.9, 0, 1);
  optimizer.beta2 = number_in(fields, "beta2", 0.999, 0, 1);
  optimizer.epsilon = number_in(fields, "epsilon", 1e-8, 0, 1);
  return optimizer;
}

LearningRate read_learning_rate(const Document& value, const std::string& origin) {
  static const Words kinds{"constant", "step", "linear", "polynomial", "cosine"};
  static const Words known{"schedule", "base", "end", "power", "factor", "every", "warmup_steps"};
  const Document map = as_map(value, "base");
  const Fields fields(map, origin, known);
  LearningRate rate;
  rate.kind = static_cast<LearningRate::Kind>(choice_or_first(fields, "schedule", kinds));
  rate.base = number_in(fields, "base", rate.base, 0, 1e6);
  rate.end = number_in(fields, "end", rate.end, 0, 1e6);
  rate.power = number_in(fields, "power", rate.power, 0, 100);
  rate.factor = number_in(fields, "factor", rate.factor, 0, 1e6);
  rate.every = integer_in(fields, "every", rate.every, 1, most);
  rate.warmup_steps = integer_in(fields, "warmup_steps", rate.warmup_steps, 0, most);
  return rate;
}

Words read_paths(const Fields& fields, const std::string& key) {
  const Document& value = fields.need(key);
  if (value.kind == Document::Kind::scalar) return {value.scalar};
  if (value.kind != Document::Kind::list || value.items.empty())
    fields.refuse(value, key + " must be a path or a list of paths");
  Words paths;
  for (const Document& item : value.items) paths.push_back(fields.word(item, key));
  return paths;
}

DataOptions read_data(const Document& value, const std::string& origin) {
  static const Words kinds{"synthetic", "npy"};
  static const Words known{"kind", "samples", "seed", "inputs", "targets", "shuffle"};
  const Document map = as_map(value, "kind");
  const Fields fields(map, origin, known);
  DataOptions data;
  data.kind = static_cast<DataOptions::Kind>(choice_or_first(fields, "kind", kinds));
  const bool npy = data.kind == DataOptions::Kind::npy;
  for (const std::string key : {"samples", "seed"}) {
    if (npy && fields.find(key) != nullptr)
      fields.refuse(*fields.find(key), key + " belongs to synthetic data; remove it");
  }
  for (const std::string key : {"inputs", "targets"}) {
    if (!npy && fields.find(key) != nullptr)
      fields.refuse(*fields.find(key), key + " belongs to kind: npy; set it or remove this");
  }
  data.samples = integer_in(fields, "samples", data.samples, 1, most);
  data.seed = read_seed(fields);
  data.shuffle = fields.flag_or("shuffle", data.shuffle);
  if (npy) {
    data.inputs = read_paths(fields, "inputs");
    data.targets = read_paths(fields, "targets");
  }
  return data;
}

model::SettingValues read_settings(const Document& value, const std::string& origin) {
  Words keys;
  for (const auto& entry : value.entries) keys.push_back(entry.first);
  const Fields fields(value, origin, keys);
  model::SettingValues settings;
  for (const std::string& key : keys) settings[key] = fields.word(key);
  return settings;
}

void read_length(const Fields& fields, RunFile& run) {
  run.epochs = integer_in(fields, "epochs", 0, 1, most);
  run.steps = integer_in(fields, "steps", 0, 1, most);
  if (run.epochs > 0 && run.steps > 0) fields.refuse(fields.need("steps"), "give epochs or steps, not both");
  if (run.epochs == 0 && run.steps == 0) run.epochs = 1;
}

}  // namespace

RunFile read_run(const Document& document, const std::string& origin) {
  static const Words known{"model",   "input",     "settings",      "mini_batch", "epochs",
                           "steps",   "optimizer", "learning_rate", "data",       "seed",
                           "threads", "weights",   "output",        "overwrite",  "save_every"};
  const Fields fields(document, origin, known);
  RunFile run;
  run.model = fields.word("model");
  run.network.input = word_or(fields, "input", "");
  run.network.mini_batch = integer_in(fields, "mini_batch", 1, 1, most);
  if (const Document* value = fields.find("settings")) run.network.settings = read_settings(*value, origin);
  read_length(fields, run);
  if (const Document* value = fields.find("optimizer")) run.optimizer = read_optimizer(*value, origin);
  if (const Document* value = fields.find("learning_rate")) run.learning_rate = read_learning_rate(*value, origin);
  if (const Document* value = fields.find("data")) run.data = read_data(*value, origin);
  run.seed = read_seed(fields);
  run.threads = static_cast<int>(integer_in(fields, "threads", 0, 0, 4096));
  run.weights = word_or(fields, "weights", "");
  run.output = word_or(fields, "output", "");
  run.overwrite = fields.flag_or("overwrite", false);
  run.save_every = integer_in(fields, "save_every", 0, 0, most);
  return run;
}

RunFile load_run(const std::string& path, const std::vector<std::string>& overrides) {
  Document document = model::parse_document(data::read_text(path), path);
  for (const std::string& text : overrides) apply_override(document, text);
  return read_run(document, path);
}

}  // namespace orthant::train
