#include "orthant/plan/exchange_forms.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"

#include <algorithm>
#include <vector>

namespace orthant::plan {
namespace {

GroupForm forced(Form form, std::span<const Form> known) {
  const bool exists = std::find(known.begin(), known.end(), form) != known.end();
  return {.form = exists ? form : Form::recursive, .direct_up_to = 0};
}

}  // namespace

const char* name_of(Form form) {
  switch (form) {
    case Form::direct: return "direct";
    case Form::recursive: return "recursive";
    case Form::ring: return "ring";
    case Form::tree: return "tree";
    case Form::mpi: return "mpi";
  }
  return "";
}

Form form_from(const std::string& name, const std::string& where, std::span<const Form> known) {
  std::vector<std::string> names;
  for (const Form form : known) {
    if (name == name_of(form)) return form;
    names.emplace_back(name_of(form));
  }
  base::fail(base::Exit::bad_data, "{}: unknown form '{}'{}", where, name, base::suggestion(name, names));
}

ExchangeForms forced(Form form, bool two_levels) {
  return {.sums = forced(form, forms_of_sums),
          .buckets = forced(form, forms_of_buckets),
          .gathers = forced(form, forms_of_gathers),
          .two_levels = two_levels};
}

}  // namespace orthant::plan
