#pragma once

#include "orthant/plan/plan.hpp"

#include <string>

namespace orthant::plan {

/// The form with this name; throws Error that begins with `where` if there is none, or if sums cannot have it.
Form form_from(const std::string& name, const std::string& where, bool is_bucket);

/// One form for all groups, whatever their size. There is no ring for sums; they are recursive then.
ExchangeForms forced(Form form, bool two_levels);

}  // namespace orthant::plan
