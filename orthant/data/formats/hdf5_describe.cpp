#include "orthant/data/formats/hdf5_describe.hpp"

#include "orthant/base/checked.hpp"
#include "orthant/base/format.hpp"
#include "orthant/data/formats/hdf5_handle.hpp"
#include "orthant/data/formats/hdf5_layout.hpp"
#include "orthant/data/io/file.hpp"

#include <algorithm>
#include <array>

namespace orthant::data::formats {
namespace {

using base::Exit;
using base::fail;

constexpr int most_depth = 8;
constexpr std::size_t most_arrays = 1000;

/// The name in a form that a message can show.
std::string printable(std::string name) {
  std::replace_if(
      name.begin(), name.end(), [](unsigned char c) { return c < 32 || c == 127; }, '?');
  return name;
}

/// The innermost message of the library's error stack.
std::string reason() {
  std::string text = "no reason given";
  const auto take = [](unsigned, const H5E_error2_t* error, void* into) -> herr_t {
    if (error->desc != nullptr) *static_cast<std::string*>(into) = error->desc;
    return 0;
  };
  H5Ewalk2(H5E_DEFAULT, H5E_WALK_DOWNWARD, +take, &text);
  return printable(text);
}

struct Visit {
  Hdf5Outline& outline;
  std::string prefix;
  int depth = 0;
};

void visit_group(hid_t group, Visit& visit);

Hdf5Array refused(const std::string& name, const std::string& why) { return {.name = name, .refused = why}; }

void visit_object(hid_t group, const char* link, const std::string& name, Visit& visit) {
  const Hdf5Handle object(H5Oopen(group, link, H5P_DEFAULT), H5Oclose);
  if (object.get() < 0) {
    visit.outline.arrays.push_back(refused(name, "damaged (" + reason() + ")"));
    return;
  }
  const H5I_type_t kind = H5Iget_type(object.get());
  if (kind == H5I_DATASET) visit.outline.arrays.push_back(describe_array(object.get(), name, visit.outline.bytes));
  if (kind != H5I_GROUP || visit.depth >= most_depth) return;
  Visit inner{.outline = visit.outline, .prefix = name + "/", .depth = visit.depth + 1};
  visit_group(object.get(), inner);
}

herr_t visit_link(hid_t group, const char* link, const H5L_info_t* info, void* data) {
  Visit& visit = *static_cast<Visit*>(data);
  if (visit.outline.arrays.size() >= most_arrays) return 1;
  const std::string name = visit.prefix + printable(link);
  switch (info->type) {
    case H5L_TYPE_HARD: visit_object(group, link, name, visit); break;
    case H5L_TYPE_SOFT: visit.outline.arrays.push_back(refused(name, "a soft link")); break;
    case H5L_TYPE_EXTERNAL: visit.outline.arrays.push_back(refused(name, "an external link")); break;
    default: visit.outline.arrays.push_back(refused(name, "a user-defined link")); break;
  }
  return 0;
}

void visit_group(hid_t group, Visit& visit) {
  if (H5Literate(group, H5_INDEX_NAME, H5_ITER_INC, nullptr, visit_link, &visit) < 0)
    fail(Exit::bad_data, "'{}' is damaged: its groups cannot be listed ({})", visit.outline.path, reason());
}

void check_signature(const io::InputFile& file) {
  static constexpr std::array<unsigned char, 8> signature{0x89, 'H', 'D', 'F', '\r', '\n', 0x1A, '\n'};
  std::array<unsigned char, 8> start{};
  if (file.bytes() >= 8) file.read(0, std::as_writable_bytes(std::span(start)));
  if (start != signature)
    fail(Exit::bad_data, "'{}' is not an HDF5 file: it does not start with \\x89HDF", file.path());
}

void describe(Hdf5Outline& outline) {
  const io::InputFile file(outline.path);
  outline.bytes = file.bytes();
  check_signature(file);
  prepare_hdf5();
  H5PLset_loading_state(0);
  const Hdf5Handle opened(H5Fopen(outline.path.c_str(), H5F_ACC_RDONLY, H5P_DEFAULT), H5Fclose);
  if (opened.get() < 0) fail(Exit::bad_data, "'{}' is not a readable HDF5 file: {}", outline.path, reason());
  const Hdf5Handle root(H5Gopen2(opened.get(), "/", H5P_DEFAULT), H5Gclose);
  if (root.get() < 0)
    fail(Exit::bad_data, "'{}' is damaged: its root group cannot be opened ({})", outline.path, reason());
  Visit visit{.outline = outline, .prefix = "", .depth = 0};
  visit_group(root.get(), visit);
}

}  // namespace

Hdf5Outline describe_hdf5(const std::string& path) {
  Hdf5Outline outline;
  outline.path = path;
  try {
    describe(outline);
  } catch (const base::Error& error) {
    outline.code = error.code();
    outline.error = error.what();
  } catch (const std::exception& error) {
    outline.code = Exit::bad_data;
    outline.error = fmt::format("'{}' cannot be read: {}", path, error.what());
  }
  return outline;
}

}  // namespace orthant::data::formats
