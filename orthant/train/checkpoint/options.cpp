#include "orthant/train/checkpoint/options.hpp"

#include "orthant/train/run_fields.hpp"

#include <limits>

namespace orthant::train::checkpoint {

Options read_options(const model::Document& value, const std::string& origin) {
  static const Words known{"every", "minutes", "keep"};
  if (value.kind == model::Document::Kind::scalar) {
    static const Words words{"off", "on"};
    static const Words key{"checkpoint"};
    const model::Document map = as_map(value, "checkpoint");
    return {.on = model::Fields(map, origin, key).choice(value, "checkpoint", words) == 1};
  }
  const model::Fields fields(value, origin, known);
  Options options;
  options.every = integer_in(fields, "every", 0, 1, std::numeric_limits<std::int32_t>::max());
  options.minutes = number_in(fields, "minutes", options.minutes, 1e-3, 1e6);
  options.keep = integer_in(fields, "keep", options.keep, 1, 1000);
  if (options.every > 0 && fields.find("minutes") != nullptr)
    fields.refuse(fields.need("minutes"), "give every or minutes, not both");
  return options;
}

}  // namespace orthant::train::checkpoint
