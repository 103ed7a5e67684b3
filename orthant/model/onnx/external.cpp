#include "orthant/model/onnx/external.hpp"

#include "orthant/base/error.hpp"
#include "orthant/model/printable.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstring>
#include <filesystem>
#include <vector>

namespace orthant::model::onnx {
namespace {

using base::Exit;
using base::fail;

constexpr std::size_t most_parts = 64;

/// The names between the slashes. Throws Error for a place that may be outside of the folder.
std::vector<std::string> parts_of(const std::string& model, const std::string& location) {
  std::vector<std::string> parts;
  for (const auto& part : std::filesystem::path(location)) parts.push_back(part.string());
  const bool hidden = location.find('\0') != std::string::npos;
  bool outside = location.empty() || hidden || location.front() == '/' || parts.size() > most_parts;
  for (const std::string& part : parts) outside = outside || part == ".." || part.empty();
  if (outside) {
    fail(Exit::bad_data,
         "'{}': its external data are in '{}'; they must be beside it, named without '..' and without a slash in front",
         model, printable(location));
  }
  return parts;
}

std::int64_t whole_number(const std::string& model, const std::string& tensor, const std::string& text) {
  std::int64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || value < 0) {
    fail(Exit::bad_data, "'{}': tensor '{}': its external data begin or end at '{}', which is no place in a file",
         model, tensor, printable(text));
  }
  return value;
}

}  // namespace

base::InputFile open_bytes(const Bytes& bytes) {
  if (bytes.external.empty()) return base::InputFile(bytes.path);
  const std::filesystem::path folder = std::filesystem::path(bytes.path).parent_path();
  const std::vector<std::string> parts = parts_of(bytes.path, bytes.external);
  int at = ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  for (std::size_t i = 0; i < parts.size() && at >= 0; ++i) {
    const int kind = i + 1 < parts.size() ? O_DIRECTORY : O_NONBLOCK | O_NOCTTY;
    const int next = ::openat(at, parts[i].c_str(), O_RDONLY | O_CLOEXEC | O_NOFOLLOW | kind);
    const int reason = errno;
    ::close(at);
    errno = reason;
    at = next;
  }
  if (at < 0) {
    const int reason = errno;
    const bool missing = reason == ENOENT;
    fail(missing ? Exit::missing_input : Exit::bad_data, "'{}': its external data '{}' cannot be opened: {}",
         bytes.path, printable(bytes.external),
         reason == ELOOP || reason == ENOTDIR ? "links are not followed; put the file itself beside the model"
                                              : std::strerror(reason));
  }
  return {at, (folder / bytes.external).string()};
}

Bytes external_bytes(const std::string& model, const std::string& tensor,
                     const std::map<std::string, std::string>& entries, std::int64_t wanted) {
  const auto entry = [&](const char* key) {
    const auto found = entries.find(key);
    return found == entries.end() ? std::string() : found->second;
  };
  Bytes bytes{.path = model, .external = entry("location"), .offset = 0, .size = wanted, .text = {}};
  parts_of(model, bytes.external);
  if (const std::string offset = entry("offset"); !offset.empty()) bytes.offset = whole_number(model, tensor, offset);
  if (const std::string length = entry("length"); !length.empty()) {
    const std::int64_t size = whole_number(model, tensor, length);
    if (size != wanted) {
      fail(Exit::bad_data, "'{}': tensor '{}' has {} bytes of external data where its shape needs {}; export it again",
           model, tensor, size, wanted);
    }
  }
  const std::int64_t available = open_bytes(bytes).bytes();
  if (bytes.offset > available || wanted > available - bytes.offset) {
    fail(Exit::bad_data, "'{}': tensor '{}' needs {} bytes from byte {} on of '{}', which has {}; copy the whole file",
         model, tensor, wanted, bytes.offset, printable(bytes.external), available);
  }
  return bytes;
}

}  // namespace orthant::model::onnx
