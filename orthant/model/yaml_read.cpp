#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/nearest.hpp"
#include "orthant/model/printable.hpp"
#include "orthant/model/yaml.hpp"
#include "orthant/model/yaml_ops.hpp"

#include <algorithm>
#include <array>
#include <unordered_map>

namespace orthant::model {
namespace {

using base::Exit;
using base::fail;

constexpr std::size_t most_layers = 100'000;

const std::vector<std::string>& loss_words() {
  static const std::vector<std::string> words{name_of(LossKind::mean_squared_error),
                                              name_of(LossKind::mean_absolute_error), name_of(LossKind::cross_entropy),
                                              name_of(LossKind::soft_dice)};
  return words;
}

/// Runs what does not know the file, and puts file and line before its errors.
template <class Work>
auto at(const std::string& origin, int line, Work work) {
  try {
    return work();
  } catch (const base::Error& error) {
    fail(Exit::bad_data, "{}:{}: {}", origin, line, error.what());
  }
}

/// Reads one file; holds what its layers refer to.
class Reader {
 public:
  Reader(const Document& document, const std::string& origin)
      : origin_(origin),
        fields_(document, origin, std::array<std::string, 5>{"name", "input", "layers", "outputs", "loss"}) {}

  Graph read(const std::optional<InputShape>& replaced, std::int64_t mini_batch, const std::string& output) {
    const InputShape own = read_input(mini_batch);
    if (replaced && replaced->spatial_count != own.spatial_count) {
      fail(Exit::usage, "input {} for the {}-D network of {}; its own is {}", input_text(*replaced), own.spatial_count,
           origin_, input_text(own));
    }
    const InputShape& input = replaced ? *replaced : own;
    const Loss loss = read_loss();
    const std::string name = fields_.word("name");
    const int line = fields_.need("name").line;
    GraphBuilder builder = at(origin_, line, [&] { return GraphBuilder(name, input.spatial_count, input.shape); });
    indices_["input"] = 0;
    const Document& layers = fields_.need("layers");
    if (layers.kind != Document::Kind::list) fields_.refuse(layers, "layers must be a list, one entry per layer");
    if (layers.items.size() > most_layers)
      fields_.refuse(layers, fmt::format("{} layers; at most {} are supported", layers.items.size(), most_layers));
    for (const Document& layer : layers.items) add_layer(builder, layer, input.spatial_count);
    const std::vector<std::string> outputs = read_outputs();
    if (outputs.empty() && !output.empty()) {
      fail(Exit::usage, "{}: output '{}' of a network with one output; leave it out, or list 'outputs' in the file",
           origin_, printable(output));
    }
    if (outputs.empty()) return at(origin_, layers.line, [&] { return builder.finish(loss); });
    const std::string& chosen = output.empty() ? outputs.front() : output;
    if (std::find(outputs.begin(), outputs.end(), chosen) == outputs.end())
      fail(Exit::usage, "{}: no output '{}'{}", origin_, printable(chosen), base::suggestion(chosen, outputs));
    return at(origin_, layers.line, [&] { return builder.finish(loss, outputs, chosen); });
  }

 private:
  InputShape read_input(std::int64_t mini_batch) const {
    const Document& text = fields_.need("input");
    return at(origin_, text.line, [&] {
      const std::string word = text.kind == Document::Kind::scalar ? text.scalar : "";
      return parse_input(word, mini_batch);
    });
  }

  std::vector<std::string> read_outputs() const {
    std::vector<std::string> names;
    const Document* list = fields_.find("outputs");
    if (list == nullptr) return names;
    if (list->kind != Document::Kind::list || list->items.empty())
      fields_.refuse(*list, "outputs must be a list with the name of at least one layer");
    for (const Document& item : list->items) names.push_back(fields_.word(item, "outputs"));
    return names;
  }

  LossTerm read_term(const Document& item) const {
    if (item.kind == Document::Kind::scalar) return {.kind = loss_kind(item)};
    const Fields term(item, origin_, std::array<std::string, 2>{"kind", "weight"});
    return {.kind = loss_kind(term.need("kind")), .weight = term.number_or("weight", 1)};
  }

  LossKind loss_kind(const Document& word) const {
    return static_cast<LossKind>(fields_.choice(word, "loss", loss_words()));
  }

  Loss read_loss() const {
    const Document& value = fields_.need("loss");
    Loss loss;
    if (value.kind != Document::Kind::list) loss.terms.push_back(read_term(value));
    for (const Document& item : value.items) loss.terms.push_back(read_term(item));
    return loss;
  }

  const OpWord& find_op(const Document& layer) const {
    std::vector<std::string> known;
    for (const OpWord& word : op_words()) known.push_back(word.word);
    const auto key =
        std::find_if(layer.entries.begin(), layer.entries.end(), [](const auto& entry) { return entry.first == "op"; });
    if (key == layer.entries.end()) fields_.refuse(layer, "a layer without 'op'; write {name: ..., op: ..., ...}");
    return op_words()[fields_.choice(key->second, "op", known)];
  }

  int source(const Fields& fields, const Document& value) const {
    const std::string name = fields.word(value, "from");
    if (const auto found = indices_.find(name); found != indices_.end()) return found->second;
    std::vector<std::string> known;
    for (const auto& entry : indices_) known.push_back(entry.first);
    const std::string close = base::nearest(name, known);
    fields.refuse(
        value, fmt::format("from names no layer above it{}", close.empty() ? "" : "; did you mean '" + close + "'?"));
  }

  std::vector<int> sources(const Fields& fields, int last) const {
    const Document* from = fields.find("from");
    if (from == nullptr) return {last};
    if (from->kind != Document::Kind::list) return {source(fields, *from)};
    std::vector<int> srcs;
    for (const Document& item : from->items) srcs.push_back(source(fields, item));
    if (srcs.empty()) fields.refuse(*from, "from is an empty list; leave it out to read the layer above");
    return srcs;
  }

  void add_layer(GraphBuilder& builder, const Document& layer, int spatial_count) {
    const OpWord& word = find_op(layer);
    std::vector<std::string> keys{"name", "op", "from"};
    keys.insert(keys.end(), word.keys.begin(), word.keys.end());
    const Fields fields(layer, origin_, keys);
    const std::string name = fields.word("name");
    const std::vector<int> srcs = sources(fields, builder.last());
    const LayerText text{.fields = fields, .spatial_count = spatial_count, .src = builder.shape(srcs.front())};
    const Op op = word.read(text);
    indices_[name] = at(origin_, layer.line, [&] { return builder.add(name, op, srcs); });
  }

  const std::string& origin_;
  Fields fields_;
  std::unordered_map<std::string, int> indices_;
};

}  // namespace

Graph read_yaml(const std::string& text, const std::string& origin, const std::optional<InputShape>& input,
                std::int64_t mini_batch, const std::string& output) {
  const Document document = parse_document(text, origin);
  return Reader(document, origin).read(input, mini_batch, output);
}

}  // namespace orthant::model
