#include "orthant/train/data_options.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/train/run_fields.hpp"

#include <limits>

namespace orthant::train {
namespace {

using model::Document;
using model::Fields;
using Kind = DataOptions::Kind;

constexpr std::int64_t most_samples = std::numeric_limits<std::int32_t>::max();

/// A key that only some kinds have.
struct KindKey {
  const char* key;
  Kind kind;
};

void check_kinds(const Fields& fields, Kind kind, const Words& kinds) {
  for (const KindKey& known :
       {KindKey{"samples", Kind::synthetic}, KindKey{"seed", Kind::synthetic}, KindKey{"inputs", Kind::npy},
        KindKey{"targets", Kind::npy}, KindKey{"files", Kind::hdf5}, KindKey{"input_key", Kind::hdf5},
        KindKey{"target_key", Kind::hdf5}, KindKey{"axes", Kind::hdf5}}) {
    const Document* value = fields.find(known.key);
    if (value == nullptr || known.kind == kind) continue;
    fields.refuse(*value, fmt::format("{} belongs to kind: {}; set it or remove this", known.key,
                                      kinds[static_cast<std::size_t>(known.kind)]));
  }
}

/// A number or a list of them.
std::vector<double> read_numbers(const Fields& fields, const std::string& key) {
  const Document& value = fields.need(key);
  if (value.kind != Document::Kind::list) return {fields.number(value, key)};
  if (value.items.empty()) fields.refuse(value, key + " must be a number or one per channel");
  std::vector<double> numbers;
  for (const Document& item : value.items) numbers.push_back(fields.number(item, key));
  return numbers;
}

data::sets::Normalise read_normalise(const Document& value, const std::string& origin) {
  static const Words known{"mean", "std"};
  const Fields fields(value, origin, known);
  data::sets::Normalise normalise{.mean = read_numbers(fields, "mean"), .deviation = read_numbers(fields, "std")};
  for (const double deviation : normalise.deviation) {
    if (!(deviation > 0)) fields.refuse(fields.need("std"), fmt::format("std is {}; it must be above 0", deviation));
  }
  return normalise;
}

data::sets::Transform read_transform(const Document& value, const std::string& origin) {
  static const Words known{"log1p", "scale", "normalise"};
  if (value.kind == Document::Kind::scalar) {
    const Document map = as_map(value, "transform");
    static const Words keys{"transform"};
    const Fields fields(map, origin, keys);
    if (fields.choice(value, "transform", known) != 0)
      fields.refuse(value, value.scalar + " needs numbers: {scale: 0.5}");
    return data::sets::Log1p{};
  }
  const Fields fields(value, origin, known);
  if (value.entries.size() != 1) fields.refuse(value, "each transform is an entry of its own: [log1p, {scale: 0.5}]");
  if (fields.find("scale") != nullptr) return data::sets::Scale{fields.number("scale")};
  if (const Document* numbers = fields.find("normalise")) return read_normalise(*numbers, origin);
  fields.refuse(value, "log1p takes no value; write [log1p]");
}

std::vector<data::sets::Transform> read_transforms(const Document& value, const std::string& origin) {
  if (value.kind != Document::Kind::list) return {read_transform(value, origin)};
  std::vector<data::sets::Transform> transforms;
  for (const Document& item : value.items) transforms.push_back(read_transform(item, origin));
  return transforms;
}

data::sets::Augmentation read_augment(const Document& value, const std::string& origin) {
  static const Words known{"flip", "permute"};
  static const Words dims{"d", "h", "w"};
  const Fields fields(value, origin, known);
  data::sets::Augmentation augment{.flip = {}, .permute = fields.flag_or("permute", false)};
  const Document* flip = fields.find("flip");
  if (flip == nullptr) return augment;
  const std::vector<Document> items = flip->kind == Document::Kind::list ? flip->items : std::vector<Document>{*flip};
  for (const Document& item : items) augment.flip.at(fields.choice(item, "flip", dims)) = true;
  return augment;
}

}  // namespace

bool keeps_samples(const DataOptions& options) {
  if (options.store != DataOptions::Store::automatic) return options.store == DataOptions::Store::memory;
  return options.kind != Kind::synthetic;
}

DataOptions read_data(const Document& value, const std::string& origin) {
  static const Words kinds{"synthetic", "npy", "hdf5"};
  static const Words known{"kind",       "samples", "seed",       "inputs",  "targets", "files", "input_key",
                           "target_key", "axes",    "transforms", "augment", "shuffle", "store", "store_limit"};
  static const Words stores{"auto", "memory", "off"};
  const Document map = as_map(value, "kind");
  const Fields fields(map, origin, known);
  DataOptions data;
  data.kind = static_cast<Kind>(choice_or_first(fields, "kind", kinds));
  check_kinds(fields, data.kind, kinds);
  data.samples = integer_in(fields, "samples", data.samples, 1, most_samples);
  data.seed = read_seed(fields);
  data.shuffle = fields.flag_or("shuffle", data.shuffle);
  data.store = static_cast<DataOptions::Store>(choice_or_first(fields, "store", stores));
  data.store_limit = bytes_or(fields, "store_limit", 0);
  if (data.kind == Kind::npy) {
    data.inputs = read_paths(fields, "inputs");
    data.targets = read_paths(fields, "targets");
  }
  if (data.kind == Kind::hdf5) data.files = read_paths(fields, "files");
  data.hdf5 = {.input_key = word_or(fields, "input_key", ""),
               .target_key = word_or(fields, "target_key", ""),
               .axes = word_or(fields, "axes", "")};
  if (!data.hdf5.axes.empty() && !data::arrays::parse_axes(data.hdf5.axes)) {
    fields.refuse(fields.need("axes"), fmt::format("axes is '{}'; it must be DHWC, CDHW or DHW (2-D: HWC, CHW or HW), "
                                                   "with N in front if files hold many samples",
                                                   data.hdf5.axes));
  }
  if (const Document* transforms = fields.find("transforms")) data.transforms = read_transforms(*transforms, origin);
  if (const Document* augment = fields.find("augment")) data.augment = read_augment(*augment, origin);
  return data;
}

}  // namespace orthant::train
