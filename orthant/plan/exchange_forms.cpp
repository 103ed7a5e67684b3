#include "orthant/plan/exchange_forms.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/nearest.hpp"

#include <algorithm>
#include <array>
#include <vector>

namespace orthant::plan {
namespace {

constexpr std::array all_forms{Form::direct, Form::recursive, Form::ring, Form::mpi};

}  // namespace

const char* name_of(Form form) {
  switch (form) {
    case Form::direct: return "direct";
    case Form::recursive: return "recursive";
    case Form::ring: return "ring";
    case Form::mpi: return "mpi";
  }
  return "";
}

Form form_from(const std::string& name, const std::string& where, bool is_bucket) {
  std::vector<std::string> known;
  for (const Form form : all_forms) {
    if (name == name_of(form) && (is_bucket || form != Form::ring)) return form;
    if (is_bucket || form != Form::ring) known.emplace_back(name_of(form));
  }
  base::fail(base::Exit::bad_data, "{}: unknown form '{}'{}", where, name, base::suggestion(name, known));
}

ExchangeForms forced(Form form, bool two_levels) {
  ExchangeForms forms{.two_levels = two_levels};
  forms.sums = {.form = form == Form::ring ? Form::recursive : form, .direct_up_to = 0};
  forms.buckets = {.form = form, .direct_up_to = 0};
  return forms;
}

}  // namespace orthant::plan
