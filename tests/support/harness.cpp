#include "tests/support/harness.hpp"

#include "orthant/base/format.hpp"
#include "tests/support/compare.hpp"
#include "tests/support/definitions.hpp"
#include "tests/support/random.hpp"
#include "tests/support/region.hpp"

#include <omp.h>

#include <algorithm>
#include <cmath>

namespace orthant::test {
namespace {

using tensor::Shape;

constexpr kernels::Context context{.step = 3, .seed = 17, .learning_rate = 0.125};

/// The memory of a case before it runs, and what it must hold afterwards.
struct Problem {
  bool whole_numbers = false;
  std::vector<Argument> arguments;
  std::vector<int> region_of;  ///< per argument; -1 for null
  std::vector<Region> before;
  std::vector<Numbers> expected;
  std::vector<std::vector<char>> written;  ///< per region and item
};

std::vector<int> assign_regions(const Case& one, std::size_t count) {
  std::vector<int> region_of(count);
  int next = 0;
  for (int i = 0; i < static_cast<int>(count); ++i) {
    const auto is_i = [i](const std::pair<int, int>& pair) { return pair.first == i; };
    const auto alias = std::find_if(one.shared.begin(), one.shared.end(), is_i);
    if (std::find(one.nulls.begin(), one.nulls.end(), i) != one.nulls.end()) {
      region_of[static_cast<std::size_t>(i)] = -1;
    } else if (alias != one.shared.end()) {
      region_of[static_cast<std::size_t>(i)] = region_of.at(static_cast<std::size_t>(alias->second));
    } else {
      region_of[static_cast<std::size_t>(i)] = next++;
    }
  }
  return region_of;
}

/// A tap of the pooling's window at dst position i that lies inside src.
double some_tap(const model::PoolTask& task, const Shape& i, Random& random) {
  std::vector<std::int64_t> inside;
  for_each_tap(task.window, i, task.src.extents, [&](const Shape&, std::int64_t tap) { inside.push_back(tap); });
  const double chosen_tap = random.integer(0, std::max(static_cast<int>(inside.size()) - 1, 0));
  return inside.empty() ? 0 : static_cast<double>(inside[static_cast<std::size_t>(chosen_tap)]);
}

/// A number of a peak that is not the item: the place of a cell of src, or of one of a few cells.
double some_place(const model::Task& task, const Shape& i, Random& random) {
  if (i.w % model::peak_numbers == 2) return 0;
  const auto* peaks = std::get_if<model::PeaksTask>(&task);
  if (!peaks) return random.integer(0, 5);
  std::int64_t place = 0;
  for (const tensor::Dim dim : tensor::spatial_dims) {
    const auto cell = static_cast<std::int64_t>(random.integer(0, static_cast<int>(peaks->src.extents[dim]) - 1));
    place = place * peaks->global_src[dim] + peaks->first_src[dim] + cell;
  }
  return static_cast<double>(place);
}

std::int64_t classes_of(const model::Task& task) {
  if (const auto* sums = std::get_if<model::LossSumsTask>(&task)) return sums->output.extents.c;
  return std::get<model::LossTask>(task).output.extents.c;
}

double some_value(const model::Task& task, const Argument& argument, const Shape& i, bool whole_numbers,
                  Random& random) {
  switch (argument.content) {
    case Content::taps: return some_tap(std::get<model::PoolTask>(task), i, random);
    case Content::labels: return random.integer(0, static_cast<int>(classes_of(task)) - 1);
    case Content::peaks:
      if (i.w % model::peak_numbers > 0) return some_place(task, i, random);
      break;
    case Content::moments:
      if (i.c < argument.layout.extents.c / 2) break;
      return whole_numbers ? random.integer(5, 9) : random.real(1, 2);
    case Content::positive: return whole_numbers ? random.integer(1, 4) : random.real(0.25, 2);
    case Content::numbers: break;
  }
  return whole_numbers ? random.integer(-3, 3) : random.real(-1, 1);
}

/// Regions large enough for the arguments that lie in them.
void allocate(Problem& problem) {
  const int regions = *std::max_element(problem.region_of.begin(), problem.region_of.end()) + 1;
  for (int region = 0; region < regions; ++region) {
    std::int64_t items = 0;
    ItemType type = ItemType::float32;
    for (std::size_t a = 0; a < problem.arguments.size(); ++a) {
      if (problem.region_of[a] != region) continue;
      items = std::max(items, end_of(problem.arguments[a].layout));
      type = problem.arguments[a].type;
    }
    problem.before.emplace_back(type, items);
    problem.written.emplace_back(static_cast<std::size_t>(items), char{0});
  }
}

/// Fills what is read, marks what is written.
void fill(const Case& one, Problem& problem, Random& random) {
  for (std::size_t a = 0; a < problem.arguments.size(); ++a) {
    if (problem.region_of[a] < 0) continue;
    const auto region = static_cast<std::size_t>(problem.region_of[a]);
    const Argument& argument = problem.arguments[a];
    for_each_item(argument.layout.extents, [&](const Shape& i) {
      const std::size_t place = item(argument.layout, i);
      if (argument.access != Access::write) {
        const double value = some_value(one.task, argument, i, problem.whole_numbers, random);
        problem.before[region].set(static_cast<std::int64_t>(place), value);
      }
      if (argument.access != Access::read) problem.written[region].at(place) = 1;
    });
  }
}

Problem make_problem(const Case& one, bool whole_numbers, std::uint64_t seed) {
  Problem problem;
  problem.whole_numbers = whole_numbers;
  problem.arguments = arguments_of(one.task);
  problem.region_of = assign_regions(one, problem.arguments.size());
  allocate(problem);
  Random random(seed);
  fill(one, problem, random);
  for (const Region& region : problem.before) problem.expected.push_back(region.numbers());
  std::vector<Numbers*> arguments;
  for (const int region : problem.region_of) {
    arguments.push_back(region < 0 ? nullptr : &problem.expected[static_cast<std::size_t>(region)]);
  }
  execute_reference(one.task, context, arguments);
  return problem;
}

/// The smallest norm that errors are measured against. Sums of terms of the size of one may cancel; normalisation's
/// diff_x is the difference of such terms in every item.
double floor_of(const Case& one, std::size_t argument, std::size_t items) {
  const auto root = std::sqrt(static_cast<double>(items));
  if (std::holds_alternative<model::NormTask>(one.task)) {
    const bool diff_x = std::get<model::NormTask>(one.task).pass == model::Pass::backward_data && argument == 8;
    return diff_x ? root : 0.25 * root;
  }
  const bool sums =
      std::holds_alternative<model::ConvTask>(one.task) || std::holds_alternative<model::NormSumsTask>(one.task) ||
      std::holds_alternative<model::DenseTask>(one.task) || std::holds_alternative<model::BiasGradientTask>(one.task) ||
      std::holds_alternative<model::ProductSumsTask>(one.task);
  return sums ? 0.25 * root : 0;
}

/// Compares one written argument; "" if it is right.
std::string compare(const Case& one, const Problem& problem, const Numbers& actual, std::size_t argument) {
  const tensor::Layout& layout = problem.arguments[argument].layout;
  const Numbers& all = problem.expected[static_cast<std::size_t>(problem.region_of[argument])];
  const bool is_index = problem.arguments[argument].content == Content::taps;
  const bool exact = is_index || (problem.whole_numbers && is_exact_on_integers(one.task));
  Numbers got, wanted;
  got.reserve(static_cast<std::size_t>(tensor::volume(layout.extents)));
  wanted.reserve(got.capacity());
  std::string wrong;
  for_each_item(layout.extents, [&](const Shape& i) {
    const std::size_t place = item(layout, i);
    got.push_back(actual[place]);
    wanted.push_back(all[place]);
    const bool right = exact ? got.back() == wanted.back() : std::isfinite(got.back());
    if (wrong.empty() && !right) {
      wrong = fmt::format("item {} is {} instead of {}", tensor::to_text(i), got.back(), wanted.back());
    }
  });
  const double error = relative_error(got, wanted, floor_of(one, argument, got.size()));
  if (wrong.empty() && error > tolerance(one.task)) {
    wrong = fmt::format("relative error {:.3g}, tolerated {:.3g}", error, tolerance(one.task));
  }
  return wrong;
}

std::vector<Region> execute(kernels::Primitive& primitive, const Problem& problem, Region& scratch) {
  std::vector<Region> regions = problem.before;
  std::vector<void*> arguments;
  for (const int region : problem.region_of) {
    arguments.push_back(region < 0 ? nullptr : regions[static_cast<std::size_t>(region)].data());
  }
  primitive.execute(context, arguments, scratch.data());
  return regions;
}

std::string check(const Case& one, const Problem& problem, kernels::Primitive& primitive) {
  Region scratch(ItemType::uint8, primitive.scratch_bytes());
  const std::vector<Region> first = execute(primitive, problem, scratch);
  for (std::size_t a = 0; a < problem.arguments.size(); ++a) {
    if (problem.region_of[a] < 0) continue;
    const auto region = static_cast<std::size_t>(problem.region_of[a]);
    const char* name = problem.arguments[a].name;
    if (!first[region].guards_are_intact() ||
        !first[region].agrees_outside(problem.before[region], problem.written[region])) {
      return fmt::format("{}: wrote where it must not", name);
    }
    if (problem.arguments[a].access == Access::read) continue;
    const std::string wrong = compare(one, problem, first[region].numbers(), a);
    if (!wrong.empty()) return fmt::format("{}: {}", name, wrong);
  }
  if (!scratch.guards_are_intact()) return "wrote outside its scratch memory";
  const std::vector<Region> second = execute(primitive, problem, scratch);
  for (std::size_t r = 0; r < first.size(); ++r) {
    if (!first[r].same_bytes(second[r])) return "a second run gives other bits";
  }
  return "";
}

}  // namespace

Make chosen(const model::Task& task) {
  return [task](int threads) {
    std::vector<std::unique_ptr<kernels::Primitive>> one;
    one.push_back(kernels::make_primitive(task, threads));
    return one;
  };
}

std::string check(const Case& one, const Make& make) {
  const std::vector<Problem> problems{make_problem(one, true, 1), make_problem(one, false, 2)};
  for (const int threads : {1, 2, 3}) {
    omp_set_num_threads(threads);
    for (const auto& primitive : make(threads)) {
      for (const Problem& problem : problems) {
        const std::string wrong = check(one, problem, *primitive);
        if (wrong.empty()) continue;
        const char* data = problem.whole_numbers ? "whole numbers" : "reals";
        return fmt::format("{} with {} threads on {}: {}", primitive->name(), threads, data, wrong);
      }
    }
  }
  return "";
}

}  // namespace orthant::test
