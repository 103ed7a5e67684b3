#include "orthant/train/validation_options.hpp"

#include "orthant/train/run_fields.hpp"

#include <limits>

namespace orthant::train {
namespace {

using model::Document;
using model::Fields;

void check_kind(const Fields& fields, const std::string& key, bool fits, const char* kind) {
  if (fits || fields.find(key) == nullptr) return;
  fields.refuse(*fields.find(key), "validation." + key + " goes with data of kind: " + kind + "; use fraction instead");
}

}  // namespace

ValidationOptions read_validation(const Document& value, const std::string& origin, const DataOptions& data) {
  static const Words known{"fraction", "files", "inputs", "targets", "every"};
  const Document map = as_map(value, "fraction");
  const Fields fields(map, origin, known);
  ValidationOptions validation;
  check_kind(fields, "files", data.kind == DataOptions::Kind::hdf5, "hdf5");
  for (const char* key : {"inputs", "targets"}) check_kind(fields, key, data.kind == DataOptions::Kind::npy, "npy");
  validation.fraction = number_in(fields, "fraction", 0, 0, 0.9);
  if (fields.find("files") != nullptr) validation.files = read_paths(fields, "files");
  if (fields.find("inputs") != nullptr || fields.find("targets") != nullptr) {
    validation.inputs = read_paths(fields, "inputs");
    validation.targets = read_paths(fields, "targets");
  }
  validation.every = integer_in(fields, "every", 0, 0, std::numeric_limits<std::int32_t>::max());
  if (validation.fraction > 0 && validation.has_files())
    fields.refuse(fields.need("fraction"), "give a fraction of the data or files of their own, not both");
  return validation;
}

DataOptions validation_data(const ValidationOptions& validation, DataOptions data) {
  data.files = validation.files;
  data.inputs = validation.inputs;
  data.targets = validation.targets;
  return data;
}

}  // namespace orthant::train
