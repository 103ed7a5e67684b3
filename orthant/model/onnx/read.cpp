#include "orthant/base/checked.hpp"
#include "orthant/base/input_file.hpp"
#include "orthant/model/onnx/external.hpp"
#include "orthant/model/onnx/file.hpp"
#include "orthant/model/printable.hpp"

#include <google/protobuf/io/coded_stream.h>
#include <google/protobuf/io/zero_copy_stream_impl.h>

#include <cstring>
#include <limits>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;
using google::protobuf::io::CodedInputStream;

/// Subgraphs in subgraphs.
constexpr int deepest = 8;
/// Items of tensors that are written one by one, and of lists; what is larger is kept as raw bytes by all exporters.
constexpr std::size_t most_items = std::size_t{1} << 24;
constexpr int longest_text = 1 << 20;
constexpr std::size_t most_dims = 16;

enum class Wire : int { varint = 0, fixed64 = 1, bytes = 2, fixed32 = 5 };

/// Reads messages field by field. Field numbers are those of onnx.proto.
class Reader {
 public:
  Reader(const base::InputFile& file, CodedInputStream& in) : file_(file), in_(in) {}

  ModelFile model() {
    ModelFile model;
    model.path = file_.path();
    std::int64_t opsets = 0;
    each_field([&](int field, Wire wire) {
      switch (field) {
        case 2: model.producer = text(wire); return;
        case 7: message(wire, [&] { graph(model.graph, 0); }); return;
        case 8:
          message(wire, [&] {
            const auto [domain, version] = opset();
            if (!domain.empty() && domain != "ai.onnx") return;
            model.opset = version;
            ++opsets;
          });
          return;
        case 25: message(wire, [&] { function(model); }); return;
        default: skip(wire);
      }
    });
    if (opsets == 0) refuse("it names no version of the ONNX operators; is it an ONNX file?");
    return model;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const { fail(Exit::bad_data, "'{}': {}", file_.path(), why); }
  [[noreturn]] void refuse_cut() const {
    fail(Exit::bad_data, "'{}' is no ONNX file, or damaged near byte {}; export it again", file_.path(),
         in_.CurrentPosition());
  }

  /// visit(number, wire type) for every field up to the end of the message.
  template <class Visit>
  void each_field(Visit visit) {
    while (true) {
      const std::uint32_t tag = in_.ReadTag();
      if (tag == 0) {
        if (!in_.ConsumedEntireMessage()) refuse_cut();
        return;
      }
      visit(static_cast<int>(tag >> 3U), static_cast<Wire>(tag & 7U));
    }
  }

  int length(Wire wire) {
    int size = 0;
    if (wire != Wire::bytes || !in_.ReadVarintSizeAsInt(&size)) refuse_cut();
    const std::int64_t left = file_.bytes() - in_.CurrentPosition();
    const int limit = in_.BytesUntilLimit();
    if (size > left || (limit >= 0 && size > limit)) refuse_cut();
    return size;
  }

  template <class Read>
  void message(Wire wire, Read read) {
    const CodedInputStream::Limit limit = in_.PushLimit(length(wire));
    read();
    if (in_.BytesUntilLimit() != 0) refuse_cut();
    in_.PopLimit(limit);
  }

  std::string text(Wire wire) {
    const int size = length(wire);
    if (size > longest_text) refuse("a name of more than a mebibyte; is it an ONNX file?");
    std::string text;
    if (!in_.ReadString(&text, size)) refuse_cut();
    return text;
  }

  std::int64_t integer(Wire wire) {
    std::uint64_t value = 0;
    if (wire != Wire::varint || !in_.ReadVarint64(&value)) refuse_cut();
    return static_cast<std::int64_t>(value);
  }

  float number(Wire wire) {
    std::uint32_t bits = 0;
    if (wire != Wire::fixed32 || !in_.ReadLittleEndian32(&bits)) refuse_cut();
    float value = 0;
    std::memcpy(&value, &bits, sizeof value);
    return value;
  }

  void skip(Wire wire) {
    std::uint64_t varint = 0;
    bool done = false;
    switch (wire) {
      case Wire::varint: done = in_.ReadVarint64(&varint); break;
      case Wire::fixed64: done = in_.Skip(8); break;
      case Wire::fixed32: done = in_.Skip(4); break;
      case Wire::bytes: done = in_.Skip(length(wire)); break;
    }
    if (!done) refuse_cut();
  }

  /// One integer, or many of them packed.
  void integers(Wire wire, std::vector<std::int64_t>& into) {
    const auto put = [&](std::int64_t value) {
      if (into.size() >= most_items) refuse("a list of more than 16 million integers; keep large tensors as raw data");
      into.push_back(value);
    };
    if (wire == Wire::varint) return put(integer(wire));
    message(wire, [&] {
      while (in_.BytesUntilLimit() > 0) put(integer(Wire::varint));
    });
  }

  void numbers(Wire wire, std::vector<float>& into) {
    if (wire == Wire::fixed32) return into.push_back(number(wire));
    message(wire, [&] {
      while (in_.BytesUntilLimit() > 0) into.push_back(number(Wire::fixed32));
    });
  }

  std::pair<std::string, std::int64_t> opset() {
    std::pair<std::string, std::int64_t> found;
    each_field([&](int field, Wire wire) {
      if (field == 1) {
        found.first = text(wire);
      } else if (field == 2) {
        found.second = integer(wire);
      } else {
        skip(wire);
      }
    });
    return found;
  }

  void graph(Subgraph& graph, int depth) {
    if (depth > deepest) refuse("graphs in graphs, more than eight deep; is it damaged?");
    each_field([&](int field, Wire wire) {
      switch (field) {
        case 1: message(wire, [&] { graph.nodes.push_back(node(depth)); }); return;
        case 5: message(wire, [&] { graph.initializers.push_back(tensor()); }); return;
        case 11: message(wire, [&] { graph.inputs.push_back(declared()); }); return;
        case 12: message(wire, [&] { graph.outputs.push_back(declared()); }); return;
        case 13: message(wire, [&] { graph.values.push_back(declared()); }); return;
        case 15: refuse("it has sparse initializers, which are not supported; make them dense");
        default: skip(wire);
      }
    });
  }

  OpNode node(int depth) {
    OpNode node;
    each_field([&](int field, Wire wire) {
      switch (field) {
        case 1: node.inputs.push_back(text(wire)); return;
        case 2: node.outputs.push_back(text(wire)); return;
        case 3: node.name = text(wire); return;
        case 4: node.op = text(wire); return;
        case 5: message(wire, [&] { attribute(node, depth); }); return;
        case 7: node.domain = text(wire); return;
        default: skip(wire);
      }
    });
    if (node.domain == "ai.onnx") node.domain.clear();
    return node;
  }

  void attribute(OpNode& node, int depth) {
    std::string name;
    Attribute value;
    each_field([&](int field, Wire wire) {
      switch (field) {
        case 1: name = text(wire); return;
        case 2: value.f = number(wire); return;
        case 3: value.i = integer(wire); return;
        case 4: value.s = text(wire); return;
        case 5: message(wire, [&] { value.tensor = tensor(); }); return;
        case 6:
          message(wire, [&] {
            auto inner = std::make_shared<Subgraph>();
            graph(*inner, depth + 1);
            value.graph = std::move(inner);
          });
          return;
        case 7: numbers(wire, value.floats); return;
        case 8: integers(wire, value.ints); return;
        case 21: value.reference = text(wire); return;
        default: skip(wire);
      }
    });
    node.attributes.insert_or_assign(std::move(name), std::move(value));
  }

  void function(ModelFile& model) {
    Function function;
    std::string name;
    std::string domain;
    each_field([&](int field, Wire wire) {
      switch (field) {
        case 1: name = text(wire); return;
        case 4: function.inputs.push_back(text(wire)); return;
        case 5: function.outputs.push_back(text(wire)); return;
        case 7: message(wire, [&] { function.nodes.push_back(node(0)); }); return;
        case 10: domain = text(wire); return;
        default: skip(wire);
      }
    });
    model.functions.insert_or_assign({domain, name}, std::move(function));
  }

  Declared declared() {
    Declared value;
    each_field([&](int field, Wire wire) {
      if (field == 1) {
        value.name = text(wire);
      } else if (field == 2) {
        message(wire, [&] { type(value); });
      } else {
        skip(wire);
      }
    });
    return value;
  }

  /// TypeProto: only tensors matter.
  void type(Declared& value) {
    each_field([&](int field, Wire wire) {
      if (field != 1) return skip(wire);
      message(wire, [&] {
        each_field([&](int inner, Wire inner_wire) {
          if (inner == 1) {
            value.type = static_cast<ItemType>(integer(inner_wire));
          } else if (inner == 2) {
            value.extents.emplace();
            message(inner_wire, [&] { shape(*value.extents); });
          } else {
            skip(inner_wire);
          }
        });
      });
    });
  }

  void shape(std::vector<std::int64_t>& extents) {
    each_field([&](int field, Wire wire) {
      if (field != 1) return skip(wire);
      std::int64_t extent = -1;
      message(wire, [&] {
        each_field([&](int inner, Wire inner_wire) {
          if (inner == 1) {
            extent = integer(inner_wire);
          } else {
            skip(inner_wire);
          }
        });
      });
      extents.push_back(extent < 0 ? -1 : extent);
    });
  }

  /// What a tensor's fields say before they are put together.
  struct Parts {
    std::vector<std::int64_t> integers;  ///< int32_data, int64_data, uint64_data
    std::string fixed;                   ///< float_data, double_data
    std::map<std::string, std::string> external;
    bool is_external = false;
    bool has_raw = false;
  };

  Tensor tensor() {
    Tensor tensor;
    Parts parts;
    each_field([&](int field, Wire wire) {
      switch (field) {
        case 1: integers(wire, tensor.extents); return;
        case 2: tensor.type = static_cast<ItemType>(integer(wire)); return;
        case 3: refuse("a tensor in segments, which are not supported; export it again");
        case 4: return fixed(wire, Wire::fixed32, 4, tensor, parts);
        case 10: return fixed(wire, Wire::fixed64, 8, tensor, parts);
        case 5:
        case 7:
        case 11: integers(wire, parts.integers); return;
        case 8: tensor.name = text(wire); return;
        case 9: return raw(wire, tensor, parts);
        case 13: message(wire, [&] { external_entry(parts); }); return;
        case 14: parts.is_external = integer(wire) == 1; return;
        default: skip(wire);
      }
    });
    return checked(std::move(tensor), parts);
  }

  /// Notes where bytes are and passes over them.
  void raw(Wire wire, Tensor& tensor, Parts& parts) {
    const int size = length(wire);
    tensor.bytes.path = file_.path();
    tensor.bytes.offset = in_.CurrentPosition();
    tensor.bytes.size = size;
    parts.has_raw = true;
    if (!in_.Skip(size)) refuse_cut();
  }

  void fixed(Wire wire, Wire single, int size, Tensor& tensor, Parts& parts) {
    if (wire == Wire::bytes) return raw(wire, tensor, parts);
    if (wire != single) refuse_cut();
    std::string item(static_cast<std::size_t>(size), '\0');
    if (!in_.ReadRaw(item.data(), size)) refuse_cut();
    parts.fixed += item;
  }

  void external_entry(Parts& parts) {
    std::string key;
    std::string value;
    each_field([&](int field, Wire wire) {
      if (field == 1) {
        key = text(wire);
      } else if (field == 2) {
        value = text(wire);
      } else {
        skip(wire);
      }
    });
    parts.external.insert_or_assign(std::move(key), std::move(value));
  }

  Tensor checked(Tensor tensor, const Parts& parts) const {
    const std::string shown = printable(tensor.name);
    if (tensor.extents.size() > most_dims)
      fail(Exit::bad_data, "'{}': tensor '{}' has {} dims", file_.path(), shown, tensor.extents.size());
    const std::int64_t item = bytes_of(tensor.type);
    // Tensors of strings and the like may be there as long as nothing uses them.
    if (item == 0) {
      tensor.type = ItemType::undefined;
      return tensor;
    }
    std::int64_t wanted = 0;
    try {
      wanted = base::checked_mul(item_count(tensor.extents), item);
    } catch (const base::Error& error) {
      fail(Exit::bad_data, "'{}': tensor '{}': {}", file_.path(), shown, error.what());
    }
    if (parts.is_external) {
      tensor.bytes = external_bytes(file_.path(), shown, parts.external, wanted);
      return tensor;
    }
    if (!parts.has_raw) {
      tensor.bytes.text = parts.fixed.empty() ? written_out(tensor.type, parts.integers) : parts.fixed;
      tensor.bytes.size = static_cast<std::int64_t>(tensor.bytes.text.size());
    }
    if (tensor.bytes.size != wanted) {
      fail(Exit::bad_data, "'{}': tensor '{}' has {} bytes where its shape needs {}; export it again", file_.path(),
           shown, tensor.bytes.size, wanted);
    }
    return tensor;
  }

  /// Integers as the bytes that raw data would have. Types of two bytes and less are written as their bits.
  static std::string written_out(ItemType type, const std::vector<std::int64_t>& values) {
    const auto size = static_cast<std::size_t>(bytes_of(type));
    std::string bytes(values.size() * size, '\0');
    for (std::size_t i = 0; i < values.size(); ++i) std::memcpy(bytes.data() + i * size, &values[i], size);
    return bytes;
  }

  const base::InputFile& file_;
  CodedInputStream& in_;
};

}  // namespace

ModelFile read_model(const std::string& path) {
  const base::InputFile file(path);
  if (file.bytes() > std::numeric_limits<int>::max()) {
    fail(Exit::bad_data, "'{}' has {} bytes; ONNX files have less than 2 GiB: save its weights as external data", path,
         file.bytes());
  }
  google::protobuf::io::FileInputStream stream(file.descriptor());
  CodedInputStream in(&stream);
  in.SetTotalBytesLimit(std::numeric_limits<int>::max());
  return Reader(file, in).model();
}

}  // namespace orthant::model::onnx
