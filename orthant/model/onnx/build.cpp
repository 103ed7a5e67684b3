#include "orthant/model/onnx/build.hpp"

#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/model/onnx/names.hpp"
#include "orthant/model/printable.hpp"
#include "orthant/model/stored.hpp"

#include <algorithm>
#include <map>
#include <memory>
#include <set>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;
using Role = Parameter::Role;

constexpr std::size_t most_lines = 40;

std::vector<bool> needed_for(const std::vector<Item>& items, int output) {
  std::vector<bool> needed(items.size(), false);
  needed[static_cast<std::size_t>(output)] = true;
  for (auto i = static_cast<std::size_t>(output) + 1; i-- > 0;) {
    if (!needed[i]) continue;
    for (const int src : items[i].srcs) needed[static_cast<std::size_t>(src)] = true;
  }
  return needed;
}

std::string place_of(const Item& item) {
  return fmt::format("{} at '{}'", printable(item.onnx_op), printable(item.node.empty() ? "?" : item.node, 200));
}

/// Throws an Error that lists the lines.
[[noreturn]] void fail_with(const std::string& path, const std::vector<std::string>& lines) {
  if (lines.size() == 1) fail(Exit::bad_data, "{}: {}", path, lines.front());
  std::string text = fmt::format("{}: {} places are not supported:", path, lines.size());
  for (std::size_t i = 0; i < lines.size() && i < most_lines; ++i) text += "\n  " + lines[i];
  if (lines.size() > most_lines) text += fmt::format("\n  and {} more", lines.size() - most_lines);
  throw base::Error(Exit::bad_data, text);
}

/// Makes nodes of items, one after the other.
class Builder {
 public:
  Builder(const ModelFile& file, const Importer& importer, const Wanted& wanted)
      : file_(file),
        importer_(importer),
        wanted_(wanted),
        builder_(wanted.name, wanted.spatial_count, wanted.sample),
        place_(importer.items().size(), 0) {}

  Graph graph() {
    const std::vector<Item>& items = importer_.items();
    const std::vector<bool> needed = needed_for(items, wanted_.output);
    refuse_symbols(needed);
    for (std::size_t i = 1; i < items.size(); ++i) {
      if (needed[i]) add(i);
    }
    if (!lines_.empty()) fail_with(file_.path, lines_);
    if (wanted_.output == 0) fail(Exit::bad_data, "{}: the output is the input; there is nothing to train", file_.path);
    Graph graph = builder_.finish(wanted_.loss);
    for (auto& [node, stored] : stored_) graph.nodes[static_cast<std::size_t>(node)].stored = std::move(stored);
    return graph;
  }

 private:
  [[nodiscard]] static bool has_nodes(const Symbol& symbol) { return symbol.op == "sub" || symbol.op == "add"; }

  void refuse_symbols(const std::vector<bool>& needed) {
    const std::vector<Item>& items = importer_.items();
    for (std::size_t i = 0; i < items.size(); ++i) {
      const auto* symbol = needed[i] ? std::get_if<Symbol>(&items[i].op) : nullptr;
      if (symbol == nullptr || has_nodes(*symbol) || symbol->trouble.empty()) continue;
      const std::string line = fmt::format("{}: {}", place_of(items[i]), symbol->trouble);
      if (std::find(lines_.begin(), lines_.end(), line) == lines_.end()) lines_.push_back(line);
    }
    if (!lines_.empty()) fail_with(file_.path, lines_);
  }

  void add(std::size_t index) {
    const Item& item = importer_.items()[index];
    std::vector<int> srcs;
    for (const int src : item.srcs) srcs.push_back(place_[static_cast<std::size_t>(src)]);
    try {
      const auto* symbol = std::get_if<Symbol>(&item.op);
      place_[index] = symbol != nullptr ? add_symbol(*symbol, item, srcs)
                                        : builder_.add(names_.of(item), std::get<Op>(item.op), srcs);
      bind(place_[index], item);
    } catch (const base::Error& error) {
      if (error.code() != Exit::bad_data) throw;
      lines_.push_back(fmt::format("{}: {}", place_of(item), error.what()));
      // What reads it cannot be judged.
      fail_with(file_.path, lines_);
    }
  }

  int add_symbol(const Symbol& symbol, const Item& item, const std::vector<int>& srcs) {
    const std::string name = names_.of(item);
    if (symbol.op == "add") return builder_.add(name, Scale{.factor = 1, .offset = symbol.number}, srcs);
    const auto spread = [&](int src, const char* suffix) {
      if (tensor::spatial(builder_.shape(src)) == tensor::spatial(item.shape)) return src;
      return builder_.add(name + suffix, Resize{.mode = ResizeMode::nearest, .size = tensor::spatial(item.shape)},
                          {src});
    };
    const int from = spread(srcs[0], ".cells");
    const int minus = builder_.add(name + ".minus", Scale{.factor = -1}, {srcs[1]});
    return builder_.add(name, Add{}, {from, spread(minus, ".minus_cells")});
  }

  void bind(int node, const Item& item) {
    for (const Binding& binding : item.bindings) {
      Stored stored{.role = binding.role, .name = {}, .extents = {}, .view = {}, .strides = {}};
      const Constant& constant = binding.constant;
      const std::int64_t count = item_count(constant.extents);
      const bool whole =
          constant.tensor != nullptr && constant.offset == 0 && item_count(constant.tensor->extents) == count;
      if (!constant.computed_from.empty())
        fail(Exit::bad_data, "its weights are computed from parameter '{}'; only parameters themselves are supported",
             printable(constant.computed_from));
      if (is_parameter(constant) && whole) {
        stored.name = name_of(constant);
        stored.extents = constant.tensor->extents;
        stored.view = constant.extents;
        stored.strides = constant.strides;
        if (!taken_.insert(stored.name).second)
          fail(Exit::bad_data,
               "parameter '{}' is used by two layers; shared weights are not supported, give each layer its own",
               printable(stored.name));
      } else {
        stored.name = names_.last() + Names::suffix(binding.role);
        while (!taken_.insert(stored.name).second) stored.name += "_";
        stored.extents = constant.extents;
        stored.view = {count};
        stored.strides = {1};
        stored.constant = !binding.trainable && binding.role != Role::running_mean && binding.role != Role::running_var;
      }
      if (!wanted_.random_weights || stored.constant) stored.fill = reader(constant);
      stored_[node].push_back(std::move(stored));
    }
  }

  /// Copies what it needs of the file: the graph outlives it.
  static std::function<void(std::span<float>)> reader(const Constant& constant) {
    if (constant.numbers != nullptr) {
      return [numbers = constant.numbers](std::span<float> into) {
        std::transform(numbers->begin(), numbers->end(), into.begin(),
                       [](double one) { return static_cast<float>(one); });
      };
    }
    const auto tensor = std::make_shared<const Tensor>(*constant.tensor);
    return [tensor, constant](std::span<float> into) { read_view(*tensor, constant, into); };
  }

  static void read_view(const Tensor& tensor, const Constant& constant, std::span<float> into) {
    std::int64_t last = constant.offset;
    for (std::size_t i = 0; i < constant.extents.size(); ++i) last += (constant.extents[i] - 1) * constant.strides[i];
    std::vector<float> items(static_cast<std::size_t>(last - constant.offset + 1));
    read_items(tensor, constant.offset, items);
    const Stored view{
        .role = Role::weight, .name = {}, .extents = {}, .view = constant.extents, .strides = constant.strides};
    from_stored(view, items, into);
  }

  const ModelFile& file_;
  const Importer& importer_;
  const Wanted& wanted_;
  GraphBuilder builder_;
  std::vector<int> place_;  ///< of every item among the nodes
  std::map<int, std::vector<Stored>> stored_;
  std::set<std::string> taken_;
  std::vector<std::string> lines_;
  Names names_;
};

}  // namespace

Graph build(const ModelFile& file, const Importer& importer, const Wanted& wanted) {
  Graph graph = Builder(file, importer, wanted).graph();
  graph.remarks = importer.remarks();
  return graph;
}

}  // namespace orthant::model::onnx
