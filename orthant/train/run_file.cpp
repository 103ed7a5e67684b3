#include "orthant/train/run_file.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/io/file.hpp"
#include "orthant/train/run_fields.hpp"

#include <limits>

namespace orthant::train {
namespace {

using model::Document;
using model::Fields;

constexpr std::int64_t most = std::numeric_limits<std::int32_t>::max();

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
  optimizer.momentum = number_below(fields, "momentum", 0, 1);
  optimizer.nesterov = fields.flag_or("nesterov", false);
  if (optimizer.nesterov && optimizer.momentum == 0)
    fields.refuse(fields.need("nesterov"), "nesterov needs a momentum above 0");
  const bool decoupled = optimizer.kind == model::OptimizerKind::adamw;
  optimizer.weight_decay = number_in(fields, "weight_decay", decoupled ? 0.01 : 0, 0, 1e6);
  optimizer.beta1 = number_below(fields, "beta1", 0.9, 1);
  optimizer.beta2 = number_below(fields, "beta2", 0.999, 1);
  // Smaller ones are 0, or not normal, in float32, in which updates are computed.
  optimizer.epsilon = number_in(fields, "epsilon", 1e-8, 1.2e-38, 1);
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

model::SettingValues read_settings(const Document& value, const std::string& origin) {
  const Fields fields(value, origin);
  model::SettingValues settings;
  for (const auto& [key, word] : value.entries) settings[key] = fields.word(word, key);
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
  static const Words known{
      "model",         "input",         "settings",   "mini_batch", "epochs",     "steps",
      "optimizer",     "learning_rate", "data",       "seed",       "threads",    "weights",
      "output",        "overwrite",     "save_every", "validation", "checkpoint", "on_checkpoint_error",
      "on_non_finite", "compare_every", "error"};
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
  if (const Document* value = fields.find("validation")) run.validation = read_validation(*value, origin, run.data);
  run.seed = read_seed(fields);
  run.threads = static_cast<int>(integer_in(fields, "threads", 0, 0, 4096));
  static const Words errors{"exact", "fast"};
  if (const Document* value = fields.find("error")) run.error = errors[fields.choice(*value, "error", errors)];
  run.weights = word_or(fields, "weights", "");
  run.output = word_or(fields, "output", "");
  run.overwrite = fields.flag_or("overwrite", false);
  run.save_every = integer_in(fields, "save_every", 0, 0, most);
  if (const Document* value = fields.find("checkpoint")) run.checkpoint = checkpoint::read_options(*value, origin);
  static const Words policies{"warn", "abort"};
  run.checkpoint.aborts_on_error = choice_or_first(fields, "on_checkpoint_error", policies) == 1;
  if (const Document* value = fields.find("on_non_finite")) read_action(*value, origin, run.numbers);
  run.numbers.compare_every = integer_in(fields, "compare_every", run.numbers.compare_every, 0, most);
  return run;
}

RunFile load_run(const std::string& path, const std::vector<std::string>& overrides) {
  Document document = model::parse_document(data::io::read_text(path), path);
  for (const std::string& text : overrides) apply_override(document, text);
  return read_run(document, path);
}

}  // namespace orthant::train
