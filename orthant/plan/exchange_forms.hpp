#pragma once

#include "orthant/plan/plan.hpp"

#include <array>
#include <span>
#include <string>

namespace orthant::plan {

// The forms that there are of each sort of exchange.
inline constexpr std::array forms_of_buckets{Form::direct, Form::recursive, Form::ring, Form::mpi};
inline constexpr std::array forms_of_sums{Form::direct, Form::recursive, Form::tree, Form::mpi};
inline constexpr std::array forms_of_gathers{Form::direct, Form::recursive};
inline constexpr std::array all_forms{Form::direct, Form::recursive, Form::ring, Form::tree, Form::mpi};

/// The form with this name; throws Error that begins with `where` if it is none of `known`.
Form form_from(const std::string& name, const std::string& where, std::span<const Form> known);

/// One form for all groups, whatever their size. Sorts of exchanges that do not have it are recursive then.
ExchangeForms forced(Form form, bool two_levels);

}  // namespace orthant::plan
