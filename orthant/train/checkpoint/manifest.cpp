#include "orthant/train/checkpoint/manifest.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/error.hpp"
#include "orthant/base/format.hpp"
#include "orthant/base/json.hpp"
#include "orthant/base/json_fields.hpp"
#include "orthant/data/io/crc32c.hpp"
#include "orthant/train/scores_text.hpp"

#include <array>
#include <limits>

namespace orthant::train::checkpoint {
namespace {

using base::Exit;
using base::fail;
using base::Json;
using base::JsonFields;

constexpr std::int64_t most = std::numeric_limits<std::int64_t>::max();
constexpr const char* format_name = "orthant-checkpoint";

std::uint32_t sum_of(std::string_view text) { return data::io::crc32c(std::as_bytes(std::span(text))); }

Json to_json(const tensor::Range& range) { return {range.lo, range.hi}; }

Json to_json(const Tensor& tensor) {
  Json parts = Json::object();
  for (const auto& [name, pieces] : tensor.parts) {
    Json list = Json::array();
    for (const Piece& piece : pieces) {
      list.push_back({{"file", piece.file},
                      {"offset", piece.offset},
                      {"crc32c", piece.crc32c},
                      {"box", {to_json(piece.box.first), to_json(piece.box.second), to_json(piece.box.taps)}}});
    }
    parts[name] = std::move(list);
  }
  return {{"extents", tensor.extents}, {"parts", std::move(parts)}};
}

Json to_json(const std::vector<File>& files) {
  Json list = Json::array();
  for (const File& file : files) list.push_back({{"name", file.name}, {"bytes", file.bytes}, {"blocks", file.blocks}});
  return list;
}

Json to_json(const std::map<std::string, Tensor>& tensors) {
  Json map = Json::object();
  for (const auto& [name, tensor] : tensors) map[name] = to_json(tensor);
  return map;
}

Json or_null(const std::optional<Scores>& scores) { return scores ? train::to_json(*scores) : Json(nullptr); }

Json to_json(const State& state) {
  return {{"run", state.run},
          {"network", state.network},
          {"step", state.step},
          {"epoch", state.epoch},
          {"samples", state.samples},
          {"mini_batch", state.mini_batch},
          {"seed", state.seed},
          {"optimizer", state.optimizer},
          {"learning_rate", state.learning_rate},
          {"validation", or_null(state.validation)},
          {"best", or_null(state.best)},
          {"best_step", state.best_step},
          {"left_out", state.left_out},
          {"settings", state.settings},
          {"plan", state.plan},
          {"ranks", state.ranks},
          {"threads", state.threads},
          {"program", state.program}};
}

/// Numbers from 0 to `limit`.
template <class Number>
std::vector<Number> numbers(const JsonFields& fields, const char* key, std::uint64_t limit) {
  std::vector<Number> list;
  for (const Json& item : fields.list(key)) {
    if (!item.is_number_unsigned() || item.get<std::uint64_t>() > limit)
      fail(Exit::bad_data, "{}: '{}' holds {}, which cannot be", fields.where(), key, item.dump());
    list.push_back(item.get<Number>());
  }
  return list;
}

std::optional<Scores> read_scores(const JsonFields& fields, const char* key) {
  if (fields.need(key).is_null()) return std::nullopt;
  return scores_from_json(fields.need(key), fields.where() + ": " + key);
}

State read_state(const JsonFields& fields) {
  State state{.run = fields.text("run"),
              .network = fields.text("network"),
              .step = fields.whole("step", std::int64_t{0}, most),
              .epoch = fields.whole("epoch", std::int64_t{0}, most),
              .samples = fields.whole("samples", std::int64_t{1}, most),
              .mini_batch = fields.whole("mini_batch", std::int64_t{1}, most),
              .seed = static_cast<std::uint64_t>(fields.whole("seed", std::int64_t{0}, most)),
              .optimizer = fields.text("optimizer"),
              .learning_rate = fields.real("learning_rate", -1e300, 1e300)};
  state.validation = read_scores(fields, "validation");
  state.best = read_scores(fields, "best");
  state.best_step = fields.whole("best_step", std::int64_t{-1}, most);
  state.left_out = numbers<std::int64_t>(fields, "left_out", static_cast<std::uint64_t>(most));
  state.settings = fields.text("settings");
  state.plan = fields.text("plan");
  state.ranks = fields.whole("ranks", 1, std::numeric_limits<int>::max());
  state.threads = fields.whole("threads", 1, std::numeric_limits<int>::max());
  state.program = fields.text("program");
  return state;
}

std::vector<File> read_files(const JsonFields& fields) {
  std::vector<File> files;
  for (const Json& item : fields.list("files")) {
    const JsonFields one(item, fmt::format("{}: file {}", fields.where(), files.size()));
    File file{.name = one.text("name"), .bytes = one.whole("bytes", std::int64_t{0}, most)};
    if (file.name.empty() || file.name.front() == '.' || file.name.find('/') != std::string::npos)
      fail(Exit::bad_data, "{}: '{}' is no name for a file of a checkpoint", one.where(), file.name);
    file.blocks = numbers<std::uint32_t>(one, "blocks", std::numeric_limits<std::uint32_t>::max());
    if (static_cast<std::int64_t>(file.blocks.size()) != (file.bytes + File::block_bytes - 1) / File::block_bytes)
      fail(Exit::bad_data, "{}: {} blocks cannot make up {} bytes", one.where(), file.blocks.size(), file.bytes);
    files.push_back(std::move(file));
  }
  return files;
}

tensor::Range read_range(const Json& list, const std::string& where) {
  const bool usable = list.is_array() && list.size() == 2 && list[0].is_number_unsigned() &&
                      list[1].is_number_unsigned() && list[1].get<std::uint64_t>() <= std::uint64_t{most} &&
                      list[0].get<std::uint64_t>() < list[1].get<std::uint64_t>();
  if (!usable) fail(Exit::bad_data, "{}: {} is no range", where, list.dump());
  return {list[0].get<std::int64_t>(), list[1].get<std::int64_t>()};
}

Piece read_piece(const Json& json, const std::string& where) {
  const JsonFields fields(json, where);
  Piece piece{.file = fields.whole("file", 0, std::numeric_limits<int>::max()),
              .offset = fields.whole("offset", std::int64_t{0}, most),
              .crc32c = static_cast<std::uint32_t>(
                  fields.whole("crc32c", std::int64_t{0}, std::int64_t{std::numeric_limits<std::uint32_t>::max()}))};
  const Json& box = fields.list("box");
  if (box.size() != 3) fail(Exit::bad_data, "{}: a box has three ranges", where);
  piece.box = {read_range(box[0], where), read_range(box[1], where), read_range(box[2], where)};
  return piece;
}

Tensor read_tensor(const Json& json, const std::string& where) {
  const JsonFields fields(json, where);
  Tensor tensor{.extents = numbers<std::int64_t>(fields, "extents", std::uint64_t{1} << 40U)};
  const JsonFields parts = fields.object("parts");
  for (const auto& [name, list] : fields.need("parts").items()) {
    for (const Json& piece : parts.list(name.c_str()))
      tensor.parts[name].push_back(read_piece(piece, fmt::format("{}, part '{}'", where, name)));
  }
  return tensor;
}

std::map<std::string, Tensor> read_tensors(const JsonFields& fields) {
  std::map<std::string, Tensor> tensors;
  const JsonFields object = fields.object("tensors");
  for (const auto& [name, json] : fields.need("tensors").items())
    tensors[name] = read_tensor(json, fmt::format("{}: tensor '{}'", fields.where(), name));
  return tensors;
}

/// Pieces must lie in their files, and those of a part must have every item of the tensor once.
void check_part(const Manifest& manifest, const Tensor& tensor, const std::string& part, const std::string& where) {
  const engine::ParameterBox whole = engine::whole_box({.extents = tensor.extents});
  const std::vector<Piece>& pieces = tensor.parts.at(part);
  std::int64_t items = 0;
  for (std::size_t i = 0; i < pieces.size(); ++i) {
    const Piece& piece = pieces[i];
    const bool inside = piece.box.first.hi <= whole.first.hi && piece.box.second.hi <= whole.second.hi &&
                        piece.box.taps.hi <= whole.taps.hi;
    if (!inside) fail(Exit::bad_data, "{}: a piece of '{}' is outside of the tensor", where, part);
    const std::int64_t bytes = engine::volume(piece.box) * static_cast<std::int64_t>(sizeof(float));
    if (piece.file >= static_cast<int>(manifest.files.size()))
      fail(Exit::bad_data, "{}: a piece of '{}' is in file {}, but there are {}", where, part, piece.file,
           manifest.files.size());
    const File& file = manifest.files[static_cast<std::size_t>(piece.file)];
    if (piece.offset > file.bytes || bytes > file.bytes - piece.offset)
      fail(Exit::bad_data, "{}: a piece of '{}' ends after the {} bytes of '{}'", where, part, file.bytes, file.name);
    for (std::size_t k = 0; k < i; ++k) {
      if (engine::overlap(piece.box, pieces[k].box))
        fail(Exit::bad_data, "{}: two pieces of '{}' overlap", where, part);
    }
    items += engine::volume(piece.box);
  }
  if (!is_rank_part(part) && items != engine::volume(whole))
    fail(Exit::bad_data, "{}: pieces of '{}' have {} of {} items", where, part, items, engine::volume(whole));
}

void check_tensors(const Manifest& manifest, const std::string& origin) {
  for (const auto& [name, tensor] : manifest.tensors) {
    const std::string where = fmt::format("{}: tensor '{}'", origin, name);
    std::int64_t items = 1;
    for (const std::int64_t extent : tensor.extents) items = base::checked_mul(items, extent);
    if (tensor.extents.empty() || items < 1 || items > most / 8)
      fail(Exit::bad_data, "{}: its extents make no sense", where);
    if (!tensor.parts.contains(value_part)) fail(Exit::bad_data, "{}: it has no value", where);
    for (const auto& part : tensor.parts) check_part(manifest, tensor, part.first, where);
  }
}

}  // namespace

std::string rank_part(int rank) { return fmt::format("of rank {}", rank); }
bool is_rank_part(const std::string& part) { return part.starts_with("of rank "); }

std::string to_json(const Manifest& manifest) {
  const Json json{{"format", format_name},
                  {"version", Manifest::version},
                  {"state", to_json(manifest.state)},
                  {"files", to_json(manifest.files)},
                  {"tensors", to_json(manifest.tensors)}};
  std::string text = json.dump();
  text.pop_back();
  return fmt::format("{},\"crc32c\":\"{:08x}\"}}\n", text, sum_of(text));
}

Manifest from_json(const std::string& text, const std::string& origin) {
  constexpr std::string_view key = ",\"crc32c\":\"";
  constexpr std::size_t tail = key.size() + 8 + 3;
  const std::string_view all = text;
  const std::string_view before = all.substr(0, text.size() < tail ? 0 : text.size() - tail);
  if (text.size() < tail || all.substr(before.size(), key.size()) != key || !text.ends_with("\"}\n"))
    fail(Exit::bad_data, "{}: it does not end with its checksum; it is truncated or of another kind", origin);
  const std::string found = fmt::format("{:08x}", sum_of(before));
  const std::string expected(all.substr(before.size() + key.size(), 8));
  if (found != expected)
    fail(Exit::bad_data, "{}: its checksum is {}, but {} is written in it; it is damaged", origin, found, expected);
  const Json json = base::parse_json(text, origin);
  const JsonFields fields(json, origin);
  if (fields.text("format") != format_name) fail(Exit::bad_data, "{}: it is no manifest of a checkpoint", origin);
  if (const std::int64_t version = fields.whole("version", std::int64_t{1}, most); version != Manifest::version) {
    fail(Exit::bad_data, "{}: it has version {} of the format, and this program reads version {}; use a newer program",
         origin, version, Manifest::version);
  }
  Manifest manifest{.state = read_state(fields.object("state")), .files = read_files(fields), .tensors = {}};
  manifest.tensors = read_tensors(fields);
  check_tensors(manifest, origin);
  return manifest;
}

std::string to_json(const Written& written) {
  return Json{{"files", to_json(written.files)}, {"tensors", to_json(written.tensors)}}.dump();
}

void add(Manifest& manifest, const std::string& written, const std::string& origin) {
  const Json json = base::parse_json(written, origin);
  const JsonFields fields(json, origin);
  const auto first = static_cast<int>(manifest.files.size());
  for (File& file : read_files(fields)) manifest.files.push_back(std::move(file));
  for (auto& [name, tensor] : read_tensors(fields)) {
    Tensor& whole = manifest.tensors[name];
    whole.extents = tensor.extents;
    for (auto& [part, pieces] : tensor.parts) {
      for (Piece& piece : pieces) {
        piece.file += first;
        whole.parts[part].push_back(piece);
      }
    }
  }
}

}  // namespace orthant::train::checkpoint
