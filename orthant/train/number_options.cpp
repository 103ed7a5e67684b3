#include "orthant/train/number_options.hpp"

#include "orthant/train/run_fields.hpp"

#include <limits>

namespace orthant::train {

void read_action(const model::Document& value, const std::string& origin, NumberOptions& numbers) {
  static const Words known{"skip"};
  if (value.kind == model::Document::Kind::scalar) {
    static const Words words{"abort", "rollback"};
    static const Words key{"on_non_finite"};
    const model::Document map = as_map(value, "on_non_finite");
    const model::Fields fields(map, origin, key);
    if (value.scalar == "skip") fields.refuse(value, "skip needs a number of steps in a row: {skip: 3}");
    numbers.action = fields.choice(value, "on_non_finite", words) == 0 ? NumberOptions::Action::abort
                                                                       : NumberOptions::Action::rollback;
    return;
  }
  const model::Fields fields(value, origin, known);
  numbers.action = NumberOptions::Action::skip;
  static_cast<void>(fields.need("skip"));
  numbers.most_skips = integer_in(fields, "skip", 1, 1, std::numeric_limits<std::int32_t>::max());
}

}  // namespace orthant::train
