#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/train/run_file.hpp"

#include <algorithm>

namespace orthant::train {
namespace {

using base::Exit;
using base::fail;
using model::Document;

Document scalar(const std::string& text) {
  return {.kind = Document::Kind::scalar, .line = 0, .scalar = text, .items = {}, .entries = {}};
}

Document empty_map() { return {.kind = Document::Kind::map, .line = 0, .scalar = {}, .items = {}, .entries = {}}; }

/// A map that is being built.
class Writer {
 public:
  Writer& put(const std::string& key, Document value) {
    map_.entries.emplace_back(key, std::move(value));
    return *this;
  }
  Writer& put(const std::string& key, const std::string& text) { return put(key, scalar(text)); }
  Writer& put(const std::string& key, const char* text) { return put(key, scalar(text)); }
  Writer& put(const std::string& key, bool flag) { return put(key, flag ? "true" : "false"); }
  template <class Number>
  Writer& put(const std::string& key, Number number) {
    return put(key, fmt::format("{}", number));
  }
  Writer& put(const std::string& key, const std::vector<std::string>& words) {
    Document list{.kind = Document::Kind::list, .line = 0, .scalar = {}, .items = {}, .entries = {}};
    for (const std::string& word : words) list.items.push_back(scalar(word));
    return put(key, std::move(list));
  }
  [[nodiscard]] const Document& document() const { return map_; }

 private:
  Document map_ = empty_map();
};

Document optimizer_document(const model::Optimizer& optimizer) {
  static constexpr std::array names{"sgd", "adam", "adamw"};
  Writer map;
  map.put("kind", names.at(static_cast<std::size_t>(optimizer.kind)));
  if (optimizer.kind == model::OptimizerKind::sgd) {
    map.put("momentum", optimizer.momentum).put("nesterov", optimizer.nesterov);
  } else {
    map.put("beta1", optimizer.beta1).put("beta2", optimizer.beta2).put("epsilon", optimizer.epsilon);
  }
  return map.put("weight_decay", optimizer.weight_decay).document();
}

Document rate_document(const LearningRate& rate) {
  static constexpr std::array names{"constant", "step", "linear", "polynomial", "cosine"};
  Writer map;
  map.put("schedule", names.at(static_cast<std::size_t>(rate.kind))).put("base", rate.base);
  map.put("end", rate.end).put("power", rate.power).put("factor", rate.factor).put("every", rate.every);
  return map.put("warmup_steps", rate.warmup_steps).document();
}

Document list_of(const std::vector<double>& numbers) {
  Document list{.kind = Document::Kind::list, .line = 0, .scalar = {}, .items = {}, .entries = {}};
  for (const double number : numbers) list.items.push_back(scalar(fmt::format("{}", number)));
  return list;
}

Document transform_document(const data::sets::Transform& transform) {
  if (const auto* scale = std::get_if<data::sets::Scale>(&transform))
    return Writer().put("scale", scale->factor).document();
  if (const auto* normalise = std::get_if<data::sets::Normalise>(&transform)) {
    const Writer numbers = Writer().put("mean", list_of(normalise->mean)).put("std", list_of(normalise->deviation));
    return Writer().put("normalise", numbers.document()).document();
  }
  return scalar("log1p");
}

Document augment_document(const data::sets::Augmentation& augment) {
  std::vector<std::string> flips;
  for (std::size_t i = 0; i < 3; ++i) {
    if (augment.flip.at(i)) flips.emplace_back(tensor::name_of(tensor::spatial_dims.at(i)));
  }
  return Writer().put("flip", flips).put("permute", augment.permute).document();
}

Document data_document(const DataOptions& data) {
  Writer map;
  switch (data.kind) {
    case DataOptions::Kind::synthetic:
      map.put("kind", "synthetic").put("samples", data.samples).put("seed", data.seed);
      break;
    case DataOptions::Kind::npy: map.put("kind", "npy").put("inputs", data.inputs).put("targets", data.targets); break;
    case DataOptions::Kind::hdf5: map.put("kind", "hdf5").put("files", data.files); break;
  }
  if (!data.hdf5.input_key.empty()) map.put("input_key", data.hdf5.input_key);
  if (!data.hdf5.target_key.empty()) map.put("target_key", data.hdf5.target_key);
  if (!data.hdf5.axes.empty()) map.put("axes", data.hdf5.axes);
  if (!data.transforms.empty()) {
    Document list{.kind = Document::Kind::list, .line = 0, .scalar = {}, .items = {}, .entries = {}};
    for (const data::sets::Transform& transform : data.transforms) list.items.push_back(transform_document(transform));
    map.put("transforms", std::move(list));
  }
  if (data.augment.any()) map.put("augment", augment_document(data.augment));
  static constexpr std::array stores{"auto", "memory", "off"};
  map.put("shuffle", data.shuffle).put("store", stores.at(static_cast<std::size_t>(data.store)));
  if (data.store_limit > 0) map.put("store_limit", data.store_limit);
  return map.document();
}

Document validation_document(const ValidationOptions& validation) {
  Writer map;
  if (validation.fraction > 0) map.put("fraction", validation.fraction);
  if (!validation.files.empty()) map.put("files", validation.files);
  if (!validation.inputs.empty()) map.put("inputs", validation.inputs).put("targets", validation.targets);
  return map.put("every", validation.every).document();
}

Document checkpoint_document(const checkpoint::Options& options) {
  if (!options.on) return scalar("off");
  Writer map;
  options.every > 0 ? map.put("every", options.every) : map.put("minutes", options.minutes);
  return map.put("keep", options.keep).document();
}

Document action_document(const NumberOptions& numbers) {
  if (numbers.action == NumberOptions::Action::skip) return Writer().put("skip", numbers.most_skips).document();
  return scalar(numbers.action == NumberOptions::Action::abort ? "abort" : "rollback");
}

Document* find(Document& map, const std::string& key) {
  const auto found =
      std::find_if(map.entries.begin(), map.entries.end(), [&](const auto& entry) { return entry.first == key; });
  return found == map.entries.end() ? nullptr : &found->second;
}

void erase(Document& map, const std::string& key) {
  std::erase_if(map.entries, [&](const auto& entry) { return entry.first == key; });
}

/// Values from the command line have no line.
void forget_lines(Document& value) {
  value.line = 0;
  for (Document& item : value.items) forget_lines(item);
  for (auto& entry : value.entries) forget_lines(entry.second);
}

/// The value under a dotted key, made if it is not there; `whole` is the override for messages.
Document& slot(Document& at, const std::string& key, const std::string& whole) {
  if (at.kind == Document::Kind::null) at = empty_map();
  if (at.kind != Document::Kind::map) {
    fail(Exit::usage, "'{}': the run file has a single value there, not a map; write it out as a map first", whole);
  }
  const std::size_t dot = key.find('.');
  const std::string word = key.substr(0, dot);
  if (word.empty()) fail(Exit::usage, "'{}' has an empty key", whole);
  if (find(at, word) == nullptr) at.entries.emplace_back(word, Document{});
  Document& value = *find(at, word);
  return dot == std::string::npos ? value : slot(value, key.substr(dot + 1), whole);
}

}  // namespace

model::Document to_document(const RunFile& run) {
  Writer map;
  map.put("model", run.model);
  if (!run.network.input.empty()) map.put("input", run.network.input);
  if (!run.network.settings.empty()) {
    Writer settings;
    for (const auto& [key, value] : run.network.settings) settings.put(key, value);
    map.put("settings", settings.document());
  }
  map.put("mini_batch", run.network.mini_batch);
  if (run.epochs > 0) map.put("epochs", run.epochs);
  if (run.steps > 0) map.put("steps", run.steps);
  map.put("optimizer", optimizer_document(run.optimizer)).put("learning_rate", rate_document(run.learning_rate));
  map.put("data", data_document(run.data));
  if (run.validation.any()) map.put("validation", validation_document(run.validation));
  map.put("seed", run.seed).put("threads", run.threads);
  if (!run.error.empty()) map.put("error", run.error);
  if (!run.weights.empty()) map.put("weights", run.weights);
  if (!run.output.empty()) map.put("output", run.output);
  map.put("overwrite", run.overwrite).put("save_every", run.save_every);
  map.put("checkpoint", checkpoint_document(run.checkpoint));
  map.put("on_checkpoint_error", run.checkpoint.aborts_on_error ? "abort" : "warn");
  map.put("on_non_finite", action_document(run.numbers));
  return map.put("compare_every", run.numbers.compare_every).document();
}

void apply_override(model::Document& document, const std::string& key_and_value) {
  const std::size_t equals = key_and_value.find('=');
  if (equals == std::string::npos || equals == 0) {
    fail(Exit::usage, "'{}' is no override; write key=value, e.g. learning_rate.base=0.1", key_and_value);
  }
  const std::string key = key_and_value.substr(0, equals);
  Document value = model::parse_document(key_and_value.substr(equals + 1), "command line: " + key);
  forget_lines(value);
  // Either `epochs` or `steps` says how long a run is, so setting one removes the other.
  if (key == "steps") erase(document, "epochs");
  if (key == "epochs") erase(document, "steps");
  slot(document, key, key_and_value) = std::move(value);
}

}  // namespace orthant::train
